import { constants } from "node:os";
import { hasCode } from "#base";
import { readIfThere } from "./files.ts";
import type { Libc } from "./libc.ts";

/** A process that can't be mistaken for a later one with the same number. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks after boot, field 22 of /proc/PID/stat. */
  readonly startTime: string;
}

/** The start time of a process, or undefined when there is none or only its zombie. */
export function startTimeOf(pid: number): string | undefined {
  if (pid <= 0) return undefined;
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name in parentheses may hold anything, so count from its end: state is the first field after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

export function identify(pid: number): ProcessId | undefined {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? undefined : { pid, startTime };
}

export function isAlive(id: ProcessId | undefined): id is ProcessId {
  return id !== undefined && startTimeOf(id.pid) === id.startTime;
}

const PF_EXITING = 4;

/** True when the process is gone or on its way out, as the first of a namespace is while the kernel ends all others for it. */
export function isEnding(id: ProcessId | undefined): boolean {
  if (!isAlive(id)) return true;
  const stat = readIfThere(`/proc/${id.pid}/stat`) ?? "";
  const flags = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[6] ?? PF_EXITING);
  return (flags & PF_EXITING) !== 0;
}

/** Sends the signal to exactly this process. @returns false when it is gone */
export function signalProcess(libc: Libc | undefined, id: ProcessId, signal: number): boolean {
  try {
    if (!libc) {
      if (!isAlive(id)) return false;
      process.kill(id.pid, signal);
      return true;
    }
    const pidfd = libc.pidfdOpen(id.pid);
    try {
      if (!isAlive(id)) return false; // checked after the descriptor holds the number
      libc.pidfdSignal(pidfd, signal);
      return true;
    } finally {
      libc.close(pidfd);
    }
  } catch (error) {
    if (hasCode(error, "ESRCH", "EINVAL")) return false;
    throw error;
  }
}

/** `TERM`, `SIGTERM`, `15`, `SIGRTMIN+3` -> 15; undefined for what is no signal. */
export function signalNumber(name: string): number | undefined {
  const text = name.toUpperCase().trim();
  if (/^\d+$/.test(text)) return Number(text) >= 1 && Number(text) <= 64 ? Number(text) : undefined;
  const realtime = /^(?:SIG)?RTM(IN|AX)(?:([+-])(\d+))?$/.exec(text);
  if (realtime) {
    const offset = Number(realtime[3] ?? 0) * (realtime[2] === "-" ? -1 : 1);
    return (realtime[1] === "IN" ? 34 : 64) + offset;
  }
  return (constants.signals as Record<string, number>)[text.startsWith("SIG") ? text : `SIG${text}`];
}

/** Descendants of a process, itself first. */
export function processTree(pid: number): number[] {
  const found = [pid];
  for (let i = 0; i < found.length; i++) {
    const children = readIfThere(`/proc/${found[i]}/task/${found[i]}/children`);
    for (const child of children?.split(" ") ?? []) if (child) found.push(Number(child));
  }
  return found;
}

/** Of this boot: a state file of an earlier one speaks of processes that are gone. */
export function bootId(): string {
  return readIfThere("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
}
