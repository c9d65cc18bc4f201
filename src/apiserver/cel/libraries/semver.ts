import type { Environment } from "@marcbachmann/cel-js";
import { comparableType, functions } from "./register.ts";

const TYPE = "kubernetes.Semver";
const SYNTAX =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;

/** A semantic version. */
export class Semver {
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly prerelease: readonly string[];
  constructor(numbers: readonly [bigint, bigint, bigint], prerelease: readonly string[]) {
    this.numbers = numbers;
    this.prerelease = prerelease;
  }
}

/** https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-semver-library */
export function registerSemver(env: Environment): void {
  comparableType(env, TYPE, Semver, (a, b) => compare(a, b) === 0);
  const parse = (text: string, normalize = false) => {
    const parsed = parseSemver(normalize ? normalized(text) : text);
    if (!parsed) throw new Error(`No Major.Minor.Patch elements found`);
    return parsed;
  };
  functions(env, {
    [`semver(string): ${TYPE}`]: (text: string) => parse(text),
    [`semver(string, bool): ${TYPE}`]: parse,
    "isSemver(string): bool": (text: string) => parseSemver(text) !== undefined,
    "isSemver(string, bool): bool": (text: string, normalize: boolean) =>
      parseSemver(normalize ? normalized(text) : text) !== undefined,
    [`${TYPE}.isGreaterThan(${TYPE}): bool`]: (a: Semver, b: Semver) => compare(a, b) > 0,
    [`${TYPE}.isLessThan(${TYPE}): bool`]: (a: Semver, b: Semver) => compare(a, b) < 0,
    [`${TYPE}.compareTo(${TYPE}): int`]: (a: Semver, b: Semver) => BigInt(compare(a, b)),
    [`${TYPE}.major(): int`]: ({ numbers }: Semver) => numbers[0],
    [`${TYPE}.minor(): int`]: ({ numbers }: Semver) => numbers[1],
    [`${TYPE}.patch(): int`]: ({ numbers }: Semver) => numbers[2],
  });
}

function parseSemver(text: string): Semver | undefined {
  const match = SYNTAX.exec(text);
  if (!match) return undefined;
  return new Semver([BigInt(match[1]!), BigInt(match[2]!), BigInt(match[3]!)], match[4]?.split(".") ?? []);
}

/** Without the `v`, with missing minor and patch, without leading zeros. */
function normalized(text: string): string {
  const [, core = "", rest = ""] = /^v?([^-+]*)(.*)$/.exec(text.trim()) ?? [];
  const parts = core.split(".").map((part) => part.replace(/^0+(?=\d)/, ""));
  while (parts.length < 3) parts.push("0");
  return parts.join(".") + rest;
}

function compare(a: Semver, b: Semver): number {
  for (const i of [0, 1, 2] as const) {
    if (a.numbers[i] !== b.numbers[i]) return a.numbers[i] < b.numbers[i] ? -1 : 1;
  }
  if (a.prerelease.length === 0 || b.prerelease.length === 0)
    return Math.sign(Number(a.prerelease.length === 0) - Number(b.prerelease.length === 0));
  for (let i = 0; i < Math.max(a.prerelease.length, b.prerelease.length); i++) {
    const [x, y] = [a.prerelease[i], b.prerelease[i]];
    if (x === undefined || y === undefined) return x === undefined ? -1 : 1;
    if (x === y) continue;
    const [nx, ny] = [/^\d+$/.test(x), /^\d+$/.test(y)];
    if (nx && ny) return BigInt(x) < BigInt(y) ? -1 : 1;
    if (nx !== ny) return nx ? -1 : 1;
    return x < y ? -1 : 1;
  }
  return 0;
}
