import { watch } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { Readable } from "node:stream";
import type { Clock } from "#base";
import { type CriLine, parseCriLine, shownTime } from "./cri-line.ts";
import { type LogPiece, nextPiece, openLog, tailStart } from "./log-file.ts";

export interface ReadLogOptions {
  /** Go on after the end, until the container has ended. */
  readonly follow: boolean;
  readonly timestamps: boolean;
  /** Lines older than this are left out, milliseconds since the epoch. */
  readonly since?: number;
  /** Only the last so many lines. */
  readonly tailLines?: number;
  readonly limitBytes?: number;
  readonly stream?: "stdout" | "stderr";
  readonly signal?: AbortSignal;
  /** Tells whether the container has ended; all it wrote is in the file by then. Needed to follow. */
  readonly ended?: () => boolean;
  /** Calls `listener` when `ended` may have changed. */
  readonly onEnded?: (listener: () => void) => Disposable;
}

/** How long a follower waits at most before it looks by itself, milliseconds: an event could be lost. */
const LOOK_AGAIN = 1000;
const BLOCK = 64 * 1024;

/**
 * The content of a container's log, as `kubectl logs` gives it: lines in pieces joined, filtered, with times if asked for.
 * Following survives rotation: no line is lost as long as the rotated piece is there.
 *
 * @throws ENOENT when there is no log
 */
export async function readLog(path: string, options: ReadLogOptions, deps: { clock: Clock }): Promise<Readable> {
  const piece = await openLog(path);
  return Readable.from(output(path, piece, options, deps.clock), {
    objectMode: false,
    highWaterMark: BLOCK,
    ...(options.signal ? { signal: options.signal } : {}),
  });
}

async function* output(
  path: string,
  first: LogPiece,
  options: ReadLogOptions,
  clock: Clock,
): AsyncGenerator<Buffer, void, void> {
  const format = createFormatter(options);
  let piece = first;
  using waiter = options.follow ? createWaiter(path, options, clock) : undefined;
  try {
    const { size } = await piece.file.stat();
    const start = options.tailLines === undefined ? 0 : await tailStart(piece.file, size, options.tailLines);
    const reader = createLineReader(start);
    if (!options.follow) {
      yield* reader.read(piece.file, format, size);
      yield* reader.rest(format);
      return;
    }
    while (!format.full && !options.signal?.aborted) {
      // Asked before reading: what was written before the end is read then.
      const ended = options.ended?.() ?? false;
      const next = await nextPiece(path, piece);
      yield* reader.read(piece.file, format);
      if (format.full) return;
      if (next) {
        await piece[Symbol.asyncDispose]();
        piece = next;
        reader.rewind();
      } else if (ended) {
        yield* reader.rest(format);
        return;
      } else await waiter?.wait();
    }
  } finally {
    await piece[Symbol.asyncDispose]();
  }
}

interface Formatter {
  /** True once `limitBytes` are used up. */
  readonly full: boolean;
  /** The output for a line; `ended`: its line end was there. */
  line(line: Buffer, ended: boolean): Buffer[];
}

function createFormatter(options: ReadLogOptions): Formatter {
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  // Streams whose last piece was not the end of its line.
  const open = { stdout: false, stderr: false };
  const limited = (parts: Buffer[]): Buffer[] => {
    const result: Buffer[] = [];
    for (const part of parts) {
      if (left <= 0) break;
      result.push(part.length > left ? part.subarray(0, left) : part);
      left -= part.length;
    }
    return result;
  };
  const wanted = (line: CriLine) =>
    (options.stream === undefined || line.stream === options.stream) &&
    (options.since === undefined || Date.parse(line.time) >= options.since);
  return {
    get full() {
      return left <= 0;
    },
    line(raw, ended) {
      const line = parseCriLine(raw);
      if (!line || !wanted(line)) return [];
      const prefix = options.timestamps && !open[line.stream] ? [Buffer.from(`${shownTime(line.time)} `)] : [];
      open[line.stream] = line.partial;
      return limited([...prefix, line.content, ...(line.partial || !ended ? [] : [NEWLINE])]);
    },
  };
}

const NEWLINE = Buffer.from("\n");

interface LineReader {
  /** Output for all whole lines up to the end of the file (or `limit`); goes on there the next time. */
  read(file: FileHandle, format: Formatter, limit?: number): AsyncGenerator<Buffer, void, void>;
  /** Output for a last line that has no end. */
  rest(format: Formatter): Generator<Buffer, void, void>;
  /** The next read is from the beginning of another file. */
  rewind(): void;
}

function createLineReader(start: number): LineReader {
  let position = start;
  let kept: Buffer = Buffer.alloc(0);
  return {
    async *read(file, format, limit = Number.POSITIVE_INFINITY) {
      const buffer = Buffer.alloc(BLOCK);
      while (!format.full) {
        const { bytesRead } = await file.read(buffer, 0, Math.min(BLOCK, limit - position), position);
        if (bytesRead === 0) return;
        position += bytesRead;
        const data = Buffer.concat([kept, buffer.subarray(0, bytesRead)]);
        const parts: Buffer[] = [];
        let from = 0;
        for (let to = data.indexOf(NEWLINE); to >= 0; to = data.indexOf(NEWLINE, from)) {
          parts.push(...format.line(data.subarray(from, to), true));
          from = to + 1;
        }
        kept = data.subarray(from);
        if (parts.length > 0) yield Buffer.concat(parts);
      }
    },
    *rest(format) {
      if (kept.length === 0) return;
      const parts = format.line(kept, false);
      kept = Buffer.alloc(0);
      if (parts.length > 0) yield Buffer.concat(parts);
    },
    rewind() {
      position = 0;
      kept = Buffer.alloc(0);
    },
  };
}

/** Waits for changes of a log. One that comes while nobody waits ends the next wait at once. */
function createWaiter(path: string, options: ReadLogOptions, clock: Clock): Disposable & { wait(): Promise<void> } {
  let changed = true;
  let wake = () => {};
  const notice = () => {
    changed = true;
    wake();
  };
  const name = basename(path);
  // The directory, since the log is replaced when it is rotated.
  const watcher = watch(dirname(path), { persistent: false }, (_event, file) => {
    if (file === null || file === name) notice();
  });
  // The directory was removed: looking again finds out.
  watcher.on("error", notice);
  const ended = options.onEnded?.(notice);
  options.signal?.addEventListener("abort", notice, { once: true });
  return {
    async wait() {
      if (!changed) {
        await new Promise<void>((resolve) => {
          const timer = clock.setTimer(resolve, LOOK_AGAIN);
          wake = () => {
            timer.clear();
            resolve();
          };
        });
      }
      changed = false;
    },
    [Symbol.dispose]() {
      watcher.close();
      ended?.[Symbol.dispose]();
      options.signal?.removeEventListener("abort", notice);
      wake();
    },
  };
}
