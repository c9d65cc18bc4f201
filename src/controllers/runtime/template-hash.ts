const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/**
 * A short name for a value, in the alphabet of generated names: the same for equal values whatever the order of their
 * properties. FNV-32a, as in Kubernetes, over the JSON of the value; `salt` sets colliding values apart.
 */
export function shortHash(value: unknown, salt?: number): string {
  const hash = fnv32a(canonical(value) + (salt === undefined ? "" : `/${salt}`));
  return [...String(hash)].map((digit) => ALPHABET[digit.charCodeAt(0) % ALPHABET.length]).join("");
}

export function fnv32a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return `{${entries
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`)
    .join(",")}}`;
}
