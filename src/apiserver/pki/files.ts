import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "#base";

/** Where keys and certificates are kept. */
export interface Files {
  read(name: string): string | undefined;
  /** Replaces the file as a whole. */
  write(name: string, content: string): void;
}

export function memoryFiles(): Files {
  const kept = new Map<string, string>();
  return { read: (name) => kept.get(name), write: (name, content) => void kept.set(name, content) };
}

export function directoryFiles(dir: string): Files {
  return {
    read(name) {
      try {
        return readFileSync(join(dir, name), "utf8");
      } catch (error) {
        if (hasCode(error, "ENOENT")) return undefined;
        throw error;
      }
    },
    write(name, content) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      writePrivateFile(join(dir, name), content);
    },
  };
}

/** Writes `path` with mode 0600, atomically: readers see the old or the new content, also after a crash. */
export function writePrivateFile(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const file = openSync(temporary, "w", 0o600);
  try {
    writeSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}
