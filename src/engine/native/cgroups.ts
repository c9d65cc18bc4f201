import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Clock, hasCode } from "#base";
import type { ContainerStats, LinuxResources } from "../port.ts";
import { readIfThere } from "./sys/files.ts";

/** The host's control groups. Paths are relative to each hierarchy's root, as in the OCI field `linux.cgroupsPath`. */
export interface Cgroups {
  readonly version: 1 | 2;
  /** Makes the group with its ancestors and sets its limits. */
  create(path: string, resources: LinuxResources): void;
  /** Sets what `resources` names; leaves the rest alone. */
  update(path: string, resources: LinuxResources): void;
  /** Kills what runs in and below the group, then removes it from every hierarchy. Succeeds when it is gone. */
  remove(path: string): Promise<void>;
  /** Names of the groups right below it, in any hierarchy. */
  children(path: string): string[];
  /** Moves a process with all its threads. */
  join(path: string, pid: number): void;
  /** How often the kernel killed a process of this group, and only of this one, for want of memory. */
  oomKills(path: string): number;
  stats(path: string): ContainerStats;
}

export interface CgroupLayout {
  readonly version: 1 | 2;
  /** Controller name -> directory; on version 2 one entry `unified`. Named hierarchies too (`name=systemd`). */
  readonly hierarchies: ReadonlyMap<string, string>;
  /** The version 2 tree beside version 1, with the controllers that only it has. */
  readonly hybrid?: { readonly path: string; readonly controllers: readonly string[] };
}

/**
 * What to pass to mount(2) to make the moves of processes into groups fast on this host: `favordynmods` spares each first move a wait of 5
 * to 15 ms for all processors (Linux 6.0, Documentation/admin-guide/cgroup-v2.rst). It holds for all hierarchies, whichever has it; version 1
 * refuses it in a remount.
 * @returns undefined when there is no version 2 tree, or it has the option
 */
export function fasterMoves(
  mountinfo: string,
): { path: string; flags: readonly string[]; options: string } | undefined {
  for (const line of mountinfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , , path, flags = ""] = before.split(" ");
    const [type, , options = ""] = after.split(" ");
    if (type !== "cgroup2" || path === undefined) continue;
    const set = options.split(",").filter((option) => option !== "rw" && option !== "ro");
    return set.includes("favordynmods")
      ? undefined
      : { path, flags: flags.split(","), options: [...set, "favordynmods"].join(",") };
  }
  return undefined;
}

/** Reads /proc/self/mountinfo. @returns undefined where no cgroups are mounted */
export function readCgroupLayout(mountinfo: string): CgroupLayout | undefined {
  const hierarchies = new Map<string, string>();
  let unified: string | undefined;
  for (const line of mountinfo.split("\n")) {
    const [before, after] = line.split(" - ");
    const path = before?.split(" ")[4];
    const [type, , options] = after?.split(" ") ?? [];
    if (path === undefined) continue;
    if (type === "cgroup2") unified ??= path;
    if (type !== "cgroup") continue;
    for (const option of options?.split(",") ?? [])
      if (option !== "rw" && option !== "xattr" && !option.startsWith("release_agent")) hierarchies.set(option, path);
  }
  if (hierarchies.size === 0)
    return unified === undefined ? undefined : { version: 2, hierarchies: new Map([["unified", unified]]) };
  if (unified === undefined) return { version: 1, hierarchies };
  const controllers = (readIfThere(join(unified, "cgroup.controllers")) ?? "").split(/\s+/).filter(Boolean);
  return { version: 1, hierarchies, hybrid: { path: unified, controllers } };
}

