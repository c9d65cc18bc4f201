const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)$/;

/** `2026-01-02T03:04:05Z` for any RFC 3339 time; undefined for what is not one. */
export function canonicalTime(text: string): string | undefined {
  const match = RFC3339.exec(text);
  const time = match ? Date.parse(text.replace(",", ".")) : Number.NaN;
  return Number.isNaN(time) ? undefined : `${new Date(Math.floor(time / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}

/** `2026-01-02T03:04:05.000006Z`: MicroTime. */
export function canonicalMicroTime(text: string): string | undefined {
  const seconds = canonicalTime(text);
  if (!seconds) return undefined;
  const fraction = (RFC3339.exec(text)?.[7] ?? "").slice(0, 6).padEnd(6, "0");
  return `${seconds.slice(0, 19)}.${fraction}Z`;
}
