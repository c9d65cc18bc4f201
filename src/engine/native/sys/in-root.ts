import { closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "#base";
import { type Libc, O_CLOEXEC, O_PATH, RESOLVE } from "./libc.ts";

/** Largest /etc/passwd or /etc/group that is read from an image. */
const MAX_FILE_BYTES = 4 << 20;

/** A file of an untrusted root, its symlinks resolved inside that root. Empty text where there is none or it is no file. */
export function readInRoot(libc: Libc | undefined, root: string, path: string): string {
  try {
    const fd = libc
      ? openInRoot(libc, root, path, constants.O_RDONLY | constants.O_NONBLOCK)
      : openSync(checkedPath(root, path), "r");
    try {
      const status = fstatSync(fd);
      return status.isFile() && status.size <= MAX_FILE_BYTES ? readFileSync(fd, "utf8") : "";
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EXDEV", "EISDIR")) return "";
    throw error;
  }
}

/** Makes a directory with its parents inside an untrusted root. */
export function makeDirectoryInRoot(libc: Libc | undefined, root: string, path: string): void {
  if (!libc) {
    let at = root;
    for (const part of partsOf(path)) {
      makeUnlessThere(join(at, part));
      at = checkedPath(root, join(at, part).slice(root.length));
    }
    return;
  }
  let at = "";
  for (const part of partsOf(path)) {
    const parent = openInRoot(libc, root, at, O_PATH | constants.O_DIRECTORY);
    try {
      makeUnlessThere(`/proc/self/fd/${parent}/${part}`);
    } finally {
      closeSync(parent);
    }
    at = `${at}/${part}`;
  }
}

/**
 * Opens `subPath` below `base` for a bind mount, so that nothing that changes afterwards can move it elsewhere. A symlink that
 * leads out of `base` fails with EXDEV. A missing path is made as directories with the mode of `base`.
 * @returns a descriptor; mount `/proc/self/fd/N`, then close it
 */
export function openBeneath(libc: Libc, base: string, subPath: string): number {
  const root = openSync(base, O_PATH | constants.O_DIRECTORY);
  try {
    const mode = fstatSync(root).mode & 0o7777;
    const open = (path: string) =>
      libc.openat2(root, path === "" ? "." : path, O_PATH | O_CLOEXEC, RESOLVE.BENEATH | RESOLVE.NO_MAGICLINKS);
    try {
      return open(subPath);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw error;
    }
    let at = "";
    for (const part of partsOf(subPath)) {
      const parent = open(at);
      try {
        makeUnlessThere(`/proc/self/fd/${parent}/${part}`, mode);
      } finally {
        closeSync(parent);
      }
      at = at === "" ? part : `${at}/${part}`;
    }
    return open(subPath);
  } finally {
    closeSync(root);
  }
}

/** Opens a path of an untrusted root, its symlinks resolved inside that root. */
export function openInRoot(libc: Libc, root: string, path: string, flags: number): number {
  const base = openSync(root, O_PATH | constants.O_DIRECTORY);
  try {
    return libc.openat2(
      base,
      partsOf(path).join("/") || ".",
      flags | O_CLOEXEC,
      RESOLVE.IN_ROOT | RESOLVE.NO_MAGICLINKS,
    );
  } finally {
    closeSync(base);
  }
}

/** Without openat2: resolves, then checks. A root that changes in between could still fool it, which `info.notices` says. */
export function checkedPath(root: string, path: string): string {
  const real = realpathSync(join(root, path));
  const base = realpathSync(root);
  if (real !== base && !real.startsWith(`${base}/`))
    throw Object.assign(new Error(`${path} leads out of ${root}`), { code: "EXDEV" });
  return real;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

function makeUnlessThere(path: string, mode = 0o755): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}
