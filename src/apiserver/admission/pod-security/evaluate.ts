import { baselineChecks } from "./baseline.ts";
import type { Check, Subject, Violation } from "./check.ts";
import type { LevelVersion } from "./policy.ts";
import { restrictedChecks } from "./restricted.ts";

/** How a pod violates a level; empty when it does not. Baseline checks first, each by id. */
export function evaluate({ level, version }: LevelVersion, subject: Subject): Violation[] {
  if (level === "privileged") return [];
  const minor = version === "latest" ? Number.POSITIVE_INFINITY : Number(version.slice("v1.".length));
  const restricted = level === "restricted" ? restrictedChecks.filter((check) => at(check, minor)) : [];
  const replaced = new Set(restricted.map(({ replaces }) => replaces));
  const checks = [...baselineChecks.filter(({ id }) => !replaced.has(id)), ...restricted];
  return checks.flatMap((check) => at(check, minor)?.(subject) ?? []);
}

const at = ({ since }: Check, minor: number) => since.findLast(([from]) => from <= minor)?.[1];

/** `allowPrivilegeEscalation != false (container "c" must set …), …` */
export const detailsText = (violations: readonly Violation[]): string =>
  violations.map(({ reason, detail }) => (detail ? `${reason} (${detail})` : reason)).join(", ");

/** `allowPrivilegeEscalation != false, runAsNonRoot != true` */
export const reasonsText = (violations: readonly Violation[]): string =>
  violations.map(({ reason }) => reason).join(", ");
