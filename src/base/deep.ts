/** T with every level read-only: API objects in caches and from the client. Copy (`structuredClone`) to change. */
export type DeepReadonly<T> = T extends (infer U)[]
  ? readonly DeepReadonly<U>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/** Structural equality of JSON values; a property that is undefined equals an absent one. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => deepEqual(item, b[i]));
  }
  const x = a as Record<string, unknown>;
  const y = b as Record<string, unknown>;
  for (const key of Object.keys(x)) if (!deepEqual(x[key], y[key])) return false;
  for (const key of Object.keys(y)) if (y[key] !== undefined && x[key] === undefined) return false;
  return true;
}

/** Freezes a JSON value at every level and returns it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}

/** A mutable deep copy of a JSON value; much faster than structuredClone. */
export function deepClone<T>(value: DeepReadonly<T> | T): T {
  if (typeof value !== "object" || value === null) return value as T;
  if (Array.isArray(value)) return value.map((item) => deepClone(item)) as T;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) copy[key] = deepClone((value as Record<string, unknown>)[key]);
  return copy as T;
}
