import { humanDuration } from "#kinds";
import { alignTabs, DESCRIBE_TABS } from "../printers/tab-writer.ts";

/** Collects the lines of a description; cells end with tabs and are aligned in the end. */
export class DescribeWriter {
  #text = "";
  /** What is aligned already. */
  #done = "";
  readonly now: number;
  constructor(now: number) {
    this.now = now;
  }
  /** A line, two spaces for each level. */
  line(level: number, text: string): void {
    this.#text += `${"  ".repeat(level)}${text}\n`;
  }
  /** As it is, without an end of line. */
  add(text: string): void {
    this.#text += text;
  }
  /** What comes is aligned by itself. */
  flush(): void {
    this.#done += alignTabs(this.#text, DESCRIBE_TABS);
    this.#text = "";
  }
  /** As it was written, with tabs between the cells. */
  text(): string {
    return this.#text;
  }
  toString(): string {
    // what a terminal would obey is shown instead
    return (this.#done + alignTabs(this.#text, DESCRIBE_TABS)).replaceAll("\x1b", "^[").replaceAll("\r", "\\r");
  }
}

/** `Tue, 01 Dec 2026 03:00:00 +0000` in the local zone, as RFC 1123 with a numeric zone. */
export function longTime(time: string | null | undefined): string {
  if (!time) return "<unset>";
  const date = new Date(time);
  const offset = -date.getTimezoneOffset();
  const local = new Date(date.getTime() + offset * 60_000);
  const [day, rest] = [local.toUTCString().slice(0, 5), local.toUTCString().slice(5, 25)];
  const two = (n: number) => String(Math.floor(Math.abs(n))).padStart(2, "0");
  return `${day}${rest} ${offset < 0 ? "-" : "+"}${two(offset / 60)}${two(offset % 60)}`;
}

/** `5m`, `<unknown>` */
export function since(time: string | null | undefined, now: number): string {
  return time ? humanDuration(Math.max(0, now - Date.parse(time))) : "<unknown>";
}

/** `Labels:\ta=b` and the others below. */
export function pairsLines(
  title: string,
  pairs: Readonly<Record<string, string>> | undefined,
  options: { indent?: string; skip?: readonly string[] } = {},
): string {
  const { indent = "", skip = [] } = options;
  const keys = Object.keys(pairs ?? {})
    .filter((key) => !skip.includes(key))
    .sort();
  if (keys.length === 0) return `${indent}${title}:\t<none>\n`;
  return keys.map((key, i) => `${i === 0 ? `${indent}${title}:` : ""}\t${key}=${pairs![key]}\n`).join("");
}

const LONGEST = 140;
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** `Annotations:\ta: b`; long ones on lines of their own. */
export function annotationLines(annotations: Readonly<Record<string, string>> | undefined, indent = ""): string {
  const keys = Object.keys(annotations ?? {})
    .filter((key) => key !== LAST_APPLIED)
    .sort();
  if (keys.length === 0) return `${indent}Annotations:\t<none>\n`;
  return keys
    .map((key, i) => {
      const lead = i === 0 ? `${indent}Annotations:\t` : "\t";
      const value = annotations![key]!.replace(/\n$/, "");
      if (value.length + key.length + 2 <= LONGEST && !value.includes("\n")) return `${lead}${key}: ${value}\n`;
      const lines = value.split("\n").map((line) => `\t  ${shorten(line, LONGEST - 2)}\n`);
      return `${lead}${key}:\n${lines.join("")}`;
    })
    .join("");
}

const shorten = (text: string, most: number) => (text.length > most ? `${text.slice(0, most)}...` : text);

export interface EventLike {
  readonly type?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly count?: number | undefined;
  readonly firstTimestamp?: string | null | undefined;
  readonly lastTimestamp?: string | null | undefined;
  readonly eventTime?: string | null | undefined;
  readonly series?: { readonly count?: number | undefined; readonly lastObservedTime?: string | undefined } | undefined;
  readonly source?: { readonly component?: string | undefined } | undefined;
  readonly reportingComponent?: string | undefined;
  readonly involvedObject?: { readonly fieldPath?: string | undefined } | undefined;
}

/** The last section of a description. */
export function writeEvents(writer: DescribeWriter, events: readonly EventLike[]): void {
  if (events.length === 0) {
    writer.line(0, "Events:\t<none>");
    return;
  }
  writer.flush();
  writer.line(0, "Events:");
  writer.line(1, "Type\tReason\tAge\tFrom\tMessage");
  writer.line(1, "----\t------\t----\t----\t-------");
  const sorted = [...events].sort((a, b) => String(a.lastTimestamp ?? "").localeCompare(String(b.lastTimestamp ?? "")));
  for (const event of sorted) {
    const source = event.source?.component || event.reportingComponent || "";
    const field = event.involvedObject?.fieldPath;
    const message = `${field ? `${field}: ` : ""}${(event.message ?? "").trim()}`;
    writer.line(1, `${event.type}\t${event.reason}\t${eventAge(event, writer.now)}\t${source}\t${message}`);
  }
}

/** `5m`, `5m (x3 over 10m)` */
export function eventAge(event: EventLike, now: number): string {
  const first = event.firstTimestamp ?? event.eventTime;
  if (event.series?.count)
    return `${since(event.series.lastObservedTime, now)} (x${event.series.count} over ${since(first, now)})`;
  if ((event.count ?? 0) > 1)
    return `${since(event.lastTimestamp, now)} (x${event.count} over ${since(event.firstTimestamp, now)})`;
  return since(first, now);
}
