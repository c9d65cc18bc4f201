import { closeSync, constants, fstatSync, mkdirSync, openSync, unlinkSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { hasCode } from "#base";
import { type Libc, MS, MNT_DETACH } from "./sys/libc.ts";
import type { Run } from "./sys/run.ts";

/**
 * crun protects its own program from containers: unless it lies on a read-only mount it binds itself to one and starts once more, 1.2 ms
 * of each call. So a read-only bind of it is made once, at `directory`.
 * @returns the path to call
 */
export function sealCrun(libc: Libc | undefined, program: string, directory: string): string {
  if (!libc) return program;
  const sealed = join(directory, "crun");
  mkdirSync(dirname(sealed), { recursive: true, mode: 0o700 });
  try {
    libc.umount(sealed, MNT_DETACH); // of an earlier start; the program may have been upgraded since
  } catch (error) {
    if (!hasCode(error, "EINVAL", "ENOENT")) throw error;
  }
  writeFileSync(sealed, "", { flag: "a" });
  libc.mount(program, sealed, null, MS.BIND, null);
  libc.mount("none", sealed, null, MS.BIND | MS.REMOUNT | MS.RDONLY, null);
  return sealed;
}

/**
 * Lets a created container run. With crun that is one byte into the pipe on which the container's process waits, which is all that
 * `crun start` does for a container without hooks (5 ms of program start); where there is no such pipe the program is called.
 * @throws Error with what the runtime said
 */
export async function startCreated(
  run: Run,
  runtime: { name: string; program: string; root: string },
  id: string,
): Promise<void> {
  if (runtime.name === "crun" && releasePipe(join(runtime.root, id, "exec.fifo"))) return;
  const started = await run(runtime.program, ["--root", runtime.root, "start", id]);
  if (started.code !== 0) throw new Error(started.stderr || `${runtime.name} start: exit code ${started.code}`);
}

function releasePipe(path: string): boolean {
  let fd: number;
  try {
    fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENXIO")) return false; // no pipe, or nobody waits at it
    throw error;
  }
  try {
    if (!fstatSync(fd).isFIFO()) return false;
    unlinkSync(path);
    writeSync(fd, "\0");
    return true;
  } finally {
    closeSync(fd);
  }
}
