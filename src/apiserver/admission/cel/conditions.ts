import { type DeepReadonly, messageOf } from "#base";
import { forbidden, type KindInfo, type MatchCondition } from "#kinds";
import { type CelProgram, createCelBudget } from "../../cel/mod.ts";
import type { AdmissionAttributes } from "../../ports.ts";
import type { VersionedCall } from "../match/versioned.ts";
import { aggregate } from "../support.ts";
import { admissionEnvironment, type CallValues, compileTyped, valuesOf } from "./environment.ts";

export type ConditionsDeps = CallValues;

/** Cost units of all match conditions of one webhook or policy. */
export const CONDITIONS_BUDGET = 2_500_000;

/** `matchConditions`: all of them have to hold. */
export interface Conditions {
  /** @throws StatusError 403 when one can't be told and `failurePolicy` is Fail */
  match(attributes: AdmissionAttributes, seen: KindInfo, view: VersionedCall): boolean;
}

/** @see https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchconditions */
export function createConditions(
  deps: ConditionsDeps,
  conditions: readonly DeepReadonly<MatchCondition>[],
  failurePolicy: string | undefined,
): Conditions {
  const env = admissionEnvironment({});
  const programs = conditions.map(({ expression }) => compiled(() => compileTyped(env, expression, ["bool"])));
  return {
    match(attributes, seen, view) {
      const result = allHold(programs, valuesOf(attributes, seen, view, deps));
      if (typeof result === "boolean") return result;
      if (failurePolicy === "Ignore") return false;
      throw forbidden(attributes.kind, attributes.name, result.error);
    },
  };
}

/** A program, or why there is none: stored expressions may have been written for another version. */
export type Compiled = CelProgram | { readonly error: string };

export function compiled(compile: () => CelProgram): Compiled {
  try {
    return compile();
  } catch (error) {
    return { error: messageOf(error) };
  }
}

/** Whether all hold; one that does not decides, whatever errors the others have. */
export function allHold(
  programs: readonly Compiled[],
  values: Readonly<Record<string, unknown>>,
): boolean | { readonly error: string } {
  const budget = createCelBudget(CONDITIONS_BUDGET);
  const errors: string[] = [];
  for (const program of programs) {
    if ("error" in program) {
      errors.push(program.error);
      continue;
    }
    try {
      if (program.evaluate(values, budget) !== true) return false;
    } catch (error) {
      errors.push(expressionError(program.source, error));
    }
  }
  return errors.length > 0 ? { error: aggregate(errors) } : true;
}

/** `expression '…' resulted in error: …` */
export const expressionError = (source: string, error: unknown): string =>
  `expression '${source}' resulted in error: ${messageOf(error)}`;
