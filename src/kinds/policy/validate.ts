import type { PodDisruptionBudget } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError, oneOf } from "../validation/field-error.ts";
import { notMoreThan100Percent, validateIntOrPercent } from "../validation/int-or-percent.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";

export function validatePodDisruptionBudget({ spec = {} }: PodDisruptionBudget): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec;
  const errors: FieldError[] = [];
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    const shown = {
      MinAvailable: minAvailable,
      Selector: selector ?? null,
      MaxUnavailable: maxUnavailable,
      UnhealthyPodEvictionPolicy: policy ?? null,
    };
    errors.push(fieldError.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"));
  }
  for (const [name, value] of Object.entries({ minAvailable, maxUnavailable })) {
    errors.push(...validateIntOrPercent(value, `spec.${name}`), ...notMoreThan100Percent(value, `spec.${name}`));
  }
  errors.push(...validateLabelSelector(selector, "spec.selector"));
  if (policy === undefined) return errors;
  return [...errors, ...oneOf("spec.unhealthyPodEvictionPolicy", policy, ["AlwaysAllow", "IfHealthyBudget"])];
}
