import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "#base";
import { EngineError } from "../errors.ts";
import type { ContainerConfig, LinuxResources } from "../port.ts";
import { keepCompiledFilter, makeBundle, removeBundle } from "./bundle.ts";
import type { Context } from "./context.ts";
import { removeRuntimeState, watchMonitor, whenExited } from "./exits.ts";
import { engineErrorOf } from "./faults.ts";
import { startMonitor } from "./monitor.ts";
import { mountHolder } from "./mounts.ts";
import type { SpecInput } from "./oci/spec.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";
import { startCreated } from "./runtime.ts";
import { runtimeMessage, startMessage } from "./start-error.ts";
import { sha256Hex } from "./sys/digest.ts";
import { identify, isAlive, signalNumber, signalProcess } from "./sys/process.ts";

const KILL = 9;
const DEFAULT_STOP_SIGNAL = "SIGTERM";

/** Makes the container's files; the sandbox is locked. */
export async function createContainer(
  context: Context,
  sandbox: SandboxRecord,
  config: ContainerConfig,
  { isPause }: { isPause: boolean } = { isPause: false },
): Promise<ContainerRecord> {
  const image = context.images.get(config.image);
  if (!image) throw new EngineError("image-not-found", `image ${config.image} is not present`);
  const root = context.images.rootfs(image.id);
  const id = sha256Hex(`${context.random.uuid()}${context.random.uuid()}`);
  const cgroup = `${sandbox.cgroup}/${id}`;
  const stopSignal = config.stopSignal ?? root.config.StopSignal ?? DEFAULT_STOP_SIGNAL;
  if (signalNumber(stopSignal) === undefined)
    throw new EngineError("invalid-config", `unknown stop signal ${JSON.stringify(stopSignal)}`);
  const record: ContainerRecord = {
    id,
    sandboxId: sandbox.id,
    config,
    state: "created",
    createdAt: context.clock.now(),
    imageId: image.id,
    pid: 0,
    resources: config.resources,
    cgroup,
    runtime: sandbox.runtime,
    stopSignal,
    isPause,
    complete: false,
  };
  context.containers.keep(record);
  context.images.hold(image.id, id);
  try {
    const pidNamespace = pidNamespaceOf(context, sandbox, record);
    const { user } = await makeBundle(context, {
      id,
      sandbox,
      config,
      image: root,
      cgroup,
      isPause,
      pidNamespace,
    });
    mkdirSync(dirname(config.logPath), { recursive: true, mode: 0o755 });
    if (config.logPath !== "/dev/null") writeFileSync(config.logPath, "", { flag: "a", mode: 0o640 });
    const { uid, gid, supplementalGroups } = user;
    return context.containers.save({ ...record, complete: true, user: { uid, gid, supplementalGroups } });
  } catch (error) {
    await discard(context, record);
    throw engineErrorOf(error, "create-failed", `failed to create container ${config.name}`);
  }
}

function pidNamespaceOf(
  context: Context,
  sandbox: SandboxRecord,
  record: ContainerRecord,
): SpecInput["namespaces"]["pid"] {
  const target = record.config.targetContainerId;
  if (target !== undefined) {
    const other = context.containers.all.get(target);
    if (!other?.process || other.state !== "running")
      throw new EngineError("invalid-config", `target container ${target} is not running`);
    return `/proc/${other.process.pid}/ns/pid`;
  }
  const mode = sandbox.config.namespaces.pid;
  if (mode === "node") return "host";
  if (mode === "container" || record.isPause) return "own";
  const pause = context.containers.all.get(sandbox.pauseId ?? "");
  if (!isAlive(pause?.process))
    throw new EngineError("create-failed", `the shared process namespace of sandbox ${sandbox.id} is gone`);
  return `/proc/${pause.process.pid}/ns/pid`;
}

/** Runs what `createContainer` made; the sandbox is locked. @throws EngineError `start-failed`, the record then tells it too */
export async function startContainer(context: Context, record: ContainerRecord): Promise<void> {
  const { id } = record;
  if (record.state === "running") return;
  if (record.state !== "created")
    throw new EngineError("start-failed", `container ${id} is in ${record.state} state, it can be started only once`);
  try {
    await context.gate.run(() => launch(context, record));
  } catch (error) {
    const said = startMessage(messageOf(error), commandOfRecord(context, record));
    const message = `OCI runtime create failed: ${runtimeMessage(said)}`;
    await removeRuntimeState(context, record);
    const at = context.clock.now();
    context.containers.change(id, {
      state: "exited",
      exitCode: 128,
      reason: "StartError",
      message,
      startedAt: 0,
      finishedAt: at,
      pid: 0,
    });
    context.emit({ type: "container-exited", sandboxId: record.sandboxId, containerId: id });
    throw new EngineError("start-failed", message, { cause: error });
  }
  context.emit({ type: "container-started", sandboxId: record.sandboxId, containerId: id });
}

