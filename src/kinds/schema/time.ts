const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)$/;

/** `2026-01-02T03:04:05Z` for any RFC 3339 time; undefined for what is not one. */
export function canonicalTime(text: string): string | undefined {
  const match = RFC3339.exec(text);
  const time = match ? Date.parse(text.replace(",", ".")) : Number.NaN;
  return Number.isNaN(time) ? undefined : `${new Date(Math.floor(time / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}

/** The same for MicroTime, which is only read with six digits of fraction: `2026-01-02T03:04:05.000006Z`. */
export function canonicalMicroTime(text: string): string | undefined {
  const fraction = RFC3339.exec(text)?.[7];
  const seconds = fraction?.length === 6 ? canonicalTime(text) : undefined;
  return seconds ? `${seconds.slice(0, 19)}.${fraction}Z` : undefined;
}

/** What Go's time.Parse says of a text that is no RFC 3339 time (or no MicroTime). */
export function timeError(text: string, type: "time" | "microtime"): string {
  const layout = type === "time" ? "2006-01-02T15:04:05Z07:00" : "2006-01-02T15:04:05.000000Z07:00";
  const head = `parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout)}: `;
  let rest = text;
  for (const [element, pattern] of elementsOf(type)) {
    const match = pattern.exec(rest);
    if (!match) return `${head}cannot parse ${JSON.stringify(rest)} as ${JSON.stringify(element)}`;
    rest = rest.slice(match[0].length);
  }
  if (rest) return `${head}extra text: ${JSON.stringify(rest)}`;
  return `parsing time ${JSON.stringify(text)}: ${outOfRange(text)} out of range`;
}

function elementsOf(type: "time" | "microtime"): [string, RegExp][] {
  const two = /^\d\d/;
  return [
    ["2006", /^\d{4}/],
    ["-", /^-/],
    ["01", two],
    ["-", /^-/],
    ["02", two],
    ["T", /^T/],
    ["15", two],
    [":", /^:/],
    ["04", two],
    [":", /^:/],
    ["05", type === "time" ? /^\d\d(?:[.,]\d+)?/ : two],
    ...(type === "time" ? [] : ([[".000000", /^[.,]\d{6}/]] as [string, RegExp][])),
    ["Z07:00", /^(?:Z|[+-]\d\d:\d\d)/],
  ];
}

function outOfRange(text: string): string {
  const [, , month, , hour, minute] = RFC3339.exec(text) ?? [];
  if (Number(month) < 1 || Number(month) > 12) return "month";
  if (Number(hour) > 23) return "hour";
  if (Number(minute) > 59) return "minute";
  return Number(RFC3339.exec(text)?.[6]) > 59 ? "second" : "day";
}
