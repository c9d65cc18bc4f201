import { randomBytes, randomUUID } from "node:crypto";

/** Source of randomness; tests pass a seeded one. */
export interface Random {
  /** A float in [0, 1). */
  next(): number;
  uuid(): string;
  /** `length` characters of the alphabet that Kubernetes uses for generated names (no vowels, no look-alikes). */
  suffix(length: number): string;
}

const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => randomUUID(),
  suffix: (length) => Array.from(randomBytes(length), (byte) => ALPHABET[byte % ALPHABET.length]).join(""),
};

/** A reproducible source (mulberry32). */
export function createSeededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const hex = (n: number) => Array.from({ length: n }, () => Math.floor(next() * 16).toString(16)).join("");
  return {
    next,
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`,
    suffix: (length) => Array.from({ length }, () => ALPHABET[Math.floor(next() * ALPHABET.length)]).join(""),
  };
}
