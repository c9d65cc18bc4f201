import type { Readable } from "node:stream";
import { messageOf } from "#base";
import type { PodLogQuery } from "#client";
import { isStatus, type Pod, resources } from "#kinds";
import { type CommandSpec, type Context, flag, SELECTOR } from "../context.ts";
import { CommandError } from "../errors.ts";
import { durationMs } from "../flags.ts";
import { defaultContainer, podsFor } from "../pods-for.ts";

export const logs: CommandSpec = {
  name: "logs",
  aliases: ["log"],
  usage: "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]",
  short: "Print the logs for a container in a pod",
  flags: [
    SELECTOR,
    flag("follow", "bool", "go on as it grows", { short: "f" }),
    flag("previous", "bool", "of the run before", { short: "p" }),
    flag("container", "string", "name of the container", { short: "c" }),
    flag("all-containers", "bool", "of all containers"),
    flag("all-pods", "bool", "of all pods"),
    flag("timestamps", "bool", "with times"),
    flag("tail", "int", "the last lines only", { default: -1 }),
    flag("since", "duration", "not older than this"),
    flag("since-time", "string", "not older than this time"),
    flag("limit-bytes", "int", "at most so much"),
    flag("prefix", "bool", "pod and container before every line"),
    flag("ignore-errors", "bool", "go on with the others"),
    flag("max-log-requests", "int", "logs that are followed at once", { default: 5 }),
    flag("pod-running-timeout", "duration", "how long to wait for a pod", { default: "20s" }),
    flag("insecure-skip-tls-verify-backend", "bool", "taken and ignored"),
  ],
  run: runLogs,
};

interface Source {
  readonly pod: Pod;
  readonly container: string;
}

async function runLogs(context: Context): Promise<void> {
  const { flags, args } = context;
  const selector = flags.string("selector");
  if (args.length === 0 && !selector)
    throw new CommandError(
      "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command\nSee 'kubectl logs -h' for help and examples",
    );
  if (args.length > 2 || (args.length > 1 && selector))
    throw new CommandError(
      "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command\nSee 'kubectl logs -h' for help and examples",
    );
  if (flags.bool("all-containers") && flags.string("container"))
    throw new CommandError("--all-containers=true should not be specified with container name");
  if (flags.string("since-time") && flags.given("since"))
    throw new CommandError("at most one of `sinceTime` or `sinceSeconds` may be specified");
  if (flags.given("tail") && flags.int("tail") < -1)
    throw new CommandError("--tail must be greater than or equal to -1");
  const sources = await sourcesOf(context, selector);
  const limit = flags.int("max-log-requests");
  if (flags.bool("follow") && sources.length > limit)
    throw new CommandError(
      `you are attempting to follow ${sources.length} log streams, but maximum allowed concurrency is ${limit}, use --max-log-requests to increase the limit`,
    );
  const show = (source: Source) => showLog(context, source, queryOf(context, selector !== ""));
  if (flags.bool("follow") && sources.length > 1) await Promise.all(sources.map(show));
  else for (const source of sources) await show(source);
}

async function sourcesOf(context: Context, selector: string): Promise<Source[]> {
  const { flags, args, client, namespace } = context;
  const named = flags.string("container") || args[1] || "";
  const containersOf = (pod: Pod): string[] => {
    if (flags.bool("all-containers"))
      return [...(pod.spec.initContainers ?? []), ...pod.spec.containers, ...(pod.spec.ephemeralContainers ?? [])].map(
        ({ name }) => name,
      );
    if (named) {
      const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers, ...(pod.spec.ephemeralContainers ?? [])];
      if (!all.some(({ name }) => name === named))
        throw new CommandError(`container ${named} is not valid for pod ${pod.metadata.name}`);
      return [named];
    }
    return [defaultContainer(context, pod)];
  };
  if (selector) {
    const { items } = await client.list(resources.pods, { namespace, labelSelector: selector });
    if (items.length === 0) context.err(`No resources found in ${namespace} namespace.\n`);
    return (items as readonly Pod[]).flatMap((pod) => containersOf(pod).map((container) => ({ pod, container })));
  }
  const { pods } = await podsFor(context, args[0]!).catch((error: unknown) => {
    if (!isStatus(error, "NotFound") || !(error instanceof Error) || /doesn't have a resource type/.test(error.message))
      throw error;
    throw new CommandError(`error from server (NotFound): ${error.message} in namespace ${JSON.stringify(namespace)}`);
  });
  const used = flags.bool("all-pods") ? pods : pods.slice(0, 1);
  if (pods.length > 1 && !flags.bool("all-pods"))
    context.err(`Found ${pods.length} pods, using pod/${pods[0]!.metadata.name}\n`);
  if (used.length === 0) throw new CommandError("timed out waiting for the condition");
  return used.flatMap((pod) => containersOf(pod).map((container) => ({ pod, container })));
}

function queryOf({ flags }: Context, bySelector: boolean): PodLogQuery {
  const tail = flags.given("tail")
    ? flags.int("tail")
    : bySelector && !flags.bool("follow")
      ? 10
      : bySelector
        ? 10
        : -1;
  const since = durationMs(flags.string("since")) ?? 0;
  return {
    ...(flags.bool("follow") ? { follow: true } : {}),
    ...(flags.bool("previous") ? { previous: true } : {}),
    ...(flags.bool("timestamps") ? { timestamps: true } : {}),
    ...(tail >= 0 ? { tailLines: tail } : {}),
    ...(since > 0 ? { sinceSeconds: Math.max(1, Math.ceil(since / 1000)) } : {}),
    ...(flags.string("since-time") ? { sinceTime: flags.string("since-time") } : {}),
    ...(flags.int("limit-bytes") > 0 ? { limitBytes: flags.int("limit-bytes") } : {}),
  };
}

async function showLog(context: Context, { pod, container }: Source, query: PodLogQuery): Promise<void> {
  const { streams, flags, environment } = context;
  const abort = new AbortController();
  using _interrupt = environment.onInterrupt(() => abort.abort());
  try {
    const stream = await streams.logs(context.namespace, pod.metadata.name, {
      ...query,
      container,
      signal: abort.signal,
    });
    await (flags.bool("prefix")
      ? copyLines(stream, `[pod/${pod.metadata.name}/${container}] `, context)
      : copy(stream, context));
  } catch (error) {
    if (abort.signal.aborted) return;
    if (!flags.bool("ignore-errors")) throw error;
    context.err(`error: ${messageOf(error)}\n`);
  }
}

async function copy(stream: Readable, { environment }: Context): Promise<void> {
  for await (const chunk of stream) if (!environment.stdout.write(chunk)) await drained(environment.stdout);
}

async function copyLines(stream: Readable, prefix: string, context: Context): Promise<void> {
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + Buffer.from(chunk as Uint8Array).toString("utf8")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) context.out(`${prefix}${line}\n`);
  }
  if (rest) context.out(`${prefix}${rest}\n`);
}

const drained = (stream: NodeJS.EventEmitter) => new Promise<void>((resolve) => stream.once("drain", () => resolve()));
