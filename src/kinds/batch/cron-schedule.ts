interface Field {
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
}

const plain = (min: number, max: number): Field => ({ min, max, names: [] });
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: readonly Field[] = [
  plain(0, 59),
  plain(0, 23),
  plain(1, 31),
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: DAYS },
];
const DESCRIPTORS = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/**
 * What is wrong with a schedule in cron's format (five fields, or a descriptor such as `@daily`), in the words of the parser
 * that Kubernetes uses; undefined for a valid one. https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
 */
export function cronError(schedule: string): string | undefined {
  if (schedule === "") return "empty spec string";
  let text = schedule;
  const zone = /^(?:CRON_)?TZ=(\S+)\s*(.*)$/.exec(text);
  if (zone) {
    if (!isTimeZone(zone[1]!)) return `provided bad location ${zone[1]}: unknown time zone ${zone[1]}`;
    text = zone[2]!.trim();
  }
  if (text.startsWith("@")) return descriptorError(text);
  const parts = text.split(/\s+/).filter(Boolean);
  if (parts.length !== 5) return `expected exactly 5 fields, found ${parts.length}: [${parts.join(" ")}]`;
  for (const [i, part] of parts.entries()) {
    for (const expression of part.split(",").filter(Boolean)) {
      const error = rangeError(expression, FIELDS[i]!);
      if (error) return error;
    }
  }
  return undefined;
}

/** True for a name of the IANA time zone database. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function descriptorError(text: string): string | undefined {
  if (DESCRIPTORS.includes(text)) return undefined;
  const every = /^@every (.*)$/.exec(text)?.[1];
  if (every === undefined) return `unrecognized descriptor: ${text}`;
  if (/^[-+]?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(every)) return undefined;
  return `failed to parse duration ${text}: time: invalid duration ${JSON.stringify(every)}`;
}

function rangeError(expression: string, field: Field): string | undefined {
  const [range = "", step, ...more] = expression.split("/");
  const [low = "", high, ...rest] = range.split("-");
  let start = field.min;
  let end = field.max;
  if (low !== "*" && low !== "?") {
    const first = readNumber(low, field);
    if (typeof first === "string") return first;
    start = first;
    end = first;
    if (rest.length > 0) return `too many hyphens: ${expression}`;
    if (high !== undefined) {
      const last = readNumber(high, field);
      if (typeof last === "string") return last;
      end = last;
    }
  }
  let every = 1;
  if (more.length > 0) return `too many slashes: ${expression}`;
  if (step !== undefined) {
    const given = readNumber(step, plain(0, 0));
    if (typeof given === "string") return given;
    every = given;
    if (high === undefined) end = field.max;
  }
  if (start < field.min) return `beginning of range (${start}) below minimum (${field.min}): ${expression}`;
  if (end > field.max) return `end of range (${end}) above maximum (${field.max}): ${expression}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${expression}`;
  return every === 0 ? `step of range should be a positive number: ${expression}` : undefined;
}

/** The number, or what is wrong with it. */
function readNumber(text: string, field: Field): number | string {
  const named = field.names.indexOf(text.toLowerCase());
  if (named >= 0) return named + field.min;
  if (!/^[-+]?\d+$/.test(text)) {
    return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
  }
  const value = Number(text);
  return value < 0 ? `negative number (${value}) not allowed: ${text}` : value;
}
