import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Socket } from "node:net";
import { type Duplex, PassThrough, type Readable } from "node:stream";
import { hasCode, type Timer } from "#base";
import { EngineError } from "../../errors.ts";
import type { EngineExecOptions, EngineSession, ExecResult } from "../../port.ts";
import type { Context } from "../context.ts";
import type { ContainerRecord } from "../records.ts";
import { runtimeMessage, startMessage } from "../start-error.ts";
import { readIfThere } from "../sys/files.ts";
import { processTree } from "../sys/process.ts";
import { execWithTerminal } from "./pty.ts";

const DEFAULT_MAX_OUTPUT = 16 << 10;
/** How often it is looked whether a process that has written has been started. */
const START_LOOK = 5;

/**
 * A process to be run in a container by the runtime, with the container's own namespaces, cgroup and filter, and as what the
 * container's own process is: its user, groups, capabilities, environment and limits.
 */
export interface ExecProcess {
  readonly program: string;
  readonly args: readonly string[];
  /** The runtime writes the number of the started process here. */
  readonly pidFile: string;
  /** What the runtime is told of the process. */
  readonly processFile: string;
  readonly command: readonly string[];
}

export function execProcess(
  context: Context,
  record: ContainerRecord,
  command: readonly string[],
  options: { tty: boolean },
): ExecProcess {
  if (command.length === 0) throw new EngineError("invalid-config", "no command specified");
  const program = context.host.runtimes.get(record.runtime);
  if (program === undefined) throw new EngineError("unknown-runtime", `the runtime ${record.runtime} is not installed`);
  const bundle = context.paths.bundle(record.id);
  const name = join(bundle, `exec-${context.random.suffix(10)}`);
  const pidFile = `${name}.pid`;
  const processFile = `${name}.json`;
  writeFileSync(processFile, JSON.stringify(processLike(bundle, command, options.tty)), { mode: 0o600 });
  const args = [
    "--root",
    context.paths.runtimeRoot(record.runtime),
    "exec",
    "--pid-file",
    pidFile,
    "--process",
    processFile,
    ...(options.tty ? ["--tty"] : []),
    record.id,
  ];
  return { program, args, pidFile, processFile, command };
}

/** The `process` of the container's OCI configuration with another command. */
function processLike(bundle: string, command: readonly string[], tty: boolean): object {
  const { process } = JSON.parse(readFileSync(join(bundle, "config.json"), "utf8")) as {
    process: { env?: readonly string[] };
  };
  const env = process.env ?? [];
  const terminal = tty && !env.some((variable) => variable.startsWith("TERM="));
  return { ...process, args: command, terminal: tty, env: terminal ? [...env, "TERM=xterm"] : env };
}

/** Once the process has ended, or could not be started. */
export function removeExecFiles({ pidFile, processFile }: ExecProcess): void {
  rmSync(pidFile, { force: true });
  rmSync(processFile, { force: true });
}

export const EXEC_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
};

export async function exec(
  context: Context,
  record: ContainerRecord,
  options: EngineExecOptions,
): Promise<EngineSession> {
  options.signal?.throwIfAborted();
  if (options.tty) return execWithTerminal(context, record, options);
  const run = execProcess(context, record, options.command, { tty: false });
  const child = context.launcher.launch(run.program, run.args, {
    env: EXEC_ENVIRONMENT,
    channels: [options.stdin ? "write" : "null", options.stdout ? "read" : "null", options.stderr ? "read" : "null"],
  });
  const [stdin, stdout, stderr] = child.streams as [Duplex | null, Duplex | null, Duplex | null];
  let closed = false;
  const close = () => {
    closed = true;
    killExec(child.pid, run.pidFile);
  };
  options.signal?.addEventListener("abort", close, { once: true });
  const errors = stderr && ownOutput(context, stderr, run.pidFile);
  const done = Promise.all([child.exited, stdout && finished(stdout), stderr && finished(stderr)]).then(
    ([exitCode]) => {
      const failure = closed ? undefined : startFailure(context, record, run, exitCode, errors?.held() ?? "");
      errors?.finish({ drop: failure !== undefined });
      if (failure) throw failure;
      return { exitCode };
    },
  );
  done
    .catch(() => {}) // a caller who only reads output must not be ended by it
    .finally(() => {
      options.signal?.removeEventListener("abort", close);
      stdin?.destroy();
      removeExecFiles(run);
    });
  stdin?.on("error", () => {}); // the process ended without reading all of it
  return { stdin, stdout, stderr: errors?.stream ?? null, resize() {}, done, close };
}

/** The stream's end, however it comes. */
function finished(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    stream.once("end", resolve);
    stream.once("close", resolve);
    stream.on("error", () => resolve());
  });
}

