/** One field as it is on the wire: a number for varints and fixed ones, bytes for the rest. */
export interface WireField {
  readonly number: number;
  readonly value: bigint | number | Buffer;
}

/** Fields of a protobuf message, in order. @throws Error when the bytes are no message */
export function* wireFields(bytes: Buffer): Generator<WireField> {
  let at = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("unexpected EOF");
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    throw new Error("integer overflow");
  };
  const take = (length: number): Buffer => {
    if (length > bytes.length - at) throw new Error("unexpected EOF");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >>> 3;
    if (number === 0) throw new Error("illegal tag 0");
    switch (tag & 7) {
      case 0:
        yield { number, value: varint() };
        break;
      case 1:
        yield { number, value: take(8).readDoubleLE() };
        break;
      case 2:
        yield { number, value: take(Number(varint())) };
        break;
      case 5:
        yield { number, value: take(4).readFloatLE() };
        break;
      default:
        throw new Error(`illegal wire type ${tag & 7}`);
    }
  }
}

/** The bytes of a length-delimited field. @throws Error for another wire type */
export function bytesOf({ value, number }: WireField): Buffer {
  if (!Buffer.isBuffer(value)) throw new Error(`wrong wire type for field ${number}`);
  return value;
}

/** A signed 64-bit integer; those beyond 2^53 lose precision as in JSON. */
export function integerOf({ value, number }: WireField): number {
  if (typeof value !== "bigint") throw new Error(`wrong wire type for field ${number}`);
  return Number(BigInt.asIntN(64, value));
}
