/**
 * Just enough of DER (X.690) to write X.509 certificates and to read certificate signing requests. Own code because the
 * libraries for it cost more start-up time than the rest of the API server.
 */

const SEQUENCE = 0x30;
const SET = 0x31;

/** One element: tag, length, content. */
export function tlv(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export const sequence = (...items: readonly Uint8Array[]): Buffer => tlv(SEQUENCE, ...items);
export const set = (...items: readonly Uint8Array[]): Buffer => tlv(SET, ...items);
export const boolean = (value: boolean): Buffer => tlv(0x01, Buffer.from([value ? 0xff : 0]));
export const octetString = (content: Uint8Array): Buffer => tlv(0x04, content);
export const bitString = (content: Uint8Array, unusedBits = 0): Buffer => tlv(0x03, Buffer.from([unusedBits]), content);
export const utf8String = (text: string): Buffer => tlv(0x0c, Buffer.from(text, "utf8"));
/** `[n]`, constructed. */
export const explicit = (n: number, ...items: readonly Uint8Array[]): Buffer => tlv(0xa0 | n, ...items);
/** `[n] IMPLICIT`, primitive. */
export const implicit = (n: number, content: Uint8Array): Buffer => tlv(0x80 | n, content);

/** A non-negative integer of any length, big-endian. */
export function integer(bytes: Uint8Array): Buffer {
  let from = 0;
  while (from < bytes.length - 1 && bytes[from] === 0) from++;
  const trimmed = bytes.subarray(from);
  return tlv(0x02, ...(trimmed[0]! & 0x80 ? [Buffer.from([0])] : []), trimmed);
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc % 128];
    for (let more = Math.floor(arc / 128); more > 0; more = Math.floor(more / 128)) groups.unshift((more % 128) | 0x80);
    bytes.push(...groups);
  }
  return tlv(0x06, Buffer.from(bytes));
}

/** UTCTime up to 2049, GeneralizedTime after (RFC 5280 4.1.2.5). `ms` since the epoch. */
export function time(ms: number): Buffer {
  const digits = `${new Date(ms).toISOString().replace(/[-:T]/g, "").slice(0, 14)}Z`;
  const year = Number(digits.slice(0, 4));
  return year < 2050 ? tlv(0x17, Buffer.from(digits.slice(2))) : tlv(0x18, Buffer.from(digits));
}

/** An element as read: `raw` is tag, length and content. */
export interface Element {
  readonly tag: number;
  readonly raw: Buffer;
  readonly content: Buffer;
}

/** Reads the elements that `bytes` consists of. @throws Error when it is not DER */
export function elements(bytes: Buffer): Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes, at);
    found.push(element);
    at += element.raw.length;
  }
  return found;
}

function elementAt(bytes: Buffer, at: number): Element {
  const tag = bytes[at];
  let length = bytes[at + 1];
  let from = at + 2;
  if (tag === undefined || length === undefined || (tag & 0x1f) === 0x1f) throw new Error("malformed DER");
  if (length >= 0x80) {
    const size = length & 0x7f;
    if (size === 0 || size > 4 || from + size > bytes.length) throw new Error("malformed DER length");
    length = bytes.readUIntBE(from, size);
    from += size;
  }
  if (from + length > bytes.length) throw new Error("truncated DER");
  return { tag, raw: bytes.subarray(at, from + length), content: bytes.subarray(from, from + length) };
}

/** The dotted form of an OBJECT IDENTIFIER's content. */
export function oidText(content: Buffer): string {
  const arcs: number[] = [];
  let value = 0;
  for (const byte of content) {
    value = value * 128 + (byte & 0x7f);
    if (byte & 0x80) continue;
    if (arcs.length === 0)
      arcs.push(Math.min(2, Math.floor(value / 40)), value - 40 * Math.min(2, Math.floor(value / 40)));
    else arcs.push(value);
    value = 0;
  }
  return arcs.join(".");
}
