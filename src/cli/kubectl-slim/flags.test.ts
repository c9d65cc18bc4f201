import assert from "node:assert/strict";
import test from "node:test";
import { durationMs, type FlagSpec, parseFlags } from "./flags.ts";

const specs: readonly FlagSpec[] = [
  { name: "output", short: "o", type: "string", usage: "" },
  { name: "namespace", short: "n", type: "string", usage: "" },
  { name: "stdin", short: "i", type: "bool", usage: "" },
  { name: "tty", short: "t", type: "bool", usage: "" },
  { name: "replicas", type: "int", usage: "", default: 1 },
  { name: "dry-run", type: "string", usage: "", default: "none", bare: "unchanged" },
  { name: "from", type: "array", usage: "" },
  { name: "types", type: "list", usage: "" },
  { name: "timeout", type: "duration", usage: "" },
];

const good: readonly [line: string, expected: Record<string, unknown>, args: string[], dash?: number][] = [
  ["a -o yaml b", { output: "yaml" }, ["a", "b"]],
  ["-oyaml", { output: "yaml" }, []],
  ["-o=yaml", { output: "yaml" }, []],
  ["--output yaml", { output: "yaml" }, []],
  ["--output=yaml", { output: "yaml" }, []],
  ["--output=", { output: "" }, []],
  ["-it x", { stdin: true, tty: true }, ["x"]],
  ["-itn default x", { stdin: true, tty: true, namespace: "default" }, ["x"]],
  ["--stdin=false", { stdin: false }, []],
  ["--dry-run x", { "dry-run": "unchanged" }, ["x"]],
  ["--dry-run=client", { "dry-run": "client" }, []],
  ["--from a,b --from c", { from: ["a,b", "c"] }, []],
  ["--types a,b --types c", { types: ["a", "b", "c"] }, []],
  ["--replicas=-3", { replicas: -3 }, []],
  ["pod -- sh -c x", {}, ["pod", "sh", "-c", "x"], 1],
  ["-", {}, ["-"]],
];
for (const [line, expected, args, dash] of good) {
  test(`parseFlags() reads ${line}`, () => {
    const parsed = parseFlags(line.split(" "), specs);
    for (const [name, value] of Object.entries(expected)) {
      const got =
        typeof value === "boolean"
          ? parsed.flags.bool(name)
          : typeof value === "number"
            ? parsed.flags.int(name)
            : Array.isArray(value)
              ? parsed.flags.list(name)
              : parsed.flags.string(name);
      assert.deepEqual(got, value);
      assert.ok(parsed.flags.given(name));
    }
    assert.deepEqual(parsed.args, args);
    assert.equal(parsed.dash, dash);
  });
}

const bad: readonly [line: string, message: string][] = [
  ["--nothing", "unknown flag: --nothing"],
  ["-z", "unknown shorthand flag: 'z' in -z"],
  ["-iz", "unknown shorthand flag: 'z' in -iz"],
  ["--output", "flag needs an argument: --output"],
  ["-o", "flag needs an argument: 'o' in -o"],
  ["--replicas=x", 'invalid argument "x" for "--replicas" flag: strconv.ParseInt: parsing "x": invalid syntax'],
  [
    "--stdin=maybe",
    'invalid argument "maybe" for "-i, --stdin" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
  ],
  ["--timeout=5", 'invalid argument "5" for "--timeout" flag: time: missing unit in duration "5"'],
  ["--timeout=5x", 'invalid argument "5x" for "--timeout" flag: time: unknown unit "x" in duration "5x"'],
];
for (const [line, message] of bad)
  test(`parseFlags() refuses ${line}`, () => assert.throws(() => parseFlags(line.split(" "), specs), { message }));

const durations: readonly [text: string, ms: number | undefined][] = [
  ["1h30m", 5_400_000],
  ["500ms", 500],
  ["1.5s", 1500],
  ["-1s", -1000],
  ["0", 0],
  ["5", undefined],
  ["", undefined],
];
for (const [text, ms] of durations)
  test(`durationMs() of ${JSON.stringify(text)}`, () => assert.equal(durationMs(text), ms));
