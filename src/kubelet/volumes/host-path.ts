import type { Stats } from "node:fs";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { hasCode } from "#base";
import type { MakeVolume } from "./sources.ts";

/**
 * A file or directory of the host.
 *
 * Source: https://kubernetes.io/docs/concepts/storage/volumes/#hostpath
 */
export const hostPath: MakeVolume = ({ volume }) => {
  const { path = "", type = "" } = volume.hostPath ?? {};
  return {
    async setUp() {
      await checkHostPath(path, type);
      return { hostPath: path, readOnly: false, createMissing: type === "" };
    },
  };
};

/**
 * Sees to it that `path` is what `type` says: makes it for the `…OrCreate` types, checks it for the others.
 *
 * @throws Error `hostPath type check failed: <path> is not a directory` and the like
 */
export async function checkHostPath(path: string, type: string): Promise<void> {
  if (path.split("/").includes("..")) throw new Error(`invalid HostPath \`${path}\`: must not contain '..'`);
  if (type === "") return;
  const check = CHECKS[type];
  if (!check) throw new Error(`${type} is an invalid volume type`);
  let found = await look(path);
  if (!found && type.endsWith("OrCreate")) {
    if (type === "DirectoryOrCreate") await mkdir(path, { recursive: true, mode: 0o755 });
    else await writeFile(path, "", { flag: "a", mode: 0o644 });
    found = await look(path);
  }
  if (!found || !check.holds(found)) throw new Error(`hostPath type check failed: ${path} is not ${check.what}`);
}

const DIRECTORY = { what: "a directory", holds: (found: Stats) => found.isDirectory() };
const FILE = { what: "a file", holds: (found: Stats) => found.isFile() };
const CHECKS: Readonly<Record<string, { what: string; holds(found: Stats): boolean }>> = {
  DirectoryOrCreate: DIRECTORY,
  Directory: DIRECTORY,
  FileOrCreate: FILE,
  File: FILE,
  Socket: { what: "a socket file", holds: (found) => found.isSocket() },
  CharDevice: { what: "a character device", holds: (found) => found.isCharacterDevice() },
  BlockDevice: { what: "a block device", holds: (found) => found.isBlockDevice() },
};

async function look(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}
