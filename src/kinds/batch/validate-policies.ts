import type {
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyRule,
  SuccessPolicyRule,
} from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, invalidEach, nonNegative, oneOf } from "../validation/field-error.ts";
import { isQualifiedName } from "../validation/names.ts";
import { countIndexes } from "./indexes.ts";

const ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES = ["False", "True", "Unknown"];
const OPERATORS = ["In", "NotIn"];
const listed = (values: readonly string[]): string =>
  `valid values: [${values.map((value) => JSON.stringify(value)).join(" ")}]`;

/** An error that shows no value. */
const withoutValue = (field: string, detail: string): FieldError => ({
  field,
  reason: "FieldValueInvalid",
  message: `Invalid value: ${detail}`,
});

export function validatePodFailurePolicy(spec: JobSpec, path: string): FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? [];
  const { containers, initContainers } = spec.template.spec;
  const names = new Set([...(containers ?? []), ...(initContainers ?? [])].map(({ name }) => name));
  const errors = rules.length > 20 ? [fieldError.tooMany(`${path}.rules`, rules.length, 20)] : [];
  return [...errors, ...eachItem(rules, `${path}.rules`, (rule, at) => validateRule(rule, spec, names, at))];
}

function validateRule(
  rule: PodFailurePolicyRule,
  spec: JobSpec,
  names: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (!rule.action) errors.push(fieldError.required(`${path}.action`, listed(ACTIONS)));
  else if (rule.action === "FailIndex" && spec.backoffLimitPerIndex === undefined) {
    errors.push(fieldError.invalid(`${path}.action`, rule.action, "requires the backoffLimitPerIndex to be set"));
  } else errors.push(...oneOf(`${path}.action`, rule.action, ACTIONS));
  const conditions = rule.onPodConditions ?? [];
  if (rule.onExitCodes) errors.push(...validateExitCodes(rule.onExitCodes, names, `${path}.onExitCodes`));
  if (conditions.length > 20) errors.push(fieldError.tooMany(`${path}.onPodConditions`, conditions.length, 20));
  errors.push(
    ...eachItem(conditions, `${path}.onPodConditions`, ({ type, status }, at) => [
      ...invalidEach(`${at}.type`, type, isQualifiedName(type)),
      ...(status ? oneOf(`${at}.status`, status, STATUSES) : [fieldError.required(`${at}.status`, listed(STATUSES))]),
    ]),
  );
  if (rule.onExitCodes && conditions.length > 0) {
    errors.push(withoutValue(path, "specifying both OnExitCodes and OnPodConditions is not supported"));
  }
  if (!rule.onExitCodes && conditions.length === 0) {
    errors.push(withoutValue(path, "specifying one of OnExitCodes and OnPodConditions is required"));
  }
  return errors;
}

function validateExitCodes(
  { operator, containerName, values }: PodFailurePolicyOnExitCodesRequirement,
  names: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const codes = values ?? [];
  const errors = operator
    ? oneOf(`${path}.operator`, operator, OPERATORS)
    : [fieldError.required(`${path}.operator`, listed(OPERATORS))];
  if (containerName !== undefined && !names.has(containerName)) {
    const text = "must be one of the container or initContainer names in the pod template";
    errors.push(fieldError.invalid(`${path}.containerName`, containerName, text));
  }
  if (codes.length === 0)
    errors.push(fieldError.invalid(`${path}.values`, values ?? null, "at least one value is required"));
  if (codes.length > 255) errors.push(fieldError.tooMany(`${path}.values`, codes.length, 255));
  const seen = new Set<number>();
  errors.push(
    ...eachItem(codes, `${path}.values`, (code, at) => {
      const own: FieldError[] = [];
      if (operator === "In" && code === 0) own.push(fieldError.invalid(at, code, "must not be 0 for the In operator"));
      if (seen.has(code)) own.push(fieldError.duplicate(at, code));
      seen.add(code);
      return own;
    }),
  );
  const ordered = codes.every((code, i) => i === 0 || codes[i - 1]! <= code);
  return ordered ? errors : [...errors, fieldError.invalid(`${path}.values`, codes, "must be ordered")];
}

export function validateSuccessPolicy(spec: JobSpec, path: string): FieldError[] {
  const policy = spec.successPolicy;
  if (!policy) return [];
  if (spec.completionMode !== "Indexed") {
    const shown = { Rules: policy.rules ?? null };
    return [fieldError.invalid(path, shown, "requires indexed completion mode")];
  }
  const rules = policy.rules ?? [];
  const errors: FieldError[] = [];
  if (rules.length === 0) {
    const text = "at least one rules must be specified when the successPolicy is specified";
    errors.push(fieldError.required(`${path}.rules`, text));
  }
  if (rules.length > 20) errors.push(fieldError.tooMany(`${path}.rules`, rules.length, 20));
  const completions = spec.completions ?? 0;
  return [...errors, ...eachItem(rules, `${path}.rules`, (rule, at) => validateSuccessRule(rule, completions, at))];
}

function validateSuccessRule(rule: SuccessPolicyRule, completions: number, path: string): FieldError[] {
  const { succeededIndexes: indexes, succeededCount: count } = rule;
  const errors: FieldError[] = [];
  if (indexes === undefined && count === undefined) {
    errors.push(fieldError.required(path, "at least one of succeededCount or succeededIndexes must be specified"));
  }
  let total = 0;
  if (indexes !== undefined) {
    const counted = countIndexes(indexes, completions);
    if (typeof counted === "number") total = counted;
    else
      errors.push(
        fieldError.invalid(`${path}.succeededIndexes`, indexes, `error parsing succeededIndexes: ${counted}`),
      );
  }
  if (count === undefined) return errors;
  const at = `${path}.succeededCount`;
  const most = (limit: number, what: string) =>
    fieldError.invalid(at, count, `must be less than or equal to ${limit} (the number of ${what})`);
  errors.push(...nonNegative(at, count));
  if (count > completions) errors.push(most(completions, "specified completions"));
  if (indexes !== undefined && count > total)
    errors.push(most(total, "indexes in the specified succeededIndexes field"));
  return errors;
}
