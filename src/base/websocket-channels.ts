import { Readable, Writable } from "node:stream";

/** `[255, channel]` closes a channel in one direction (protocol v5). */
const CLOSE = 255;

/**
 * The `channel.k8s.io` protocols: every WebSocket message starts with the number of its channel.
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/ and KEP-4006
 */
export interface Channels {
  /** What the peer sends on `channel`. Reading slowly slows the peer down. */
  readable(channel: number): Readable;
  /** Writes go out as messages of `channel`; a write is done when the socket has taken it. */
  writable(channel: number): Writable;
  send(channel: number, data: Uint8Array): Promise<void>;
  /** Tells the peer that nothing more comes on `channel` (protocol v5). */
  end(channel: number): Promise<void>;
  close(): Promise<void>;
  readonly closed: Promise<void>;
}

/** What is used of a WebSocket of the package `ws`; named here so that the library's types need no other's. */
export interface ChannelSocket {
  once(event: "close", listener: () => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "message", listener: (data: unknown, binary: boolean) => void): unknown;
  send(data: string | Uint8Array, done: (error?: Error | null) => void): void;
  pause(): void;
  resume(): void;
  close(code: number): void;
  terminate(): void;
}

export function createChannels(socket: ChannelSocket, options: { base64: boolean }): Channels {
  const readables = new Map<number, Readable>();
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  /** Channels whose reader has no room; while there is one, nothing is read from the socket. */
  const full = new Set<number>();
  socket.on("error", () => socket.terminate());
  socket.on("message", (data, binary) => {
    const message = decode(data as Buffer, binary, options.base64);
    if (!message) return;
    const { channel, payload } = message;
    if (channel === CLOSE) {
      const target = readables.get(payload[0] ?? -1);
      if (target && !target.readableEnded) target.push(null);
      return;
    }
    const readable = readables.get(channel);
    if (readable && payload.length > 0 && !readable.readableEnded && !readable.push(payload)) {
      full.add(channel);
      socket.pause();
    }
  });
  void closed.then(() => {
    for (const readable of readables.values()) readable.push(null);
  });
  const channels: Channels = {
    readable(channel) {
      const readable = new Readable({
        read() {
          if (full.delete(channel) && full.size === 0) socket.resume();
        },
      });
      readables.set(channel, readable);
      return readable;
    },
    writable: (channel) =>
      new Writable({
        write(chunk: Buffer, _encoding, done) {
          channels.send(channel, chunk).then(() => done(), done);
        },
      }),
    send: (channel, data) =>
      new Promise((resolve, reject) => {
        const frame = options.base64
          ? `${channel}${Buffer.from(data).toString("base64")}`
          : Buffer.concat([Buffer.from([channel]), data], data.length + 1);
        socket.send(frame, (error) => (error ? reject(error) : resolve()));
      }),
    end: (channel) => channels.send(CLOSE, Uint8Array.of(channel)),
    async close() {
      socket.close(1000);
      await closed;
    },
    closed,
  };
  return channels;
}

function decode(data: Buffer, binary: boolean, base64: boolean): { channel: number; payload: Buffer } | undefined {
  if (data.length === 0) return undefined;
  if (!base64 || binary) return { channel: data[0]!, payload: data.subarray(1) };
  const channel = data[0]! - 0x30;
  return channel >= 0 && channel <= 9
    ? { channel, payload: Buffer.from(data.subarray(1).toString(), "base64") }
    : undefined;
}
