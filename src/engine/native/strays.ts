import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { hasCode, messageOf } from "#base";
import type { Context } from "./context.ts";
import { identify, type ProcessId } from "./sys/process.ts";

/** Removes directories and groups that belong to no record: leftovers of steps that were cut off before they were written down. */
export async function removeStrays(context: Context): Promise<void> {
  const { paths, mounter } = context;
  for (const [directory, known] of [
    [join(paths.bundle("x"), ".."), context.containers.all],
    [join(paths.sandbox("x"), ".."), context.sandboxes.all],
    [join(paths.layer("x"), ".."), context.containers.all],
  ] as const)
    for (const name of existsSync(directory) ? readdirSync(directory) : [])
      if (!known.has(name)) await quietly(context, name, () => mounter.removeTree(join(directory, name)));
  await removeStrayGroups(context);
}

/** `<parent>/pod…` and `<parent>/<qos>/pod…` of no sandbox. Kills what runs in them. */
async function removeStrayGroups(context: Context): Promise<void> {
  const known = new Set([...context.sandboxes.all.values()].map((sandbox) => sandbox.cgroup));
  for (const parent of ["", "/burstable", "/besteffort"].map((level) => `${context.cgroupParent}${level}`))
    for (const name of context.cgroups.children(parent)) {
      const group = `${parent}/${name}`;
      if (name.startsWith("pod") && !known.has(group))
        await quietly(context, group, () => context.cgroups.remove(group));
    }
}

/** The conmon processes of this engine by container, found by what they were started with. */
export function findMonitors(context: Context): Map<string, ProcessId> {
  const found = new Map<string, ProcessId>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const args = commandLine(name);
    if (basename(args[0] ?? "") !== "conmon" || args[args.indexOf("--exit-dir") + 1] !== context.paths.exits) continue;
    const id = args[args.indexOf("-c") + 1];
    const monitor = identify(Number(name));
    if (id !== undefined && monitor) found.set(id, monitor);
  }
  return found;
}

function commandLine(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch (error) {
    if (hasCode(error, "ENOENT", "ESRCH")) return []; // ended meanwhile
    throw error;
  }
}

/** Leftovers must not keep the engine from starting; the next start tries again. */
export async function quietly(context: Context, id: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    context.logger.warn("a leftover could not be removed", { id, error: messageOf(error) });
  }
}
