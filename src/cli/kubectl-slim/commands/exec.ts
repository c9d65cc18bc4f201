import { messageOf } from "#base";
import { pipeline } from "node:stream/promises";
import type { ExecSession, Pod } from "#kinds";
import { type CommandSpec, type Context, flag } from "../context.ts";
import { CommandError } from "../errors.ts";
import { durationMs } from "../flags.ts";
import { defaultContainer, onePodFor } from "../pods-for.ts";

const STREAM_FLAGS = [
  flag("container", "string", "name of the container", { short: "c" }),
  flag("stdin", "bool", "pass standard input", { short: "i" }),
  flag("tty", "bool", "standard input is a terminal", { short: "t" }),
  flag("quiet", "bool", "only what the container writes", { short: "q" }),
  flag("pod-running-timeout", "duration", "how long to wait for a pod", { default: "1m0s" }),
];

export const exec: CommandSpec = {
  name: "exec",
  usage: "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]",
  short: "Execute a command in a container",
  flags: STREAM_FLAGS,
  async run(context) {
    const { args, dash, flags } = context;
    if (args.length === 0) throw new CommandError("pod, type/name or --filename must be specified");
    if (dash === undefined && args.length > 1)
      throw new CommandError(
        "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\nSee 'kubectl exec -h' for help and examples",
      );
    const command = args.slice(dash ?? 1);
    if (command.length === 0) throw new CommandError("you must specify at least one command for the container");
    const pod = await podOf(context, args[0]!);
    if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed")
      throw new CommandError(`cannot exec into a container in a completed pod; current phase is ${pod.status.phase}`);
    const container = containerOf(context, pod);
    const tty = wantsTty(context);
    const session = await context.streams.exec(context.namespace, pod.metadata.name, command, {
      container,
      stdin: flags.bool("stdin"),
      tty,
    });
    await converse(context, session, tty);
  },
};

export const attach: CommandSpec = {
  name: "attach",
  usage: "attach (POD | TYPE/NAME) -c CONTAINER",
  short: "Attach to a running container",
  flags: STREAM_FLAGS,
  async run(context) {
    const { args, flags } = context;
    if (args.length === 0) throw new CommandError("at least 1 argument is required for attach");
    const pod = await podOf(context, args[0]!);
    const container = containerOf(context, pod);
    const spec = pod.spec.containers.find(({ name }) => name === container);
    let tty = wantsTty(context);
    if (tty && !spec?.tty) {
      tty = false;
      context.err(`error: Unable to use a TTY - container ${container} did not allocate one\n`);
    }
    if (!flags.bool("quiet") && flags.bool("stdin"))
      context.err("If you don't see a command prompt, try pressing enter.\n");
    const session = await context.streams.attach(context.namespace, pod.metadata.name, {
      container,
      stdin: flags.bool("stdin"),
      tty,
    });
    await converse(context, session, tty);
  },
};

async function podOf(context: Context, word: string): Promise<Pod> {
  return onePodFor(context, word, durationMs(context.flags.string("pod-running-timeout")) ?? 60_000);
}

function containerOf(context: Context, pod: Pod): string {
  const named = context.flags.string("container");
  if (!named) return defaultContainer(context, pod, { quiet: context.flags.bool("quiet") });
  return named; // whether it is there the server tells
}

function wantsTty({ flags, environment, err }: Context): boolean {
  if (!flags.bool("tty")) return false;
  if (flags.bool("stdin") && environment.stdin.isTTY) return true;
  if (flags.bool("stdin")) err("Unable to use a TTY - input is not a terminal or the right kind of file\n");
  return false;
}

/** Ties the session to the terminal until it ends. @throws CommandError with the command's exit code */
export async function converse({ environment, flags }: Context, session: ExecSession, tty: boolean): Promise<void> {
  const { stdin, stdout, stderr } = environment;
  const resize = () => {
    const { columns, rows } = environment.stdout;
    if (columns && rows) session.resize({ width: columns, height: rows });
  };
  using stack = new DisposableStack();
  if (tty) {
    stdin.setRawMode?.(true);
    stack.defer(() => void stdin.setRawMode?.(false));
    stack.use(environment.onResize(resize));
    resize();
  } else stack.use(environment.onInterrupt(() => session.close()));
  if (session.stdin && flags.bool("stdin")) {
    stdin.on("error", () => session.stdin?.end());
    stdin.pipe(session.stdin);
    stack.defer(() => {
      stdin.unpipe();
      stdin.pause();
      (stdin as { unref?(): void }).unref?.();
    });
  }
  const copies = [
    session.stdout && pipeline(session.stdout, stdout, { end: false }),
    session.stderr && pipeline(session.stderr, stderr, { end: false }),
  ];
  const { exitCode } = await session.done.catch((error: unknown) => {
    throw new CommandError(messageOf(error));
  });
  await Promise.all(copies);
  if (exitCode !== 0) throw new CommandError(`command terminated with exit code ${exitCode}`, { exitCode, bare: true });
}
