/** How a flag takes its value, as pflag does. */
export type FlagType = "bool" | "string" | "int" | "duration" | "list" | "array";

export interface FlagSpec {
  readonly name: string;
  readonly short?: string;
  readonly type: FlagType;
  /** Value when it is not given. Default: false, "", 0, []. */
  readonly default?: string | number | boolean | readonly string[];
  /** Value when it is given without one (`--dry-run`). A flag that has it takes a value only behind `=`. */
  readonly bare?: string;
  readonly usage: string;
}

/** Wrong use of the command line: `error: <message>` and where to read more. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** What was given, with the defaults for the rest. */
export class Flags {
  readonly #values = new Map<string, unknown>();
  readonly #given = new Set<string>();
  readonly #specs: readonly FlagSpec[];
  constructor(specs: readonly FlagSpec[]) {
    this.#specs = specs;
    // a command's own flag hides a global one of the same name
    for (const spec of [...specs].reverse()) this.#values.set(spec.name, spec.default ?? ZERO[spec.type]);
  }
  /** Whether the user gave it. */
  given(name: string): boolean {
    return this.#given.has(name);
  }
  bool(name: string): boolean {
    return this.#values.get(name) === true;
  }
  string(name: string): string {
    return String(this.#values.get(name) ?? "");
  }
  int(name: string): number {
    return Number(this.#values.get(name) ?? 0);
  }
  list(name: string): readonly string[] {
    return (this.#values.get(name) as readonly string[] | undefined) ?? [];
  }
  has(name: string): boolean {
    return this.#values.has(name);
  }
  /** @throws UsageError in pflag's words */
  set(spec: FlagSpec, text: string, shown: string): void {
    const bad = (why: string) =>
      new UsageError(`invalid argument ${JSON.stringify(text)} for ${JSON.stringify(shown)} flag: ${why}`);
    switch (spec.type) {
      case "bool": {
        const value = BOOLEANS[text];
        if (value === undefined) throw bad(`strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
        this.#values.set(spec.name, value);
        break;
      }
      case "int":
        if (!/^[+-]?\d+$/.test(text)) throw bad(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
        this.#values.set(spec.name, Number(text));
        break;
      case "duration":
        if (durationMs(text) === undefined) throw bad(`time: ${durationFault(text)}`);
        this.#values.set(spec.name, text);
        break;
      case "string":
        this.#values.set(spec.name, text);
        break;
      case "list":
      case "array": {
        const items = spec.type === "list" ? text.split(",").filter((item) => item !== "") : [text];
        this.#values.set(spec.name, this.#given.has(spec.name) ? [...this.list(spec.name), ...items] : items);
      }
    }
    this.#given.add(spec.name);
  }
  specOf(name: string): FlagSpec | undefined {
    return this.#specs.find((spec) => spec.name === name);
  }
  shortSpecOf(short: string): FlagSpec | undefined {
    return this.#specs.find((spec) => spec.short === short);
  }
}

const ZERO: Readonly<Record<FlagType, unknown>> = {
  bool: false,
  string: "",
  int: 0,
  duration: "0s",
  list: [],
  array: [],
};
const BOOLEANS: Readonly<Record<string, boolean>> = Object.fromEntries([
  ...["1", "t", "T", "TRUE", "true", "True"].map((text) => [text, true]),
  ...["0", "f", "F", "FALSE", "false", "False"].map((text) => [text, false]),
]);

export interface ParsedLine {
  readonly flags: Flags;
  /** Words that are no flags. */
  readonly args: readonly string[];
  /** How many of them stood before `--`; undefined without it. */
  readonly dash: number | undefined;
}

/**
 * Parses as pflag does: flags and words in any order, `--name value`, `--name=value`, `-n value`, `-nvalue`, `-n=value`, `-it`,
 * all behind `--` as words. @throws UsageError
 */
export function parseFlags(words: readonly string[], specs: readonly FlagSpec[]): ParsedLine {
  const flags = new Flags(specs);
  const args: string[] = [];
  let dash: number | undefined;
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word === "--") {
      dash = args.length;
      args.push(...words.slice(i + 1));
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      args.push(word);
      continue;
    }
    i += word.startsWith("--") ? long(flags, word, words[i + 1]) : short(flags, word, words[i + 1]);
  }
  return { flags, args, dash };
}

/** @returns how many of the following words it took */
function long(flags: Flags, word: string, next: string | undefined): number {
  const equals = word.indexOf("=");
  const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
  if (name === "" || name.startsWith("-") || name.startsWith("=")) throw new UsageError(`bad flag syntax: ${word}`);
  const spec = flags.specOf(name);
  if (!spec) throw new UsageError(`unknown flag: --${name}`);
  if (equals >= 0) return take(flags, spec, word.slice(equals + 1), 0);
  const bare = bareOf(spec);
  if (bare !== undefined) return take(flags, spec, bare, 0);
  if (next === undefined) throw new UsageError(`flag needs an argument: --${name}`);
  return take(flags, spec, next, 1);
}

function short(flags: Flags, word: string, next: string | undefined): number {
  for (let rest = word.slice(1); rest !== ""; ) {
    const letter = rest[0]!;
    const spec = flags.shortSpecOf(letter);
    if (!spec) throw new UsageError(`unknown shorthand flag: '${letter}' in ${word}`);
    rest = rest.slice(1);
    if (rest.startsWith("=")) return take(flags, spec, rest.slice(1), 0);
    const bare = bareOf(spec);
    if (bare !== undefined) {
      take(flags, spec, bare, 0);
      continue;
    }
    if (rest !== "") return take(flags, spec, rest, 0);
    if (next === undefined) throw new UsageError(`flag needs an argument: '${letter}' in ${word}`);
    return take(flags, spec, next, 1);
  }
  return 0;
}

function take(flags: Flags, spec: FlagSpec, value: string, used: number): number {
  flags.set(spec, value, spec.short ? `-${spec.short}, --${spec.name}` : `--${spec.name}`);
  return used;
}

const bareOf = (spec: FlagSpec) => spec.bare ?? (spec.type === "bool" ? "true" : undefined);

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Go's durations: `1h30m`, `500ms`, `-1s`, `0`. Undefined when it is none. */
export function durationMs(text: string): number | undefined {
  const match = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/.exec(text);
  if (!match) return text === "0" ? 0 : undefined;
  let total = 0;
  for (const part of text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g))
    total += Number(part[1]) * UNITS[part[2]!]!;
  return match[1] === "-" ? -total : total;
}

function durationFault(text: string): string {
  if (/^[+-]?(\d+\.?\d*|\.\d+)$/.test(text)) return `missing unit in duration ${JSON.stringify(text)}`;
  const unit = /^[+-]?(?:\d+\.?\d*|\.\d+)([a-z]+)/i.exec(text)?.[1];
  return unit
    ? `unknown unit ${JSON.stringify(unit)} in duration ${JSON.stringify(text)}`
    : `invalid duration ${JSON.stringify(text)}`;
}
