import { EngineError } from "../../errors.ts";

/** One entry of a tar stream. Names are bytes, kept as latin1 text; `displayName` is for people. */
export interface TarEntry {
  readonly name: string;
  /** The type flag: `0` file, `1` hard link, `2` symbolic link, `3` and `4` devices, `5` directory, `6` fifo, `S` sparse. */
  readonly type: string;
  /** Bytes stored in the archive. */
  readonly size: number;
  /** Target of a link, else empty. */
  readonly link: string;
  /** Where the data starts in the stream, bytes. */
  readonly offset: number;
}

/** Reads the headers of a tar stream that passes by; the data of entries is skipped, not kept. */
export interface TarHeaders {
  /** @throws EngineError `invalid-archive` for what is no tar header */
  push(chunk: Buffer): void;
  /** Says that the stream is over. @throws EngineError `invalid-archive` if it ended inside an entry */
  end(): void;
  /** Bytes of data that come next and need not be pushed: a reader of a file may seek over them and say so with `skipped`. */
  readonly skippable: number;
  skipped(bytes: number): void;
  /** The end-of-archive mark was seen: what follows means nothing. */
  readonly ended: boolean;
}

/** Formats: ustar, pax and GNU, sparse files included. Source: POSIX pax, and "Basic Tar Format" in the manual of GNU tar. */
export function createTarHeaders(onEntry: (entry: TarEntry) => void): TarHeaders {
  let state: "header" | "skip" | "extension" | "sparse" | "ended" = "header";
  let position = 0;
  let need = BLOCK;
  let zeros = 0;
  let parts: Buffer[] = [];
  let extensionType = "";
  let extensionSize = 0;
  let pending: { name?: string; link?: string; size?: number } = {};

  const take = (block: Buffer) => {
    if (state === "extension") extension(block.subarray(0, extensionSize));
    else if (state === "header") header(block);
    else if (block[504] === 1) need = BLOCK;
    else skip(afterSparse);
  };
  let afterSparse = 0;
  const skip = (bytes: number) => {
    state = bytes > 0 ? "skip" : "header";
    need = bytes > 0 ? bytes : BLOCK;
  };

  function header(block: Buffer): void {
    if (block.every((byte) => byte === 0)) {
      zeros += 1;
      if (zeros === 2) state = "ended";
      need = BLOCK;
      return;
    }
    zeros = 0;
    verifyChecksum(block);
    const type = String.fromCharCode(block[156] || 48);
    const stored = number(block, 124, 12);
    if ("xgLK".includes(type)) {
      if (stored > MAX_EXTENSION) throw corrupt(`an extended header of ${stored} bytes`);
      extensionType = type;
      extensionSize = stored;
      state = stored === 0 ? "header" : "extension";
      need = padded(stored) || BLOCK;
      return;
    }
    const size = pending.size ?? stored;
    const isData = !"123456".includes(type);
    const entry = {
      name: pending.name ?? headerName(block),
      link: pending.link ?? text(block, 157, 100),
      type: type === "\0" || type === "7" ? "0" : type,
      size: isData ? size : 0,
      offset: position,
    };
    pending = {};
    if (Buffer.byteLength(entry.name, "latin1") > MAX_NAME) throw corrupt(`a name of ${entry.name.length} bytes`);
    onEntry(entry);
    if (type === "S" && block[482] === 1) {
      afterSparse = padded(size);
      state = "sparse";
      need = BLOCK;
    } else skip(padded(entry.size));
  }

  function extension(data: Buffer): void {
    state = "header";
    need = BLOCK;
    if (extensionType === "L") pending.name = text(data, 0, data.length);
    else if (extensionType === "K") pending.link = text(data, 0, data.length);
    else if (extensionType === "x") Object.assign(pending, paxValues(data));
  }

  return {
    get ended() {
      return state === "ended";
    },
    get skippable() {
      return state === "skip" ? need : 0;
    },
    skipped(bytes) {
      position += bytes;
      need -= bytes;
      if (need === 0) skip(0);
    },
    push(chunk) {
      let at = 0;
      while (at < chunk.length && state !== "ended") {
        const bytes = Math.min(need, chunk.length - at);
        if (state !== "skip") parts.push(chunk.subarray(at, at + bytes));
        at += bytes;
        position += bytes;
        need -= bytes;
        if (need > 0) continue;
        if (state === "skip") {
          skip(0);
          continue;
        }
        const block = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
        parts = [];
        take(block);
      }
    },
    end() {
      if (state === "ended" || (state === "header" && parts.length === 0)) return;
      throw new EngineError("invalid-archive", "the tar archive is truncated: it ends inside an entry");
    },
  };
}

const BLOCK = 512;
const MAX_EXTENSION = 4 << 20;
const MAX_NAME = 4096;

const padded = (size: number) => Math.ceil(size / BLOCK) * BLOCK;
const corrupt = (what: string) => new EngineError("invalid-archive", `the tar archive is corrupt: ${what}`);

function text(block: Buffer, start: number, length: number): string {
  const end = block.indexOf(0, start);
  return block.toString("latin1", start, end < 0 || end > start + length ? start + length : end);
}

/** Octal, or base 256 where the first bit is set. */
function number(block: Buffer, start: number, length: number): number {
  if ((block[start]! & 0x80) === 0) {
    const digits = text(block, start, length).trim();
    if (digits === "") return 0;
    if (!/^[0-7]+$/.test(digits)) throw corrupt("a size that is no number");
    return Number.parseInt(digits, 8);
  }
  let value = block[start]! & 0x7f;
  for (let i = start + 1; i < start + length; i++) value = value * 256 + block[i]!;
  if (!Number.isSafeInteger(value)) throw corrupt("an entry larger than any disk");
  return value;
}

function verifyChecksum(block: Buffer): void {
  let sum = 8 * 32;
  for (let i = 0; i < BLOCK; i++) if (i < 148 || i >= 156) sum += block[i]!;
  if (sum !== number(block, 148, 8)) throw new EngineError("invalid-archive", "not a tar archive, or a corrupt one");
}

function headerName(block: Buffer): string {
  const name = text(block, 0, 100);
  const isPosix = block.toString("latin1", 257, 263) === "ustar\0";
  const prefix = isPosix ? text(block, 345, 155) : "";
  return prefix ? `${prefix}/${name}` : name;
}

function paxValues(data: Buffer): { name?: string; link?: string; size?: number } {
  const values: { name?: string; link?: string; size?: number } = {};
  let sparseName: string | undefined;
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(32, at);
    const length = space < 0 ? Number.NaN : Number(data.toString("latin1", at, space));
    if (!Number.isSafeInteger(length) || length < 3 || at + length > data.length) throw corrupt("a pax header");
    const line = data.toString("latin1", space + 1, at + length - 1);
    const equals = line.indexOf("=");
    const value = line.slice(equals + 1);
    const key = line.slice(0, equals);
    if (key === "path") values.name = value;
    else if (key === "GNU.sparse.name") sparseName = value;
    else if (key === "linkpath") values.link = value;
    else if (key === "size") {
      values.size = Number(value);
      if (!Number.isSafeInteger(values.size) || values.size < 0) throw corrupt("a size that is no number");
    }
    at += length;
  }
  if (sparseName !== undefined) values.name = sparseName;
  return values;
}
