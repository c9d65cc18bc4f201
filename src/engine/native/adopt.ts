import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#base";
import { sandboxNamespaces } from "./bundle.ts";
import { discard, holdImages } from "./containers.ts";
import type { Context } from "./context.ts";
import { check, finish, watchOrphan } from "./exits.ts";
import { readExit } from "./monitor.ts";
import { keepPause } from "./pause.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";
import { destroy } from "./sandboxes.ts";
import { readIfThere } from "./sys/files.ts";
import { mountsUnder } from "./sys/mounter.ts";
import { identify, isAlive, signalProcess } from "./sys/process.ts";

const KILL = 9;

/** Takes over what an earlier process left: what runs goes on, what ended meanwhile is told, what was half made is removed. */
export async function adopt(context: Context): Promise<void> {
  const pinned = new Set(context.sandboxes.all.size > 0 ? mountsUnder(join(context.paths.sandbox("x"), "..")) : []);
  for (const record of [...context.containers.all.values()]) await adoptContainer(context, record);
  for (const record of [...context.sandboxes.all.values()]) await adoptSandbox(context, record, pinned);
  await removeStrays(context);
}

async function adoptContainer(context: Context, record: ContainerRecord): Promise<void> {
  if (!record.complete || !context.sandboxes.all.has(record.sandboxId)) {
    await quietly(context, record.id, () => discard(context, record));
    return;
  }
  holdImages(context, record);
  if (record.starting) return finishStart(context, record);
  if (record.state === "running") resume(context, record);
}

/** A running container of the earlier process: it runs, or its exit file is there, or nobody knows. */
function resume(context: Context, record: ContainerRecord): void {
  const code = readExit(context.paths.exits, record.id);
  const ours = record.bootId === context.bootId && (isAlive(record.process) || isAlive(record.monitor));
  if (code !== undefined || !ours) finish(context, record, code);
  else watchMonitorOf(context, record.id);
}

/** Interval at which the monitors of adopted containers, which are nobody's children here, are looked at, milliseconds. */
const MONITOR_CHECK_MS = 2000;

function watchMonitorOf(context: Context, id: string): void {
  check(context, id);
  const record = context.containers.all.get(id);
  if (record?.state !== "running") return;
  if (isAlive(record.monitor)) context.clock.setTimer(() => watchMonitorOf(context, id), MONITOR_CHECK_MS);
  else watchOrphan(context, id);
}

/**
 * The earlier process ended between the creation of the container's process and the word that it runs. Whether the runtime had been
 * told to start it can be seen: its process is then no longer the runtime's own.
 */
async function finishStart(context: Context, record: ContainerRecord): Promise<void> {
  const main = record.process ?? createdProcess(context, record);
  const monitor =
    record.monitor ?? identify(Number(readIfThere(join(context.paths.bundle(record.id), "conmon.pid")) ?? 0));
  const waiting = existsSync(join(context.paths.runtimeRoot(record.runtime), record.id, "exec.fifo"));
  const code = readExit(context.paths.exits, record.id);
  const known = { ...(main ? { process: main, pid: main.pid } : {}), ...(monitor ? { monitor } : {}) };
  if ((isAlive(main) || code !== undefined) && !waiting) {
    const running = context.containers.change(record.id, {
      ...known,
      state: "running",
      starting: false,
      startedAt: context.clock.now(),
    });
    if (running) resume(context, running);
    return;
  }
  if (isAlive(main)) signalProcess(context.libc, main, KILL);
  await context.cgroups.remove(record.cgroup);
  await quietly(context, record.id, () => discard(context, record)); // it never ran: the kubelet makes a new one
}

function createdProcess(context: Context, record: ContainerRecord): ReturnType<typeof identify> {
  return record.bootId === context.bootId
    ? identify(Number(readIfThere(join(context.paths.bundle(record.id), "pidfile")) ?? 0))
    : undefined;
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
  const pause = context.containers.all.get(record.pauseId ?? "");
  const shared = config.namespaces.pid === "pod" && pause?.state !== "running";
  if (!intact || shared) context.sandboxes.change(id, { state: "not-ready" });
  else await context.sandboxLock.run(id, () => keepPause(context, id));
}

/** Directories and groups that belong to no record: leftovers of a step that was cut off before it was written down. */
async function removeStrays(context: Context): Promise<void> {
  for (const [directory, known] of [
    [join(context.paths.bundle("x"), ".."), context.containers.all],
    [join(context.paths.sandbox("x"), ".."), context.sandboxes.all],
    [join(context.paths.layer("x"), ".."), context.containers.all],
  ] as const) {
    for (const name of existsSync(directory) ? readdirSync(directory) : []) {
      if (known.has(name)) continue;
      await quietly(context, name, () => context.mounter.removeTree(join(directory, name)));
    }
  }
}

async function quietly(context: Context, id: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    context.logger.warn("a leftover could not be removed", { id, error: messageOf(error) });
  }
}
