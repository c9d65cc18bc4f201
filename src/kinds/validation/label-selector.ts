import type { LabelSelector, LabelSelectorRequirement } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, invalidEach } from "./field-error.ts";
import { isLabelValue } from "./names.ts";
import { validateLabelName, validateLabels } from "./object-meta.ts";

/** A LabelSelector, absent ones being valid. */
export function validateLabelSelector(selector: LabelSelector | null | undefined, path: string): FieldError[] {
  if (!selector) return [];
  return [
    ...validateLabels(selector.matchLabels, `${path}.matchLabels`),
    ...eachItem(selector.matchExpressions, `${path}.matchExpressions`, validateRequirement),
  ];
}

function validateRequirement(requirement: LabelSelectorRequirement, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const values = requirement.values ?? [];
  switch (requirement.operator) {
    case "In":
    case "NotIn":
      if (values.length === 0) {
        errors.push(fieldError.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
      break;
    case "Exists":
    case "DoesNotExist":
      if (values.length > 0) {
        const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        errors.push(fieldError.forbidden(`${path}.values`, text));
      }
      break;
    default:
      errors.push(fieldError.invalid(`${path}.operator`, requirement.operator ?? "", "not a valid selector operator"));
  }
  errors.push(...validateLabelName(requirement.key ?? "", `${path}.key`));
  return [...errors, ...eachItem(values, `${path}.values`, (value, at) => invalidEach(at, value, isLabelValue(value)))];
}
