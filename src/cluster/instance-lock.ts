import { mkdir, open, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { CodedError, hasCode } from "#base";

/** A process, told apart from a later one with the same pid by its start time (field 22 of /proc/<pid>/stat). */
export interface ProcessRef {
  readonly pid: number;
  readonly startTime: string;
}

/** The process that holds the lock file, if it still runs. */
export async function holderOf(path: string): Promise<ProcessRef | undefined> {
  const text = await readFile(path, "utf8").catch((error) => {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  });
  const match = /^(\d+) (\d+)\n$/.exec(text ?? "");
  if (!match) return undefined;
  const ref = { pid: Number(match[1]), startTime: match[2]! };
  return (await startTimeOf(ref.pid)) === ref.startTime ? ref : undefined;
}

/**
 * Takes the instance for this process: of two that start at once, one gets it. A lock of a process that is gone is taken over.
 * @throws CodedError `already-running`
 */
export async function takeLock(path: string): Promise<AsyncDisposable> {
  await mkdir(dirname(path), { recursive: true, mode: 0o711 });
  for (let tries = 0; tries < 3; tries++) {
    try {
      const file = await open(path, "wx", 0o644);
      await file.writeFile(`${process.pid} ${await startTimeOf(process.pid)}\n`);
      await file.close();
      return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
    } catch (error) {
      if (!hasCode(error, "EEXIST")) throw error;
    }
    const holder = await holderOf(path);
    if (holder) {
      throw new CodedError("already-running", `this instance is already run by process ${holder.pid} (${path})`, {
        hint: "Use it, or choose another data directory with SLIM_DATA.",
      });
    }
    await rm(path, { force: true });
  }
  throw new CodedError("already-running", `could not take ${path}: others take it at the same time`);
}

/** Undefined when there is no such process. Where there is no /proc, a later process with the same pid is not told apart. */
async function startTimeOf(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") return isAlive(pid) ? "0" : undefined;
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch((error) => {
    if (hasCode(error, "ENOENT", "ESRCH")) return undefined;
    throw error;
  });
  // the second field, the program's name, may hold spaces and parentheses
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields?.[0] === "Z") return undefined;
  return fields?.[19];
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if (hasCode(error, "ESRCH")) return false;
    if (hasCode(error, "EPERM")) return true;
    throw error;
  }
}
