import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { hasCode } from "#base";
import { parseCriLine } from "./cri-line.ts";

const BLOCK = 64 * 1024;
const NEWLINE = 0x0a;

/**
 * Where to begin in order to give the last `lines` lines of a file that is `size` bytes long. A line in several pieces
 * counts once; a last one without an end counts too.
 */
export async function tailStart(file: FileHandle, size: number, lines: number): Promise<number> {
  if (lines <= 0) return size;
  let wanted = lines;
  let end = size;
  let rest: Buffer = Buffer.alloc(0);
  let last = true;
  while (end > 0) {
    const start = Math.max(0, end - BLOCK);
    const block = Buffer.concat([await readExactly(file, start, end - start), rest]);
    // Whole lines of the block, from the last to the first; its beginning may be the end of an earlier line.
    let to = block.length;
    for (;;) {
      const newline = to > 0 ? block.lastIndexOf(NEWLINE, to - 1) : -1;
      if (newline < 0) break;
      const line = block.subarray(newline + 1, to);
      if (line.length > 0 && endsLine(line, last) && wanted-- === 0) return start + to + (to < size - start ? 1 : 0);
      if (line.length > 0) last = false;
      to = newline;
    }
    rest = Buffer.from(block.subarray(0, to));
    end = start;
    if (end === 0) {
      if (rest.length > 0 && endsLine(rest, last) && wanted-- === 0) return Math.min(size, to + 1);
      return 0;
    }
  }
  return 0;
}

/** Whether this piece is the last one of its line; the last piece of the file always is. */
const endsLine = (line: Buffer, last: boolean): boolean => last || parseCriLine(line)?.partial !== true;

async function readExactly(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** A log file that is open for reading, and the piece that follows it after a rotation. */
export interface LogPiece extends AsyncDisposable {
  readonly file: FileHandle;
  readonly inode: number;
}

/** @throws ENOENT when there is none */
export async function openLog(path: string): Promise<LogPiece> {
  const file = await open(path, "r");
  try {
    const { ino } = await file.stat();
    return { file, inode: ino, [Symbol.asyncDispose]: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * The piece that was begun after `piece`, once the writer has turned to it: the next of the rotated ones, or the log itself.
 * Undefined while `piece` is the one that is written to.
 */
export async function nextPiece(path: string, piece: LogPiece): Promise<LogPiece | undefined> {
  const current = await inodeOf(path);
  if (current === undefined || current === piece.inode) return undefined;
  const rotated = await rotatedPieces(path);
  const inodes = await Promise.all(rotated.map(inodeOf));
  // A piece that is not among them was compressed meanwhile: all that are left are newer.
  for (const candidate of rotated.slice(inodes.indexOf(piece.inode) + 1)) {
    const next = await openLog(candidate).catch(absent);
    if (next) return next;
  }
  return openLog(path).catch(absent);
}

/** Rotated pieces of a log that are not compressed, oldest first. */
export async function rotatedPieces(path: string): Promise<string[]> {
  const prefix = `${basename(path)}.`;
  const names = await readdir(dirname(path)).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  });
  return names
    .filter((name) => name.startsWith(prefix) && /^\d{8}-\d{6}(\.\d+)?$/.test(name.slice(prefix.length)))
    .sort()
    .map((name) => join(dirname(path), name));
}

async function inodeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino;
  } catch (error) {
    return absent(error);
  }
}

function absent(error: unknown): undefined {
  if (hasCode(error, "ENOENT")) return undefined;
  throw error;
}
