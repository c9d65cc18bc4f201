import { Optional } from "@marcbachmann/cel-js";
import { deepEqual } from "#base";

/** An object with a schema of its own in CEL: the JSON value, its fields made into CEL values when they are read. */
export abstract class ObjectValue {
  readonly raw: Readonly<Record<string, unknown>>;
  constructor(raw: Readonly<Record<string, unknown>>) {
    this.raw = raw;
  }
}

/** A JSON value in CEL where no schema says more: whole numbers are `int`, others `double`, objects maps. */
export function toCel(value: unknown): unknown {
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map(toCel);
  const map = new Map<string, unknown>();
  for (const [key, item] of Object.entries(value)) if (item !== undefined) map.set(key, toCel(item));
  return map;
}

/** A CEL value as JSON. Integers beyond what a number holds become texts. */
export function fromCel(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value === null || typeof value !== "object") return value;
  if (value instanceof ObjectValue) return value.raw;
  if (value instanceof Optional) return value.hasValue() ? fromCel(value.value()) : null;
  if (Array.isArray(value) || value instanceof Set) return [...value].map(fromCel);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [String(key), fromCel(item)]));
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value.constructor === Object)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fromCel(item)]));
  return formatCel(value);
}

export function equalCel(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a === "bigint" || typeof a === "number")
    // biome-ignore lint/suspicious/noDoubleEquals: int and double are compared by value
    return (typeof b === "bigint" || typeof b === "number") && a == b;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  return deepEqual(fromCel(a), fromCel(b));
}

/** Order of numbers, texts, booleans, times. */
export function compareCel(a: unknown, b: unknown): number {
  const [x, y] = [a as number, b as number];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** The text of a value, as `string()` and `%s` give it. */
export function formatCel(value: unknown): string {
  if (value === null) return "null";
  if (value instanceof Date)
    return value
      .toISOString()
      .replace(/\.000Z$/, "Z")
      .replace(/(\.\d*?)0+Z$/, "$1Z");
  if (Array.isArray(value)) return `[${value.map(formatCel).join(", ")}]`;
  if (value instanceof Map)
    return `{${[...value]
      .map(([key, item]) => `${formatCel(key)}: ${formatCel(item)}`)
      .sort()
      .join(", ")}}`;
  return String(value);
}
