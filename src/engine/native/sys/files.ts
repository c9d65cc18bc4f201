import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hasCode } from "#base";

let serial = 0;

/**
 * Replaces the file in one step: a reader and a crash see the old or the new text, never a part of it. Synchronous: these are
 * small files, and a state change must be on disk before the step that it announces.
 */
export function writeAtomically(path: string, text: string, mode = 0o600): void {
  const temporary = `${path}.tmp-${process.pid}-${serial++}`;
  try {
    writeFileSync(temporary, text, { mode });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** The file's text, or undefined where there is none. Meant for /proc, cgroups and small state files. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENODEV", "ESRCH", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** A directory that only its owner enters. */
export function makePrivateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}
