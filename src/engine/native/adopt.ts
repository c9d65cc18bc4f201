import { existsSync } from "node:fs";
import { join } from "node:path";
import { sandboxNamespaces } from "./bundle.ts";
import { discard, holdImages } from "./containers.ts";
import type { Context } from "./context.ts";
import { check, finish, watchOrphan } from "./exits.ts";
import { readExit } from "./monitor.ts";
import { keepPause } from "./pause.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";
import { destroy } from "./sandboxes.ts";
import { findMonitors, quietly, removeStrays } from "./strays.ts";
import { readIfThere } from "./sys/files.ts";
import { mountsUnder } from "./sys/mounter.ts";
import { identify, isAlive, type ProcessId, signalProcess } from "./sys/process.ts";

const KILL = 9;

/** Takes over what an earlier process left: what runs goes on, what ended meanwhile is told, what was half made is removed. */
export async function adopt(context: Context): Promise<void> {
  const pinned = new Set(context.sandboxes.all.size > 0 ? mountsUnder(join(context.paths.sandbox("x"), "..")) : []);
  const monitors = findMonitors(context);
  for (const record of [...context.containers.all.values()])
    await adoptContainer(context, record, monitors.get(record.id));
  for (const [id, monitor] of monitors) if (!context.containers.all.has(id)) signalProcess(context.libc, monitor, KILL);
  watchAdopted(context); // before new ones are started, which are children of ours
  for (const record of [...context.sandboxes.all.values()]) await adoptSandbox(context, record, pinned);
  await removeStrays(context);
}

async function adoptContainer(
  context: Context,
  record: ContainerRecord,
  monitor: ProcessId | undefined,
): Promise<void> {
  if (!record.complete || !context.sandboxes.all.has(record.sandboxId)) {
    await quietly(context, record.id, () => discard(context, record));
    return;
  }
  holdImages(context, record);
  if (record.state === "created") await adoptCreated(context, record, monitor);
  if (record.state === "running") resume(context, record);
}

/** A running container of the earlier process: it runs, or its exit file is there, or nobody knows. */
function resume(context: Context, record: ContainerRecord): void {
  const code = readExit(context.paths.exits, record.id);
  const ours = record.bootId === context.bootId && (isAlive(record.process) || isAlive(record.monitor));
  if (code !== undefined || !ours) finish(context, record, code);
}

/** Interval at which the monitors of adopted containers, which are nobody's children here, are looked at, milliseconds. */
const MONITOR_CHECK_MS = 2000;

/** One timer for all of them, and none when there are none. */
function watchAdopted(context: Context): void {
  const running = [...context.containers.all.values()].filter(({ state }) => state === "running").map(({ id }) => id);
  const watched = new Set(running);
  const look = () => {
    if (context.closed.aborted) return;
    for (const id of watched) {
      check(context, id);
      const record = context.containers.all.get(id);
      if (record?.state === "running" && isAlive(record.monitor)) continue;
      watched.delete(id);
      watchOrphan(context, id);
    }
    if (watched.size > 0) context.clock.setTimer(look, MONITOR_CHECK_MS);
  };
  look();
}

/**
 * A container that was not yet known to run. The earlier process may have ended in the middle of its start: once the runtime was told to
 * let it go, the pipe on which it waited is gone and its process is its own. What had not come that far never ran, so it is removed.
 */
async function adoptCreated(context: Context, record: ContainerRecord, monitor: ProcessId | undefined): Promise<void> {
  const { id, runtime } = record;
  const begun = existsSync(join(context.paths.bundle(id), "ctl"));
  if (!begun && !monitor) return;
  const main = identify(Number(readIfThere(join(context.paths.bundle(id), "pidfile")) ?? 0));
  const waiting = existsSync(join(context.paths.runtimeRoot(runtime), id, "exec.fifo"));
  const exited = readExit(context.paths.exits, id) !== undefined;
  if (((main && monitor) || exited) && !waiting) {
    const running = context.containers.change(id, {
      state: "running",
      startedAt: context.clock.now(),
      bootId: context.bootId,
      ...(main ? { process: main, pid: main.pid } : {}),
      ...(monitor ? { monitor } : {}),
    });
    if (running) resume(context, running);
    return;
  }
  for (const process of [monitor, main]) if (process) signalProcess(context.libc, process, KILL);
  await quietly(context, id, () => discard(context, record));
}

async function adoptSandbox(context: Context, record: SandboxRecord, pinned: ReadonlySet<string>): Promise<void> {
  if (!record.complete) {
    await quietly(context, record.id, () => destroy(context, record));
    return;
  }
  const { id, ips, attachment, config } = record;
  if (attachment) context.network.adopt({ id, ips, attachment, config });
  if (record.state !== "ready") return;
  const intact = Object.values(sandboxNamespaces(context, record)).every((file) => pinned.has(file));
  const pause = [...context.containers.all.values()].find(
    (container) => container.isPause && container.sandboxId === id,
  );
  if (pause) context.sandboxes.keep({ ...record, pauseId: pause.id });
  const shared = config.namespaces.pid === "pod" && pause?.state !== "running";
  if (!intact || shared) context.sandboxes.change(id, { state: "not-ready" });
  else await context.sandboxLock.run(id, () => keepPause(context, id));
}
