import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ObservedContainer, ObservedPod } from "./observe.ts";
import type { WorkerDeps } from "./worker-deps.ts";

/** Removes dead runs but the newest dead one of each container, and sandboxes that nothing is in any more. */
export async function collectGarbage(deps: WorkerDeps, observed: ObservedPod): Promise<void> {
  for (const run of garbageOf(observed)) await removeRun(deps, run.id);
  const [latest, ...older] = observed.sandboxes;
  if (!latest) return;
  const kept = observed.containers.filter((run) => deps.engine.container(run.id) !== undefined);
  for (const sandbox of older) {
    if (sandbox.state === "ready" || kept.some((run) => run.sandboxId === sandbox.id)) continue;
    await deps.engine.removeSandbox(sandbox.id);
  }
}

/** Pure part: of each name the newest dead run stays (its end is `lastState`, its log `kubectl logs -p`). */
export function garbageOf(observed: ObservedPod): readonly ObservedContainer[] {
  const seen = new Set<string>();
  return observed.containers.filter((run) => {
    if (run.state === "running") return false;
    if (seen.has(run.name)) return true;
    seen.add(run.name);
    return false;
  });
}

/** The container and its log files. */
export async function removeRun(deps: Pick<WorkerDeps, "engine">, id: string): Promise<void> {
  const logPath = deps.engine.container(id)?.config.logPath;
  await deps.engine.removeContainer(id);
  if (!logPath) return;
  const directory = dirname(logPath);
  const name = basename(logPath);
  const files = await readdir(directory).catch(() => []);
  const own = files.filter((file) => file === name || file.startsWith(`${name}.`));
  await Promise.all(own.map((file) => rm(join(directory, file), { force: true })));
}