/** Runs a command to its end, for probes and hooks. */
export async function execSync(
  context: Context,
  record: ContainerRecord,
  options: { command: readonly string[]; timeoutMs: number; maxOutput?: number },
): Promise<ExecResult> {
  const run = execProcess(context, record, options.command, { tty: false });
  const child = context.launcher.launch(run.program, run.args, {
    env: EXEC_ENVIRONMENT,
    channels: ["null", "read", "read"],
  });
  const limit = options.maxOutput ?? DEFAULT_MAX_OUTPUT;
  const [, out, err] = child.streams as [null, Duplex, Duplex];
  const stdout = keep(out, limit);
  const stderr = keep(err, limit);
  let timedOut = false;
  const timer =
    options.timeoutMs > 0
      ? context.clock.setTimer(() => {
          timedOut = true;
          killExec(child.pid, run.pidFile);
        }, options.timeoutMs)
      : undefined;
  try {
    const exitCode = await child.exited;
    await drained([out, err]);
    const failure = timedOut ? undefined : startFailure(context, record, run, exitCode, stderr());
    if (failure) throw failure;
    return { exitCode, stdout: stdout(), stderr: stderr(), timedOut };
  } finally {
    timer?.clear();
    removeExecFiles(run);
  }
}

/** The runtime writes the process's number once it runs: without it, what was printed is the runtime's own complaint. */
export function startFailure(
  context: Context,
  record: ContainerRecord,
  run: ExecProcess,
  code: number | null,
  output: string,
): EngineError | undefined {
  if (code === 0 || code === null || existsSync(run.pidFile)) return undefined;
  if (context.containers.all.get(record.id)?.state !== "running")
    return new EngineError("not-running", `container ${record.id} is not running`);
  const id = createHash("sha256").update(run.processFile).digest("hex");
  return new EngineError(
    "start-failed",
    `failed to start exec "${id}": OCI runtime exec failed: exec failed: ${runtimeMessage(startMessage(output, run.command))}`,
  );
}

/**
 * What the process itself writes: before the runtime has started it, the runtime speaks on the same pipe, and what it says is the reason of a
 * failure and no output.
 */
function ownOutput(
  context: Context,
  source: Readable,
  pidFile: string,
): { stream: Readable; held(): string; finish(how: { drop: boolean }): void } {
  const stream = new PassThrough();
  const held: Buffer[] = [];
  let passing = false;
  let timer: Timer | undefined;
  const pass = () => {
    if (passing) return;
    passing = true;
    timer?.clear();
    source.off("data", hold);
    for (const chunk of held) stream.write(chunk);
    source.pipe(stream);
  };
  const look = () => {
    if (existsSync(pidFile)) pass();
    else timer = context.clock.setTimer(look, START_LOOK);
  };
  const hold = (chunk: Buffer) => {
    held.push(chunk);
    if (held.length === 1) look();
    else if (existsSync(pidFile)) pass();
  };
  source.on("data", hold);
  source.on("error", () => stream.end());
  return {
    stream,
    held: () => (passing ? "" : Buffer.concat(held).toString("utf8")),
    finish({ drop }) {
      timer?.clear();
      if (passing) return;
      passing = true;
      if (!drop) for (const chunk of held) stream.write(chunk);
      stream.end();
    },
  };
}

/**
 * What the process left in its pipes still belongs to it. A process that it left in the background may hold them open for ever, and that
 * must not hold a probe, so the end is waited for only as long as data is there.
 */
async function drained(streams: readonly Duplex[]): Promise<void> {
  const ends = Promise.all(streams.map(finished));
  for (let seen = -1; ; ) {
    const ended = await Promise.race([
      ends.then(() => true),
      new Promise<false>((resolve) => setImmediate(() => setImmediate(() => resolve(false)))),
    ]);
    const now = streams.reduce((sum, stream) => sum + (stream as Socket).bytesRead, 0);
    if (ended || now === seen) break;
    seen = now;
  }
  for (const stream of streams) stream.destroy();
}

function keep(stream: Readable, limit: number): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    if (size < limit) chunks.push(chunk.subarray(0, limit - size));
    size += chunk.length;
  });
  stream.on("error", () => {}); // destroyed on purpose after the process ended
  return () => Buffer.concat(chunks).toString("utf8");
}

/**
 * Kills the process in the container with all its descendants. The runtime that waits for it is left to reap it and to end by itself:
 * were it killed too, a zombie would stay until the host's first process looks after it, and hold up the end of the container. It is
 * killed only while there is no process yet.
 */
export function killExec(runtimePid: number, pidFile: string): void {
  const pid = Number(readIfThere(pidFile) ?? 0);
  const victims = processTree(pid > 0 ? pid : runtimePid);
  for (const victim of victims) {
    if (victim <= 0) continue;
    try {
      process.kill(victim, "SIGKILL");
    } catch (error) {
      if (!hasCode(error, "ESRCH")) throw error;
    }
  }
}