export function createCgroups(clock: Clock, layout: CgroupLayout): Cgroups {
  const version = layout.version;
  const at = (controller: string, path: string) => {
    const root = layout.hierarchies.get(version === 2 ? "unified" : controller);
    return root === undefined ? undefined : join(root, path);
  };
  const roots = () => {
    const paths = new Set(layout.hierarchies.values());
    if (layout.hybrid) paths.add(layout.hybrid.path);
    return [...paths];
  };
  const read = (controller: string, path: string, file: string) => {
    const directory = at(controller, path);
    return directory === undefined ? undefined : readIfThere(join(directory, file));
  };
  const number = (text: string | undefined) => {
    const value = Number(text?.trim());
    return Number.isFinite(value) ? value : 0;
  };
  const update = (path: string, resources: LinuxResources) => {
    for (const [controller, file, value] of version === 2 ? settingsV2(resources) : settingsV1(resources)) {
      const directory = at(controller, path);
      if (directory !== undefined) writeFileSync(join(directory, file), value);
    }
  };
  return {
    version,
    create(path, resources) {
      if (version === 2) makeWithControllers(layout.hierarchies.get("unified")!, path);
      else for (const name of ["cpu", "memory", "pids", "cpuacct", "hugetlb"]) makeGroup(at(name, path));
      update(path, resources);
    },
    update,
    async remove(path) {
      for (const root of roots()) await removeTree(clock, join(root, path));
    },
    children: (path) => [
      ...new Set(roots().flatMap((root) => childGroups(join(root, path)).map((child) => basename(child)))),
    ],
    join(path, pid) {
      for (const name of version === 2 ? ["unified"] : ["memory", "name=systemd"]) {
        const directory = at(name, path);
        if (directory === undefined) continue;
        mkdirSync(directory, { recursive: true });
        writeFileSync(join(directory, "cgroup.procs"), String(pid));
      }
    },
    oomKills: (path) =>
      number(
        /^oom_kill (\d+)$/m.exec(
          read("memory", path, version === 2 ? "memory.events.local" : "memory.oom_control") ??
            read("memory", path, "memory.events") ??
            "",
        )?.[1],
      ),
    stats: (path) => (version === 2 ? statsV2 : statsV1)((controller, file) => read(controller, path, file)),
  };
}

/** Nothing where the host does not have the controller. */
function makeGroup(directory: string | undefined): void {
  if (directory !== undefined) mkdirSync(directory, { recursive: true });
}

type Setting = readonly [controller: string, file: string, value: string];

/** Version 1: https://docs.kernel.org/admin-guide/cgroup-v1/ */
function settingsV1(resources: LinuxResources): Setting[] {
  const settings: Setting[] = [];
  if (resources.cpuShares !== undefined) settings.push(["cpu", "cpu.shares", String(Math.max(2, resources.cpuShares))]);
  if (resources.cpuPeriod !== undefined) settings.push(["cpu", "cpu.cfs_period_us", String(resources.cpuPeriod)]);
  if (resources.cpuQuota !== undefined) settings.push(["cpu", "cpu.cfs_quota_us", String(resources.cpuQuota || -1)]);
  if (resources.memoryLimitBytes !== undefined)
    settings.push(["memory", "memory.limit_in_bytes", String(resources.memoryLimitBytes || -1)]);
  if (resources.pidsLimit !== undefined) settings.push(["pids", "pids.max", limitOrMax(resources.pidsLimit)]);
  for (const { pageSize, limit } of resources.hugepageLimits ?? [])
    settings.push(["hugetlb", `hugetlb.${pageSize}.limit_in_bytes`, String(limit)]);
  return settings;
}

/** Version 2: https://docs.kernel.org/admin-guide/cgroup-v2.html */
function settingsV2(resources: LinuxResources): Setting[] {
  const settings: Setting[] = [];
  if (resources.cpuShares !== undefined)
    settings.push(["cpu", "cpu.weight", String(sharesToWeight(resources.cpuShares))]);
  if (resources.cpuQuota !== undefined || resources.cpuPeriod !== undefined)
    settings.push(["cpu", "cpu.max", `${limitOrMax(resources.cpuQuota ?? -1)} ${resources.cpuPeriod ?? 100_000}`]);
  if (resources.memoryLimitBytes !== undefined)
    settings.push(["memory", "memory.max", limitOrMax(resources.memoryLimitBytes)]);
  if (resources.pidsLimit !== undefined) settings.push(["pids", "pids.max", limitOrMax(resources.pidsLimit)]);
  for (const { pageSize, limit } of resources.hugepageLimits ?? [])
    settings.push(["hugetlb", `hugetlb.${pageSize}.max`, String(limit)]);
  return settings;
}

