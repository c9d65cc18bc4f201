import { createReadStream, createWriteStream } from "node:fs";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { hasCode } from "#base";

export interface RotationPolicy {
  /** A log larger than this is rotated. */
  readonly maxSizeBytes: number;
  /** Files of one log that are kept, the one that is written to included; at least 2. */
  readonly maxFiles: number;
}

const ROTATED = /^\d{8}-\d{6}(?:\.\d+)?(\.gz)?$/;
const TEMPORARY = ".tmp";

/**
 * Rotates a log when it is too large: the log becomes `<log>.<time>`, older pieces are compressed, the oldest removed.
 * `reopen` makes the writer go on in a new file; when that fails the log has its old name again.
 *
 * Source: https://kubernetes.io/docs/concepts/cluster-administration/logging/#log-rotation
 *
 * @returns whether it was rotated
 */
export async function rotateLog(
  path: string,
  policy: RotationPolicy,
  deps: { now: () => number; reopen: () => Promise<void> },
): Promise<boolean> {
  const size = await sizeOf(path);
  if (size === undefined) {
    await deps.reopen();
    return false;
  }
  if (size < policy.maxSizeBytes) return false;
  const pieces = await clearedPieces(path);
  const excess = pieces.length - Math.max(0, policy.maxFiles - 2);
  for (const piece of pieces.splice(0, Math.max(0, excess))) await rm(piece, { force: true });
  for (const piece of pieces) if (!piece.endsWith(".gz")) await compress(piece);
  const rotated = await freeName(path, deps.now());
  await rename(path, rotated);
  try {
    await deps.reopen();
  } catch (error) {
    if ((await sizeOf(path)) === undefined) await rename(rotated, path);
    throw error;
  }
  return true;
}

/** Removes a log with all its pieces. */
export async function removeLog(path: string): Promise<void> {
  for (const piece of await pieces(path)) await rm(piece, { force: true });
  await rm(path, { force: true });
}

/** Pieces in order of age, oldest first, after removing what a broken-off compression left. */
async function clearedPieces(path: string): Promise<string[]> {
  const all = await pieces(path);
  const kept: string[] = [];
  for (const piece of all) {
    if (piece.endsWith(TEMPORARY) || all.includes(`${piece}.gz`)) await rm(piece, { force: true });
    else kept.push(piece);
  }
  return kept.sort();
}

async function pieces(path: string): Promise<string[]> {
  const prefix = `${basename(path)}.`;
  const names = await readdir(dirname(path)).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  });
  return names
    .filter((name) => name.startsWith(prefix) && ROTATED.test(name.slice(prefix.length).replace(TEMPORARY, "")))
    .map((name) => join(dirname(path), name));
}

async function compress(path: string): Promise<void> {
  const temporary = `${path}.gz${TEMPORARY}`;
  await pipeline(createReadStream(path), createGzip(), createWriteStream(temporary, { mode: 0o640 }));
  await rename(temporary, `${path}.gz`);
  await rm(path);
}

/** `<log>.20060102-150405`; with a number behind it when two rotations fall into one second. */
async function freeName(path: string, now: number): Promise<string> {
  const stamp = new Date(now).toISOString().slice(0, 19).replaceAll("-", "").replaceAll(":", "").replace("T", "-");
  const taken = new Set((await pieces(path)).map((piece) => piece.replace(/\.gz$/, "")));
  let name = `${path}.${stamp}`;
  for (let n = 1; taken.has(name); n++) name = `${path}.${stamp}.${n}`;
  return name;
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
