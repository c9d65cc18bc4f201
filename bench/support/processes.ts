import { readdirSync, readFileSync } from "node:fs";

export interface Usage {
  /** Resident memory of all, MiB. */
  readonly residentMiB: number;
  /** Memory that only these processes have, MiB. */
  readonly privateMiB: number;
  /** CPU time since their start, milliseconds. */
  readonly cpuMs: number;
  /** Bytes that went to disk since their start, KiB. */
  readonly writtenKiB: number;
}

export interface Processes {
  /** The daemon alone. */
  daemon(): Usage;
  /** The daemon and the monitors and containers of its pods. */
  all(): Usage;
}

/** @param pid the daemon; what it started carries its data directory on the command line or descends from such a process */
export function processesOf(pid: number): Processes {
  return {
    daemon: () => sum([pid]),
    all: () => sum(family(pid)),
  };
}

/** The daemon's session and everything whose parents lead to a monitor of the same directory. */
function family(pid: number): number[] {
  const directory = /SLIM_DATA=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, "utf8"))?.[1];
  const parents = new Map<number, number>();
  const roots = new Set([pid]);
  for (const name of readdirSync("/proc")) {
    const id = Number(name);
    if (!Number.isInteger(id)) continue;
    try {
      parents.set(id, Number(statOf(id)[1]));
      if (directory && readFileSync(`/proc/${id}/cmdline`, "utf8").includes(directory)) roots.add(id);
    } catch {
      // ended meanwhile
    }
  }
  const belongs = (id: number | undefined): boolean =>
    id !== undefined && id > 1 && (roots.has(id) || belongs(parents.get(id)));
  return [...parents.keys()].filter(belongs);
}

function sum(pids: readonly number[]): Usage {
  const total = { residentMiB: 0, privateMiB: 0, cpuMs: 0, writtenKiB: 0 };
  for (const pid of pids) {
    try {
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      const kib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(rollup)?.[1] ?? 0);
      const stat = statOf(pid);
      total.residentMiB += kib("Rss") / 1024;
      total.privateMiB += (kib("Private_Clean") + kib("Private_Dirty")) / 1024;
      total.cpuMs += (Number(stat[11]) + Number(stat[12])) * 10;
      total.writtenKiB += Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1] ?? 0) / 1024;
    } catch {
      // ended meanwhile
    }
  }
  return total;
}

/** Fields of /proc/PID/stat after the name, so that 0 is the state and 1 the parent. */
function statOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
}