const limitOrMax = (value: number) => (value > 0 ? String(value) : "max");

/** cpu.shares (2…262144) to cpu.weight (1…10000), KEP-2254. */
export function sharesToWeight(shares: number): number {
  return Math.floor(1 + ((Math.min(262_144, Math.max(2, shares)) - 2) * 9999) / 262_142);
}

/** A version 2 group gets a controller only if each of its ancestors passes it on. */
function makeWithControllers(root: string, path: string): void {
  let directory = root;
  for (const part of path.split("/").filter(Boolean)) {
    const wanted = ["cpu", "memory", "pids", "cpuset", "io", "hugetlb"].filter((name) =>
      readIfThere(join(directory, "cgroup.controllers"))?.split(/\s+/).includes(name),
    );
    if (wanted.length > 0)
      writeFileSync(join(directory, "cgroup.subtree_control"), wanted.map((name) => `+${name}`).join(" "));
    directory = join(directory, part);
    mkdirSync(directory, { recursive: true });
  }
}

function statsV1(read: (controller: string, file: string) => string | undefined): ContainerStats {
  const usage = Number(read("memory", "memory.usage_in_bytes") ?? 0);
  const stat = fieldsOf(read("memory", "memory.stat"));
  return {
    cpuUsageNanoseconds: Number(read("cpuacct", "cpuacct.usage") ?? 0),
    memoryUsageBytes: usage,
    memoryWorkingSetBytes: Math.max(0, usage - (stat.get("total_inactive_file") ?? 0)),
    memoryRssBytes: stat.get("total_rss") ?? 0,
    pids: Number(read("pids", "pids.current") ?? 0),
  };
}

function statsV2(read: (controller: string, file: string) => string | undefined): ContainerStats {
  const usage = Number(read("memory", "memory.current") ?? 0);
  const stat = fieldsOf(read("memory", "memory.stat"));
  return {
    cpuUsageNanoseconds: (fieldsOf(read("cpu", "cpu.stat")).get("usage_usec") ?? 0) * 1000,
    memoryUsageBytes: usage,
    memoryWorkingSetBytes: Math.max(0, usage - (stat.get("inactive_file") ?? 0)),
    memoryRssBytes: stat.get("anon") ?? 0,
    pids: Number(read("pids", "pids.current") ?? 0),
  };
}

function fieldsOf(text: string | undefined): Map<string, number> {
  const fields = new Map<string, number>();
  for (const line of text?.split("\n") ?? []) {
    const [name, value] = line.split(" ");
    if (name && value !== undefined) fields.set(name, Number(value));
  }
  return fields;
}

function processesBelow(directory: string): number[] {
  const own = readIfThere(join(directory, "cgroup.procs"))?.split("\n").filter(Boolean).map(Number) ?? [];
  return [...own, ...childGroups(directory).flatMap(processesBelow)];
}

function childGroups(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(directory, entry.name));
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENODEV")) return [];
    throw error;
  }
}

/** A group can be removed some milliseconds after its last process died; then the kernel says EBUSY. */
async function removeTree(clock: Clock, directory: string): Promise<void> {
  for (const child of childGroups(directory)) await removeTree(clock, child);
  for (let delay = 1; ; delay *= 2) {
    try {
      rmdirSync(directory);
      return;
    } catch (error) {
      if (hasCode(error, "ENOENT", "ENODEV")) return;
      if (!hasCode(error, "EBUSY") || delay > 2000) throw error;
    }
    for (const pid of processesBelow(directory)) killQuietly(pid);
    await clock.sleep(delay);
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}
