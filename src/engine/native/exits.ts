import { existsSync, mkdirSync, rmSync, statSync, watch } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#base";
import { releaseBundle } from "./bundle.ts";
import type { Context } from "./context.ts";
import { readExit } from "./monitor.ts";
import type { ContainerRecord } from "./records.ts";
import { isAlive, isEnding } from "./sys/process.ts";

const waiters = new WeakMap<Context, Map<string, (() => void)[]>>();

/** Resolves when the container is no longer running. */
export function whenExited(context: Context, id: string): Promise<void> {
  const record = context.containers.all.get(id);
  if (record?.state !== "running") return Promise.resolve();
  return new Promise((resolve) => {
    const map = waitersOf(context);
    map.set(id, [...(map.get(id) ?? []), resolve]);
  });
}

function waitersOf(context: Context): Map<string, (() => void)[]> {
  const map = waiters.get(context) ?? new Map<string, (() => void)[]>();
  waiters.set(context, map);
  return map;
}

/**
 * Watches the one directory into which every conmon writes exit codes. For our own children their end tells the same, so without a watch
 * (a host can run out of inotify instances) only what was adopted is noticed later, by `watchAdopted`.
 */
export function watchExits(context: Context): Disposable {
  mkdirSync(context.paths.exits, { recursive: true, mode: 0o700 });
  try {
    const watcher = watch(context.paths.exits, { persistent: false }, (_, name) => {
      if (name) check(context, name);
    });
    watcher.on("error", (error) => context.logger.error("watch of exit codes ended", { error }));
    return { [Symbol.dispose]: () => watcher.close() };
  } catch (error) {
    context.logger.warn("exit codes can't be watched; see fs.inotify.max_user_instances", { error: messageOf(error) });
    return { [Symbol.dispose]() {} };
  }
}

/** Looks whether a running container has exited; cheap, and harmless at any time. */
export function check(context: Context, id: string): void {
  const record = context.containers.all.get(id);
  if (record?.state !== "running" || context.closed.aborted) return;
  const code = readExit(context.paths.exits, id);
  if (code !== undefined) finish(context, record, code);
}

/** Conmon ended: it has written the exit code before, or it was killed and nobody knows the code. */
export function watchMonitor(context: Context, id: string, ended: Promise<void>): void {
  check(context, id);
  void ended.then(() => monitorEnded(context, id));
}

export function monitorEnded(context: Context, id: string): void {
  check(context, id);
  const record = context.containers.all.get(id);
  if (record?.state === "running" && !context.closed.aborted) watchOrphan(context, id);
}

/** Interval at which a container without its monitor is looked at, milliseconds. */
const ORPHAN_CHECK_MS = 1000;

/** Conmon was killed but the container goes on: only a look now and then tells when it ends. */
export function watchOrphan(context: Context, id: string): void {
  check(context, id);
  const record = context.containers.all.get(id);
  if (record?.state !== "running" || context.closed.aborted) return;
  if (!isAlive(record.process) && !isAlive(record.monitor)) finish(context, record, undefined);
  else context.clock.setTimer(() => watchOrphan(context, id), ORPHAN_CHECK_MS);
}

/** Writes down how the container ended and wakes those who wait. `code` undefined: nobody knows. */
export function finish(context: Context, record: ContainerRecord, code: number | undefined): void {
  const outOfMemory = context.cgroups.oomKills(record.cgroup) > 0;
  const unknown = code === undefined;
  const reason = unknown ? "ContainerStatusUnknown" : code === 0 ? "Completed" : outOfMemory ? "OOMKilled" : "Error";
  const message = unknown ? "The container could not be located when the pod was terminated" : undefined;
  context.containers.change(record.id, {
    state: "exited",
    pid: 0,
    exitCode: code ?? 137,
    reason,
    ...(message === undefined ? {} : { message }),
    finishedAt: Math.max(exitTime(context, record.id), record.startedAt ?? 0), // file times are some milliseconds coarse
  });
  loseSharedNamespace(context, record);
  void tidy(context, record);
  const map = waitersOf(context);
  for (const wake of map.get(record.id) ?? []) wake();
  map.delete(record.id);
  context.emit({ type: "container-exited", sandboxId: record.sandboxId, containerId: record.id });
}

/**
 * Where the pause container was process 1 of the pod, its end takes all others along, and they are seen to end first. The sandbox is
 * lost at that moment, so nobody shall start anything in it again.
 */
function loseSharedNamespace(context: Context, record: ContainerRecord): void {
  const sandbox = context.sandboxes.all.get(record.sandboxId);
  if (sandbox?.config.namespaces.pid !== "pod" || sandbox.state !== "ready" || sandbox.pauseId === undefined) return;
  if (record.isPause || isEnding(context.containers.all.get(sandbox.pauseId)?.process)) {
    context.sandboxes.change(sandbox.id, { state: "not-ready" });
    context.emit({ type: "sandbox-stopped", sandboxId: sandbox.id });
  }
}

/** What a finished container no longer needs, though it is still listed: mounts, control group, runtime state. */
async function tidy(context: Context, record: ContainerRecord): Promise<void> {
  try {
    await removeRuntimeState(context, record);
    await releaseBundle(context, record.id);
  } catch (error) {
    context.logger.warn("a finished container could not be tidied up yet", {
      container: record.id,
      error: messageOf(error),
    });
  }
}

/**
 * What `runtime delete` does for a container whose process is gone, without starting a program: control group (a failed create leaks it in every
 * hierarchy) and state directory. Kills what was left behind in the group.
 */
export async function removeRuntimeState(context: Context, record: ContainerRecord): Promise<void> {
  const { paths } = context;
  await context.cgroups.remove(record.cgroup);
  for (const path of [
    join(paths.runtimeRoot(record.runtime), record.id),
    join(paths.exits, record.id),
    join(paths.persist, record.id),
  ])
    if (existsSync(path)) rmSync(path, { recursive: true, force: true });
}

function exitTime(context: Context, id: string): number {
  try {
    return Math.round(statSync(join(context.paths.exits, id)).mtimeMs);
  } catch {
    return context.clock.now(); // no exit file: conmon was killed
  }
}
