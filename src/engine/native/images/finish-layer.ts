import { chmodSync, chownSync, lstatSync, mkdirSync, readlinkSync, type Stats } from "node:fs";
import { hasCode } from "#base";
import { EngineError } from "../../errors.ts";
import type { Inodes } from "./inodes.ts";

/**
 * Gives an unpacked layer its overlayfs form: `.wh.X` becomes a character device 0/0 named X, `.wh..wh..opq` marks its
 * directory opaque. Source: OCI image spec, "Layer Filesystem Changeset", and the kernel's overlayfs page.
 */
export async function applyWhiteouts(root: string, whiteouts: readonly string[], inodes: Inodes): Promise<void> {
  for (const path of whiteouts) {
    const slash = path.lastIndexOf("/");
    const name = path.slice(slash + 1).slice(PREFIX.length);
    const directory = resolveDirectory(root, slash < 0 ? [] : path.slice(0, slash).split("/"));
    if (name === ".wh..opq") await inodes.opaque(directory);
    else if (name === "" || name === "." || name === "..") {
      throw new EngineError("invalid-archive", `entry ${JSON.stringify(path)} names no file to remove`);
    } else if (!name.startsWith(PREFIX)) await whiteOut(join(directory, name), inodes); // .wh..wh.plnk and such are notes of AUFS
  }
}

/**
 * Directories without an entry of their own look like those of the layer below; mode 0755 of root where there are none.
 * @param below roots of the layers under it, lowest first
 */
export function adoptImplied(root: string, implied: readonly string[], below: readonly string[]): void {
  for (const path of implied) {
    if (!directoryAt(root, path)) continue;
    const own = join(Buffer.from(root), path);
    const model = below.map((layer) => directoryAt(layer, path)).findLast((stats) => stats);
    chownSync(own, model?.uid ?? 0, model?.gid ?? 0);
    chmodSync(own, model ? model.mode & 0o7777 : 0o755);
  }
}

const PREFIX = ".wh.";

async function whiteOut(path: Buffer, inodes: Inodes): Promise<void> {
  const there = lstat(path);
  if (!there) return inodes.whiteout(path);
  // Removed and made again in one layer: the new one hides the old by itself, but a directory would merge with it.
  if (there.isDirectory()) await inodes.opaque(path);
}

/** The directory below root, made where it is missing; symbolic links are followed as if root were `/`. */
function resolveDirectory(root: string, parts: readonly string[]): Buffer {
  const todo = [...parts];
  let done: string[] = [];
  const here = () => join(Buffer.from(root), ...done);
  for (let links = 0; todo.length > 0; ) {
    const part = todo.shift()!;
    if (part === "" || part === ".") continue;
    if (part === "..") {
      done.pop();
      continue;
    }
    done.push(part);
    const stats = lstat(here());
    if (!stats) mkdirSync(here(), { mode: 0o755 });
    else if (stats.isSymbolicLink()) {
      links += 1;
      if (links > 40) throw new EngineError("invalid-archive", "too many symbolic links on the way to a whiteout");
      const target = readlinkSync(here(), "latin1");
      done = target.startsWith("/") ? [] : done.slice(0, -1);
      todo.unshift(...target.split("/"));
    } else if (!stats.isDirectory()) {
      throw new EngineError(
        "invalid-archive",
        `whiteout below ${JSON.stringify(done.join("/"))}, which is no directory`,
      );
    }
  }
  return here();
}

/** Stats of a directory that is reached through directories only: a symbolic link on the way could lead to the host's files. */
function directoryAt(root: string, path: string): Stats | undefined {
  let here: Buffer<ArrayBuffer> = Buffer.from(root);
  let stats: Stats | undefined;
  for (const part of path.split("/")) {
    here = join(here, part);
    stats = lstat(here);
    if (!stats?.isDirectory()) return undefined;
  }
  return stats;
}

function lstat(path: Buffer): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Names are bytes in latin1 text. */
function join(base: Buffer, ...names: string[]): Buffer<ArrayBuffer> {
  return Buffer.concat([base, ...names.map((name) => Buffer.from(`/${name}`, "latin1"))]);
}
