import type { Environment } from "@marcbachmann/cel-js";
import { formatCel } from "../values.ts";
import { functions, namespace } from "./register.ts";

/** What the strings extension has beyond the language: charAt, replace, format, reverse, quote; and conversions to text. */
export function registerStrings(env: Environment): void {
  namespace(env, "strings", "StringsNamespace");
  functions(env, {
    "string.charAt(int): string": (text: string, at: bigint) => {
      const characters = [...text];
      if (at < 0n || at > BigInt(characters.length)) throw new Error(`index out of range: ${at}`);
      return characters[Number(at)] ?? "";
    },
    "string.replace(string, string): string": (text: string, old: string, by: string) => text.replaceAll(old, () => by),
    "string.replace(string, string, int): string": replaceSome,
    "string.reverse(): string": (text: string) => [...text].reverse().join(""),
    "string.format(list): string": (text: string, values: readonly unknown[]) => format(text, values),
    "StringsNamespace.quote(string): string": (_: unknown, text: string) => JSON.stringify(text),
    "string(google.protobuf.Timestamp): string": formatCel,
    "string(google.protobuf.Duration): string": formatCel,
    "int(google.protobuf.Timestamp): int": (time: Date) => BigInt(Math.floor(time.getTime() / 1000)),
    "timestamp(google.protobuf.Timestamp): google.protobuf.Timestamp": (time: Date) => time,
    "duration(google.protobuf.Duration): google.protobuf.Duration": (duration: unknown) => duration,
    "int(uint): int": (value: { valueOf(): bigint }) => value.valueOf(),
  });
}

function replaceSome(text: string, old: string, by: string, limit: bigint): string {
  if (limit < 0n) return text.replaceAll(old, () => by);
  let rest = Number(limit);
  return text.replaceAll(old, () => (rest-- > 0 ? by : old));
}

/** `%s %d %f %e %b %x %X %o %%` of the strings extension. */
function format(template: string, values: readonly unknown[]): string {
  let next = 0;
  return template.replace(/%(?:\.(\d+))?(.)/g, (whole, precision: string | undefined, clause: string) => {
    if (clause === "%") return "%";
    if (next >= values.length) throw new Error(`index ${next} out of range`);
    return clauseText(whole, clause, precision === undefined ? 6 : Number(precision), values[next++]);
  });
}

function clauseText(whole: string, clause: string, precision: number, value: unknown): string {
  switch (clause) {
    case "s":
      return formatCel(value);
    case "d":
      return String(value);
    case "f":
      return Number(value).toFixed(precision);
    case "e":
      return Number(value)
        .toExponential(precision)
        .replace(/e([+-])(\d)$/, "e$10$2");
    case "b":
      return typeof value === "boolean" ? (value ? "1" : "0") : BigInt(value as bigint).toString(2);
    case "o":
      return BigInt(value as bigint).toString(8);
    case "x":
    case "X": {
      const text =
        typeof value === "string" ? Buffer.from(value).toString("hex") : BigInt(value as bigint).toString(16);
      return clause === "x" ? text : text.toUpperCase();
    }
    default:
      throw new Error(`could not parse formatting clause: unrecognized formatting clause "${whole.slice(1)}"`);
  }
}
