import { createReadStream, createWriteStream, existsSync, realpathSync, statSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { hasCode, messageOf } from "#base";
import { EngineError } from "../../errors.ts";
import { decompress, sniffCompression } from "./decompress.ts";
import { cleanName } from "./extract-layer.ts";
import { createTarHeaders, type TarEntry } from "./tar-headers.ts";

/** The files of an image archive, to be read in any order and more than once. */
export interface Archive extends AsyncDisposable {
  has(path: string): boolean;
  /** The bytes of a file. @throws EngineError `invalid-archive` when there is none of this name */
  read(path: string): AsyncIterable<Buffer>;
  /** The whole of a small file. @throws EngineError `invalid-archive` when it is missing or over 8 MiB */
  readAll(path: string): Promise<Buffer>;
}

export interface OpenArchiveOptions {
  /** A file name that may be written: streams and compressed archives are kept there, plain, until the archive is closed. */
  readonly spool: string;
  /** Bytes that the spool may take. */
  readonly budget: number;
  readonly signal?: AbortSignal | undefined;
}

/** Opens a directory, a tar file or a tar stream; plain, gzip or zstd. @throws EngineError `invalid-archive`, `disk-full` */
export async function openArchive(source: string | Readable, options: OpenArchiveOptions): Promise<Archive> {
  if (typeof source !== "string") return spooled(source, options);
  let isDirectory: boolean;
  try {
    isDirectory = statSync(source).isDirectory();
  } catch (error) {
    throw new EngineError("invalid-archive", `cannot read the image archive ${source}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  if (isDirectory) return directoryArchive(source);
  const file = await open(source);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(6), 0, 6, 0);
    if (sniffCompression(buffer.subarray(0, bytesRead)) === "none") return await tarArchive(file);
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return spooled(createReadStream(source, { highWaterMark: CHUNK }), options);
}

async function spooled(source: Readable, { spool, budget, signal }: OpenArchiveOptions): Promise<Archive> {
  let size = 0;
  const counted = async function* () {
    for await (const chunk of decompress(source as AsyncIterable<Buffer>)) {
      size += chunk.length;
      if (size > budget) {
        throw new EngineError(
          "disk-full",
          `no space left on device: an archive needs over ${size} bytes, ${budget} are free`,
        );
      }
      yield chunk;
    }
  };
  const remove = () => rm(spool, { force: true });
  let file: FileHandle | undefined;
  try {
    await pipeline(counted, createWriteStream(spool, { mode: 0o600 }), signal ? { signal } : {});
    file = await open(spool);
    return await tarArchive(file, remove);
  } catch (error) {
    await file?.close();
    await remove();
    if (hasCode(error, "ENOSPC"))
      throw new EngineError("disk-full", "no space left on device while reading an archive");
    throw error;
  }
}

/** Indexes a plain tar by its headers; the data is read when it is asked for. Owns the handle once it returns. */
async function tarArchive(file: FileHandle, onClose: () => Promise<void> = async () => {}): Promise<Archive> {
  const entries = await indexTar(file);
  const find = (path: string): TarEntry | undefined => {
    let entry = entries.get(path);
    // `docker save` of old names a layer that two images share by a link.
    for (let hops = 0; entry && (entry.type === "1" || entry.type === "2") && hops < 8; hops++) {
      const from = entry.type === "2" ? cleanName(entry.name).split("/").slice(0, -1) : [];
      entry = entries.get(resolveLink(from, entry.link));
    }
    return entry && "0S".includes(entry.type) ? entry : undefined;
  };
  const read = (path: string) => {
    const entry = find(path);
    if (!entry) throw missing(path);
    return readRange(file, entry.offset, entry.size);
  };
  return {
    has: (path) => find(path) !== undefined,
    read,
    readAll: (path) => gather(path, read(path)),
    async [Symbol.asyncDispose]() {
      await file.close();
      await onClose();
    },
  };
}

async function indexTar(file: FileHandle): Promise<Map<string, TarEntry>> {
  const entries = new Map<string, TarEntry>();
  const headers = createTarHeaders((entry) => {
    if (entries.size >= MAX_FILES) throw new EngineError("invalid-archive", `the archive has over ${MAX_FILES} files`);
    entries.set(Buffer.from(cleanName(entry.name), "latin1").toString(), entry);
  });
  const { size } = await file.stat();
  const block = Buffer.alloc(16 * 1024);
  for (let at = 0; at < size && !headers.ended; ) {
    const skip = Math.min(headers.skippable, size - at);
    if (skip > 0) {
      headers.skipped(skip);
      at += skip;
      continue;
    }
    // A header at a time, as most of what follows it is data to be sought over.
    const { bytesRead } = await file.read(block, 0, Math.min(512, size - at), at);
    headers.push(Buffer.from(block.subarray(0, bytesRead)));
    at += bytesRead;
  }
  headers.end();
  return entries;
}

async function* readRange(file: FileHandle, start: number, length: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < length; ) {
    const { buffer, bytesRead } = await file.read(
      Buffer.allocUnsafe(Math.min(CHUNK, length - at)),
      0,
      undefined,
      start + at,
    );
    if (bytesRead === 0) throw new EngineError("invalid-archive", "the archive became shorter while it was read");
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}

function directoryArchive(root: string): Archive {
  const base = realpathSync(root);
  const locate = (path: string): string | undefined => {
    const wanted = join(base, cleanName(path));
    if (!existsSync(wanted)) return undefined;
    const real = realpathSync(wanted);
    return real.startsWith(base + sep) && statSync(real).isFile() ? real : undefined;
  };
  const read = (path: string): AsyncIterable<Buffer> => {
    const file = locate(path);
    if (!file) throw missing(path);
    return createReadStream(file, { highWaterMark: CHUNK });
  };
  return {
    has: (path) => locate(path) !== undefined,
    read,
    readAll: (path) => gather(path, read(path)),
    async [Symbol.asyncDispose]() {},
  };
}

async function gather(path: string, source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > MAX_DOCUMENT)
      throw new EngineError("invalid-archive", `${path} in the archive is over ${MAX_DOCUMENT} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function resolveLink(from: readonly string[], link: string): string {
  const parts = [...from];
  for (const part of link.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

const CHUNK = 256 * 1024;
const MAX_FILES = 200_000;
const MAX_DOCUMENT = 8 << 20;
const missing = (path: string) => new EngineError("invalid-archive", `the archive has no file ${JSON.stringify(path)}`);
