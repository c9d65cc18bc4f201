import { Duplex } from "node:stream";
import { createHeaderCodec, type Headers } from "./headers.ts";

/** A stream that the client has opened. Ending it half-closes it. */
export interface SpdyStream extends Duplex {
  readonly id: number;
  readonly headers: Headers;
  /** Drops the stream at once and tells the client. */
  reset(): void;
}

export interface SpdyConnection {
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  /** Sends what is queued, then ends the connection. */
  close(): void;
}

const VERSION = 3;
const FIN = 0x01;
const SYN_STREAM = 1;
const SYN_REPLY = 2;
const RST_STREAM = 3;
const PING = 6;
const GOAWAY = 7;
/** RST_STREAM status: the stream is no longer needed. */
const CANCEL = 5;
const PROTOCOL_ERROR = 1;
/** Bytes of a data frame that is sent; larger writes are split. */
const MAX_DATA = 64 * 1024;
/** Bytes of a frame that is accepted. */
const MAX_FRAME = 4 * 1024 * 1024;

/**
 * The server's side of SPDY/3.1 as client-go speaks it: streams that the client opens, no server push, no priorities, no
 * flow control windows (client-go neither sends nor heeds them; TCP slows a sender down).
 * @see https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/
 */
export function serveConnection(socket: Duplex, onStream: (stream: SpdyStream) => void): SpdyConnection {
  const codec = createHeaderCodec();
  const streams = new Map<number, Stream>();
  let lastId = 0;
  const closed = new Promise<void>((resolve) => socket.once("close", resolve));
  void closed.then(() => {
    for (const stream of [...streams.values()]) stream.lost();
    codec.close();
  });
  socket.on("error", () => socket.destroy());

  const send = (frame: Buffer, done?: (error?: Error | null) => void) => {
    if (socket.writable) socket.write(frame, done);
    else done?.(new Error("the connection is closed"));
  };
  const control = (type: number, payload: Buffer, flags = 0) => {
    const head = Buffer.alloc(8);
    head.writeUInt16BE(0x8000 | VERSION, 0);
    head.writeUInt16BE(type, 2);
    head.writeUInt32BE((flags << 24) | payload.length, 4);
    send(Buffer.concat([head, payload]));
  };
  const reset = (id: number, status: number) => {
    streams.delete(id);
    control(RST_STREAM, words(id, status));
  };
  const transport: Transport = { send, reset, forget: (id) => void streams.delete(id) };

  const open = async (flags: number, payload: Buffer) => {
    const id = payload.readUInt32BE(0) & 0x7fffffff;
    const headers = await codec.decode(payload.subarray(10));
    if (id % 2 === 0 || id <= lastId) return reset(id, PROTOCOL_ERROR);
    lastId = id;
    const stream = new Stream(id, headers, transport);
    streams.set(id, stream);
    control(SYN_REPLY, Buffer.concat([words(id), await codec.encode({})]));
    if (flags & FIN) stream.push(null);
    onStream(stream);
  };

  const onFrame = (frame: Frame): Promise<void> | void => {
    if (frame.control === undefined) return streams.get(frame.id)?.receive(frame.payload, (frame.flags & FIN) !== 0);
    switch (frame.control) {
      case SYN_STREAM:
        return open(frame.flags, frame.payload);
      case RST_STREAM: {
        const id = frame.payload.readUInt32BE(0) & 0x7fffffff;
        streams.get(id)?.lost();
        return;
      }
      case PING:
        // Odd ids are the client's; it wants them back.
        if (frame.payload.readUInt32BE(0) % 2 === 1) control(PING, frame.payload);
        return;
      case GOAWAY:
        // No further streams will come; those that are open go on.
        return;
      default:
        return;
    }
  };
  void readFrames(socket, onFrame);
  return {
    closed,
    close() {
      control(GOAWAY, words(lastId, 0));
      socket.end();
    },
  };
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => void bytes.writeUInt32BE(value, 4 * i));
  return bytes;
}

interface Frame {
  /** Type of a control frame; undefined for data. */
  readonly control: number | undefined;
  /** Stream of a data frame. */
  readonly id: number;
  readonly flags: number;
  readonly payload: Buffer;
}

/** Hands frames on one after the other, waiting for each: header blocks depend on their order. */
async function readFrames(socket: Duplex, onFrame: (frame: Frame) => Promise<void> | void): Promise<void> {
  let pending: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of socket) {
      pending = pending.length === 0 ? (chunk as Buffer) : Buffer.concat([pending, chunk as Buffer]);
      for (;;) {
        const frame = frameOf(pending);
        if (!frame) break;
        pending = pending.subarray(8 + frame.payload.length);
        await onFrame(frame);
      }
    }
    socket.end();
  } catch {
    // A broken connection or one that does not speak SPDY: both end it.
    socket.destroy();
  }
}

function frameOf(bytes: Buffer): Frame | undefined {
  if (bytes.length < 8) return undefined;
  const first = bytes.readUInt32BE(0);
  const second = bytes.readUInt32BE(4);
  const length = second & 0xffffff;
  if (length > MAX_FRAME) throw new Error("a SPDY frame is too large");
  if (bytes.length < 8 + length) return undefined;
  const isControl = first >>> 31 === 1;
  const type = first & 0xffff;
  if (isControl && length < (type === SYN_STREAM ? 10 : 4)) throw new Error("a SPDY frame is too short");
  return {
    control: isControl ? type : undefined,
    id: first & 0x7fffffff,
    flags: second >>> 24,
    payload: bytes.subarray(8, 8 + length),
  };
}

interface Transport {
  send(frame: Buffer, done?: (error?: Error | null) => void): void;
  reset(id: number, status: number): void;
  forget(id: number): void;
}

class Stream extends Duplex implements SpdyStream {
  readonly id: number;
  readonly headers: Headers;
  readonly #transport: Transport;
  #wanted: (() => void) | undefined;

  constructor(id: number, headers: Headers, transport: Transport) {
    super({ allowHalfOpen: true });
    this.id = id;
    this.headers = headers;
    this.#transport = transport;
    // A reset by the client is an end, not a fault of ours.
    this.on("error", () => undefined);
  }

  /** Data of the client; the promise holds the connection until the reader has room again. */
  receive(payload: Buffer, fin: boolean): Promise<void> | undefined {
    if (this.destroyed || this.readableEnded) return undefined;
    const room = payload.length === 0 || this.push(payload);
    if (fin) this.push(null);
    if (room || fin) return undefined;
    return new Promise((resolve) => {
      this.#wanted = resolve;
      this.once("close", resolve);
    });
  }

  /** The client dropped the stream or the connection is gone. */
  lost(): void {
    this.#transport.forget(this.id);
    this.destroy();
  }

  reset(): void {
    if (!this.destroyed) this.#transport.reset(this.id, CANCEL);
    this.destroy();
  }

  override _read(): void {
    this.#wanted?.();
    this.#wanted = undefined;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    for (let at = 0; at < chunk.length; at += MAX_DATA) {
      const part = chunk.subarray(at, at + MAX_DATA);
      this.#transport.send(dataFrame(this.id, part, 0), at + MAX_DATA >= chunk.length ? done : undefined);
    }
    if (chunk.length === 0) done();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#transport.send(dataFrame(this.id, Buffer.alloc(0), FIN), () => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#transport.forget(this.id);
    this.#wanted?.();
    done(error);
  }
}

function dataFrame(id: number, data: Buffer, flags: number): Buffer {
  return Buffer.concat([words(id, ((flags << 24) | data.length) >>> 0), data], 8 + data.length);
}
