import { constants, createDeflate, createInflate, type Deflate, type Inflate } from "node:zlib";

/** Header names and values; names in lower case, repeated values joined by NUL. */
export type Headers = Readonly<Record<string, string>>;

// The compression dictionary that SPDY/3 prescribes: words with their length in front, then common values in a row.
const WORDS =
  "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin";
const VALUES =
  "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

const dictionary = Buffer.concat([
  ...WORDS.split(" ").map((word) => withLength(word.replace("_", " "))),
  Buffer.from(VALUES, "latin1"),
]);

function withLength(text: string): Buffer {
  const bytes = Buffer.from(text, "utf8");
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Bytes; a block that inflates to more is hostile. */
const MAX_BLOCK = 256 * 1024;

/** The two compression contexts of a connection; blocks must be handed over in the order of the frames. */
export interface HeaderCodec {
  decode(block: Buffer): Promise<Headers>;
  encode(headers: Headers): Promise<Buffer>;
  close(): void;
}

export function createHeaderCodec(): HeaderCodec {
  const inflate = createInflate({ dictionary, finishFlush: constants.Z_SYNC_FLUSH });
  const deflate = createDeflate({ dictionary });
  return {
    decode: async (block) => parse(await through(inflate, block)),
    encode: (headers) => through(deflate, serialize(headers)),
    close() {
      inflate.destroy();
      deflate.destroy();
    },
  };
}

/** What comes out for `input` after a sync flush. */
function through(stream: Inflate | Deflate, input: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const done = (error?: Error | null) => {
      stream.off("data", take);
      stream.off("error", done);
      if (error) reject(error);
      else resolve(Buffer.concat(chunks));
    };
    const take = (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_BLOCK) stream.destroy(new Error("a SPDY header block is too large"));
      else chunks.push(chunk);
    };
    stream.on("data", take);
    stream.on("error", done);
    stream.write(input, (error) => {
      if (error) done(error);
      else stream.flush(constants.Z_SYNC_FLUSH, () => done());
    });
  });
}

function serialize(headers: Headers): Buffer {
  const entries = Object.entries(headers);
  const count = Buffer.alloc(4);
  count.writeUInt32BE(entries.length);
  return Buffer.concat([count, ...entries.flatMap(([name, value]) => [withLength(name), withLength(value)])]);
}

function parse(block: Buffer): Headers {
  let at = 0;
  const number = () => {
    if (at + 4 > block.length) throw new Error("a SPDY header block is truncated");
    const value = block.readUInt32BE(at);
    at += 4;
    return value;
  };
  const text = () => {
    const length = number();
    if (at + length > block.length) throw new Error("a SPDY header block is truncated");
    const value = block.toString("utf8", at, at + length);
    at += length;
    return value;
  };
  const headers: Record<string, string> = {};
  for (let count = number(); count > 0; count--) {
    const name = text().toLowerCase();
    headers[name] = text();
  }
  return headers;
}
