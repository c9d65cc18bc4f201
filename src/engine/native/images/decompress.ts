import type { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { EngineError } from "../../errors.ts";

export type Compression = "none" | "gzip" | "zstd";

/** Tells the compression by the first bytes. @throws EngineError `invalid-archive` for a kind that is not supported */
export function sniffCompression(start: Buffer): Compression {
  const magic = start.toString("latin1", 0, 6);
  if (magic.startsWith("\x1f\x8b")) return "gzip";
  // A zstd stream may begin with a skippable frame (zstd:chunked puts some at the end, estargz-like tools in front).
  const isSkippable = magic.slice(1, 4) === "\x2a\x4d\x18" && (magic.charCodeAt(0) & 0xf0) === 0x50;
  if (magic.startsWith("\x28\xb5\x2f\xfd") || isSkippable) return "zstd";
  if (magic.startsWith("BZh")) throw unsupported("bzip2");
  if (magic.startsWith("\xfd7zXZ\0")) throw unsupported("xz");
  return "none";
}

/** The plain bytes of a stream that is plain, gzip or zstd. Memory: a few chunks. */
export async function* decompress(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    const first: Buffer[] = [];
    let length = 0;
    while (length < 6) {
      const next = await iterator.next();
      if (next.done) break;
      first.push(next.value);
      length += next.value.length;
    }
    const start = Buffer.concat(first);
    const compression = sniffCompression(start);
    const rest = async function* () {
      if (start.length > 0) yield start;
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
    };
    if (compression === "none") yield* rest();
    else yield* inflate(rest(), compression);
  } finally {
    await iterator.return?.();
  }
}

async function* inflate(source: AsyncIterable<Buffer>, kind: "gzip" | "zstd"): AsyncGenerator<Buffer> {
  const inflater = kind === "gzip" ? createGunzip({ chunkSize: CHUNK }) : createZstdDecompress({ chunkSize: CHUNK });
  let failure: unknown;
  const feed = async () => {
    for await (const chunk of source) {
      if (inflater.destroyed) return;
      if (!inflater.write(chunk)) await writable(inflater);
    }
    inflater.end();
  };
  const feeding = feed().catch((error) => {
    failure = error;
    inflater.destroy();
  });
  try {
    yield* inflater as unknown as Readable as AsyncIterable<Buffer>;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw new EngineError("invalid-archive", `the ${kind} stream is corrupt or truncated`, { cause: error });
  } finally {
    inflater.destroy();
    await feeding;
  }
  if (failure !== undefined) throw failure;
}

function writable(stream: NodeJS.EventEmitter): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}

const CHUNK = 256 * 1024;
const unsupported = (kind: string) =>
  new EngineError("invalid-archive", `${kind} compression is not supported: use gzip, zstd or none`);
