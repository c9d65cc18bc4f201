import { Readable } from "node:stream";
import { hasCode, messageOf } from "#base";
import type { ContainerStatus, Engine } from "#engine";
import {
  type AttachOptions,
  badRequest,
  type ExecOptions,
  type ExecSession,
  failure,
  internalError,
  type LogOptions,
  type NodeConnector,
  notFound,
  type PodRef,
} from "#kinds";
import { readLog } from "../logs/log-reader.ts";
import type { ConnectorDeps, ReadonlyPod } from "../ports.ts";
import { loggedContainerId } from "./log-source.ts";
import { createNodeProxy, type NodeProxyOptions } from "./node-proxy.ts";

/** How the API server reaches this node: logs, exec, attach, port-forward, and the node's own pages. */
export function createNodeConnector(deps: ConnectorDeps, options: NodeProxyOptions): NodeConnector {
  const { engine, runtime, clock } = deps;

  const podOf = (ref: PodRef): ReadonlyPod => {
    const pod = runtime.pod(ref);
    if (!pod || (ref.uid && pod.metadata.uid !== ref.uid)) throw notFound({ group: "", resource: "pods" }, ref.name);
    return pod;
  };
  const runningContainer = (ref: PodRef, name: string, missing: string): ContainerStatus => {
    const container = runtime.container(podOf(ref).metadata.uid ?? "", name);
    if (container?.state !== "running") throw upgradeError(missing);
    return container;
  };

  return {
    async logs(ref, logOptions, signal) {
      const pod = podOf(ref);
      if (!specOf(pod, logOptions.container)) {
        throw badRequest(`container ${logOptions.container} is not valid for pod ${ref.name}`);
      }
      const container = logContainer(pod, logOptions, deps);
      if (typeof container === "string") return Readable.from([Buffer.from(container)], { objectMode: false });
      try {
        return await readLog(container.config.logPath, readOptions(container, logOptions, signal, deps), { clock });
      } catch (error) {
        if (!hasCode(error, "ENOENT")) throw error;
        // Created, but nothing has opened its log yet; or the log was removed.
        const path = container.config.logPath;
        return Readable.from(
          [Buffer.from(`failed to try resolving symlinks in path "${path}": lstat ${path}: no such file or directory`)],
          { objectMode: false },
        );
      }
    },
    async exec(ref, name, execOptions) {
      const container = runningContainer(ref, name, `container not found ("${name}")`);
      return await startExec(engine, container.id, execOptions);
    },
    async attach(ref, name, attachOptions) {
      const full = `${ref.name}_${ref.namespace}`;
      const container = runningContainer(ref, name, `container ${name} not found in pod ${full}`);
      return await startAttach(engine, container, attachOptions);
    },
    async portForward(ref, port) {
      const sandbox = runtime.sandbox(podOf(ref).metadata.uid ?? "");
      if (sandbox?.state !== "ready") throw upgradeError(`pod not found ("${ref.name}_${ref.namespace}")`);
      try {
        return await engine.connect(sandbox.id, port);
      } catch (error) {
        throw new Error(
          `error forwarding port ${port} to pod ${sandbox.id}, uid : failed to execute portforward in network namespace ` +
            `"${sandbox.netnsPath ?? "host"}": failed to connect to localhost:${port} inside namespace "${sandbox.id}": ${messageOf(error)}`,
          { cause: error },
        );
      }
    },
    proxy: createNodeProxy(deps, options),
  };
}

/** The container whose log is meant, or the text that stands for a log that cannot be had any more. */
function logContainer(
  pod: ReadonlyPod,
  { container: name, previous }: LogOptions,
  { engine, runtime }: ConnectorDeps,
): ContainerStatus | string {
  try {
    const id = loggedContainerId(pod, name, previous);
    return engine.container(id) ?? `unable to retrieve container logs for ${engine.info.scheme}://${id}`;
  } catch (error) {
    // The status lags behind the engine by a moment.
    const container = runtime.container(pod.metadata.uid ?? "", name, { previous });
    if (container && container.state !== "created") return container;
    throw error;
  }
}

function readOptions(
  container: ContainerStatus,
  options: LogOptions,
  signal: AbortSignal,
  { engine, clock }: ConnectorDeps,
): Parameters<typeof readLog>[1] {
  const { sinceSeconds, sinceTime, tailLines, limitBytes } = options;
  const since = Math.max(
    sinceSeconds === undefined ? 0 : clock.now() - sinceSeconds * 1000,
    sinceTime === undefined ? 0 : Date.parse(sinceTime),
  );
  const stream = options.stream === "Stdout" ? "stdout" : options.stream === "Stderr" ? "stderr" : undefined;
  return {
    follow: options.follow,
    timestamps: options.timestamps,
    signal,
    ...(since > 0 ? { since } : {}),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(stream ? { stream } : {}),
    ended: () => {
      const state = engine.container(container.id)?.state;
      return state !== "running" && state !== "created";
    },
    onEnded: (listener) =>
      engine.onEvent((event) => {
        if (event.containerId === container.id) listener();
      }),
  };
}

async function startExec(engine: Engine, id: string, options: ExecOptions): Promise<ExecSession> {
  // The node's answer is an error of its own, which the API server wraps once more.
  const failed = (error: unknown) =>
    internalError(
      new Error(
        `Internal error occurred: error executing command in container: failed to exec in container: ${messageOf(error)}`,
      ),
    );
  try {
    const session = await engine.exec(id, options);
    return { ...session, done: withError(session.done, failed) };
  } catch (error) {
    throw failed(error);
  }
}

async function startAttach(engine: Engine, container: ContainerStatus, options: AttachOptions): Promise<ExecSession> {
  // Whether there is a terminal was settled when the container was made.
  const { tty } = container.config;
  const session = await engine.attach(container.id, { stdin: options.stdin, tty });
  const failed = (error: unknown) =>
    internalError(new Error(`error attaching to container: failed to attach to container: ${messageOf(error)}`));
  // A stream that nobody asked for must still be emptied: the container would stall.
  if (!options.stdout) session.stdout?.resume();
  if (!options.stderr || tty) session.stderr?.resume();
  return {
    stdin: options.stdin ? session.stdin : null,
    stdout: options.stdout ? session.stdout : null,
    stderr: options.stderr && !tty ? session.stderr : null,
    resize: (size) => session.resize(size),
    done: withError(session.done, failed),
    close: () => session.close(),
  };
}

function withError<T>(promise: Promise<T>, failed: (error: unknown) => Error): Promise<T> {
  const result = promise.catch((error: unknown) => {
    throw failed(error);
  });
  // Who asks late must still see the rejection; who never asks must not crash the process.
  result.catch(() => {});
  return result;
}

const specOf = (pod: ReadonlyPod, name: string) =>
  [...pod.spec.containers, ...(pod.spec.initContainers ?? []), ...(pod.spec.ephemeralContainers ?? [])].find(
    (container) => container.name === name,
  );

/** The connection is not upgraded: what kubectl shows as `error: unable to upgrade connection: …`. */
const upgradeError = (why: string) => failure(500, "InternalError", `unable to upgrade connection: ${why}`);