async function launch(context: Context, { id, config, runtime }: ContainerRecord): Promise<void> {
  const { paths, host } = context;
  const program = host.runtimes.get(runtime);
  if (program === undefined) throw new Error(`the runtime ${runtime} is not installed`);
  const root = paths.runtimeRoot(runtime);
  const monitored = await startMonitor(context.launcher, {
    conmon: host.programs.conmon,
    runtime: program,
    runtimeRoot: root,
    id,
    bundle: paths.bundle(id),
    logPath: config.logPath,
    exits: paths.exits,
    persist: paths.persist,
    sockets: paths.sockets,
    tty: config.tty,
    stdin: config.stdin,
    stdinOnce: config.stdinOnce,
  });
  const main = identify(monitored.pid);
  const monitor = identify(monitored.monitorPid);
  context.cgroups.join(`${context.cgroupParent}/monitors`, monitored.monitorPid);
  try {
    await startCreated(context.run, { name: runtime, program, root }, id);
  } catch (error) {
    if (main) signalProcess(context.libc, main, KILL);
    throw error;
  }
  context.containers.change(id, {
    state: "running",
    startedAt: context.clock.now(),
    bootId: context.bootId,
    pid: monitored.pid,
    ...(main ? { process: main } : {}),
    ...(monitor ? { monitor } : {}),
  });
  keepCompiledFilter(context, id, runtime);
  watchMonitor(context, id, monitored.ended);
}

/** The command as its bundle has it, for messages. */
function commandOfRecord(context: Context, record: ContainerRecord): readonly string[] {
  const image = context.images.get(record.imageId);
  return [
    ...(record.config.command ?? image?.config.Entrypoint ?? []),
    ...(record.config.args ?? image?.config.Cmd ?? []),
  ];
}

/** Stop signal, then KILL. Resolves when it has exited. Takes no lock while it waits. */
export async function stopContainer(
  context: Context,
  record: ContainerRecord,
  options: { graceMs: number; signal?: string },
): Promise<void> {
  if (record.state !== "running" || !record.process) return;
  const exited = whenExited(context, record.id);
  if (options.graceMs > 0) {
    const signal = signalNumber(options.signal ?? record.stopSignal);
    if (signal === undefined)
      throw new EngineError("invalid-config", `unknown signal ${JSON.stringify(options.signal)}`);
    signalProcess(context.libc, record.process, signal);
    const timeout = new AbortController();
    const waited = context.clock.sleep(options.graceMs, { signal: timeout.signal }).then(
      () => false,
      () => true,
    );
    const ended = await Promise.race([exited.then(() => true), waited]);
    timeout.abort();
    if (ended) return exited;
  }
  signalProcess(context.libc, record.process, KILL);
  await exited;
}

export function signalContainer(context: Context, record: ContainerRecord, name: string): void {
  const signal = signalNumber(name);
  if (signal === undefined) throw new EngineError("invalid-config", `unknown signal ${JSON.stringify(name)}`);
  if (record.state !== "running" || !record.process)
    throw new EngineError("not-running", `container ${record.id} is not running`);
  signalProcess(context.libc, record.process, signal);
}

/** Stops it and removes all that is left of it, but its log. */
export async function removeContainer(context: Context, record: ContainerRecord): Promise<void> {
  await stopContainer(context, record, { graceMs: 0 });
  await context.sandboxLock.run(record.sandboxId, async () => {
    if (context.containers.all.has(record.id)) await discard(context, record);
  });
  context.emit({ type: "container-removed", sandboxId: record.sandboxId, containerId: record.id });
}

/** Deletes files, mounts, control group and record; nothing runs any more. */
export async function discard(context: Context, record: ContainerRecord): Promise<void> {
  await removeRuntimeState(context, record);
  await removeBundle(context, record.id);
  for (const holder of imageHolders(record)) context.images.release(holder);
  context.containers.remove(record.id);
}

/** After a restart: the images of a container and of its image volumes are in use again. */
export function holdImages(context: Context, record: ContainerRecord): void {
  context.images.hold(record.imageId, record.id);
  for (const [index, { image }] of record.config.mounts.entries()) {
    const id = image === undefined ? undefined : context.images.get(image)?.id;
    if (id !== undefined) context.images.hold(id, mountHolder(record.id, index));
  }
}

function imageHolders({ id, config }: ContainerRecord): string[] {
  return [id, ...config.mounts.flatMap((mount, index) => (mount.image === undefined ? [] : [mountHolder(id, index)]))];
}

export async function updateContainer(
  context: Context,
  record: ContainerRecord,
  resources: LinuxResources,
): Promise<void> {
  if (record.state !== "running" && record.state !== "created")
    throw new EngineError("not-running", `container ${record.id} is not running`);
  try {
    if (record.state === "running") context.cgroups.update(record.cgroup, resources);
  } catch (error) {
    throw engineErrorOf(error, "invalid-config", `failed to update resources of container ${record.config.name}`);
  }
  context.containers.change(record.id, { resources: { ...record.resources, ...resources } });
}
