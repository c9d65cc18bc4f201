/** JSON as Go's encoder writes it: sorted keys, four spaces, `<`, `>` and `&` escaped. */
export function toJson(value: unknown, indent = 4): string {
  return `${escapeHtml(JSON.stringify(sortKeys(value), null, indent))}\n`;
}

/** One line. */
export const toCompactJson = (value: unknown): string => escapeHtml(JSON.stringify(sortKeys(value)));

const ESCAPES: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};
const escapeHtml = (json: string) => json.replace(/[<>&\u2028\u2029]/g, (c) => ESCAPES[c]!);

export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sortKeys(inner)]));
}
