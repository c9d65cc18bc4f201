import type { ServerResponse } from "node:http";
import type { Clock } from "#base";
import type { WatchStream } from "#kinds";

/** A consumer that has this much unread and does not read for `STALL` is cut off; the client watches again. */
const MAX_BACKLOG = 4 * 1024 * 1024;
/** Never more than this for one consumer, beside what the start of the watch brought at once. */
const MAX_BACKLOG_AT_ALL = 64 * 1024 * 1024;
const STALL = 10_000;

/**
 * Writes a watch as newline-delimited JSON, one HTTP chunk an event, and resolves when it has ended. Chunks are framed once
 * for all watchers of the same event and go to the socket directly: a write that a thousand watchers see stays cheap.
 */
export function writeWatch(
  res: ServerResponse,
  watch: WatchStream,
  deps: { clock: Clock; closing: Set<() => void> },
): Promise<void> {
  return new Promise((resolve) => {
    const output = createOutput(res);
    let running: { stop(): void } | undefined;
    let ended = false;
    let stalled: { clear(): void } | undefined;
    let allowance = 0;

    const finish = () => {
      if (ended) return;
      ended = true;
      stalled?.clear();
      deps.closing.delete(finish);
      running?.stop();
      if (!res.destroyed) res.end();
      resolve();
    };
    const cut = () => {
      finish();
      res.destroy();
    };
    const watchdog = () => {
      if (stalled) return;
      const before = output.backlog();
      stalled = deps.clock.setTimer(() => {
        stalled = undefined;
        const now = output.backlog();
        if (now > MAX_BACKLOG && now >= before) cut();
        else if (now > MAX_BACKLOG) watchdog();
      }, STALL);
    };

    deps.closing.add(finish);
    res.once("close", finish);
    res.flushHeaders();
    const starting = { now: true };
    const handle = watch.start({
      event(_event, json) {
        if (ended) return;
        output.write(json());
        const backlog = output.backlog();
        if (starting.now) allowance = backlog;
        if (backlog <= MAX_BACKLOG) return;
        if (backlog > MAX_BACKLOG_AT_ALL + allowance) cut();
        else watchdog();
      },
      end: finish,
    });
    starting.now = false;
    running = handle;
    if (ended) handle.stop();
  });
}

interface Output {
  write(frame: Buffer): void;
  /** Bytes that the kernel has not taken. */
  backlog(): number;
}

const chunks = new WeakMap<Buffer, Buffer>();

function chunkOf(frame: Buffer): Buffer {
  let chunk = chunks.get(frame);
  if (!chunk) {
    chunk = Buffer.concat([Buffer.from(`${frame.length.toString(16)}\r\n`), frame, CRLF]);
    chunks.set(frame, chunk);
  }
  return chunk;
}
const CRLF = Buffer.from("\r\n");

function createOutput(res: ServerResponse): Output {
  const socket = res.socket;
  // A pipelined request has no socket before the responses ahead of it are done; HTTP/1.0 has no chunks.
  if (!socket || !res.chunkedEncoding)
    return { write: (frame) => void res.write(frame), backlog: () => res.writableLength };
  let corked = false;
  const uncork = () => {
    corked = false;
    socket.uncork();
  };
  return {
    write(frame) {
      if (!corked) {
        corked = true;
        socket.cork();
        process.nextTick(uncork);
      }
      socket.write(chunkOf(frame));
    },
    backlog: () => socket.writableLength,
  };
}
