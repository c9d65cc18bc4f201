/** One line of a log in CRI format: `<time> <stdout|stderr> <P|F> <content>`. */
export interface CriLine {
  /** RFC 3339 as written. */
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  /** The content goes on in the next line of the same stream. */
  readonly partial: boolean;
  readonly content: Buffer;
}

const SPACE = 0x20;
const STDOUT = Buffer.from("stdout");
const STDERR = Buffer.from("stderr");

/**
 * Reads one line, without its line end. Undefined for what is none.
 *
 * Source: https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
 */
export function parseCriLine(line: Buffer): CriLine | undefined {
  const first = line.indexOf(SPACE);
  const second = line.indexOf(SPACE, first + 1);
  if (first <= 0 || second < 0) return undefined;
  const third = line.indexOf(SPACE, second + 1);
  // A line without content may end behind its tag.
  const tagEnd = third < 0 ? line.length : third;
  const name = line.subarray(first + 1, second);
  const stream = name.equals(STDOUT) ? "stdout" : name.equals(STDERR) ? "stderr" : undefined;
  const time = line.toString("latin1", 0, first);
  if (!stream || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(time)) return undefined;
  // Tags may be followed by more, after a colon.
  const tag = line.toString("latin1", second + 1, tagEnd).split(":", 1)[0];
  if (tag !== "P" && tag !== "F") return undefined;
  return { time, stream, partial: tag === "P", content: line.subarray(Math.min(line.length, tagEnd + 1)) };
}

/** The time as `kubectl logs --timestamps` shows it: nine digits, `Z` for UTC. */
export function shownTime(time: string): string {
  const match = /^(.{19})(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(time);
  if (!match) return time;
  const [, seconds, fraction = "", zone = "Z"] = match;
  return `${seconds}.${fraction.slice(0, 9).padEnd(9, "0")}${/^[+-]00:00$/.test(zone) ? "Z" : zone}`;
}
