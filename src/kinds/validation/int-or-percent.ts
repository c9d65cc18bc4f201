import type { FieldError } from "../status-error.ts";
import { fieldError, invalidEach, nonNegative } from "./field-error.ts";
import { isPercent } from "./names.ts";

type IntOrString = number | string;

/** A count that isn't negative, or a percentage. */
export function validateIntOrPercent(value: IntOrString | undefined, path: string): FieldError[] {
  if (typeof value === "string") return invalidEach(path, value, isPercent(value));
  return nonNegative(path, value);
}

/** The number, of a percentage too; 0 for what is neither. */
export function intOrPercentValue(value: IntOrString | undefined): number {
  if (typeof value !== "string") return value ?? 0;
  return /^[0-9]+%?$/.test(value) ? Number.parseInt(value, 10) : 0;
}

export function notMoreThan100Percent(value: IntOrString | undefined, path: string): FieldError[] {
  if (typeof value !== "string" || isPercent(value).length > 0 || intOrPercentValue(value) <= 100) return [];
  return [fieldError.invalid(path, value, "must not be greater than 100%")];
}
