import type { FieldError } from "../status-error.ts";

/** Builders of validation errors, in the words of apimachinery's `field` package. Paths are like `spec.containers[0].name`. */
export const fieldError: {
  invalid(field: string, value: unknown, detail: string): FieldError;
  required(field: string, detail?: string): FieldError;
  forbidden(field: string, detail: string): FieldError;
  notSupported(field: string, value: unknown, supported: readonly string[]): FieldError;
  duplicate(field: string, value: unknown): FieldError;
  notFound(field: string, value: unknown): FieldError;
  tooLong(field: string, maxBytes: number): FieldError;
  tooMany(field: string, actual: number, max: number): FieldError;
  tooShort(field: string, min: number): FieldError;
  typeInvalid(field: string, value: unknown, detail: string): FieldError;
  internal(field: string, detail: string): FieldError;
} = {
  invalid: (field, value, detail) => make(field, "FieldValueInvalid", `Invalid value: ${show(value)}`, detail),
  required: (field, detail = "") => make(field, "FieldValueRequired", "Required value", detail),
  forbidden: (field, detail) => make(field, "FieldValueForbidden", "Forbidden", detail),
  notSupported: (field, value, supported) =>
    make(
      field,
      "FieldValueNotSupported",
      `Unsupported value: ${show(value)}`,
      supported.length > 0 ? `supported values: ${supported.map((item) => JSON.stringify(item)).join(", ")}` : "",
    ),
  duplicate: (field, value) => make(field, "FieldValueDuplicate", `Duplicate value: ${show(value)}`, ""),
  notFound: (field, value) => make(field, "FieldValueNotFound", `Not found: ${show(value)}`, ""),
  tooLong: (field, max) =>
    make(field, "FieldValueTooLong", "Too long", `may not be more than ${max} ${max === 1 ? "byte" : "bytes"}`),
  tooMany: (field, actual, max) =>
    make(field, "FieldValueTooMany", `Too many: ${actual}`, `must have at most ${max} ${max === 1 ? "item" : "items"}`),
  tooShort: (field, min) =>
    make(field, "FieldValueTooShort", "Too short", `must be at least ${min} ${min === 1 ? "character" : "characters"}`),
  typeInvalid: (field, value, detail) => make(field, "FieldValueTypeInvalid", `Invalid value: ${show(value)}`, detail),
  internal: (field, detail) => make(field, "InternalError", "Internal error", detail),
};

function make(field: string, reason: FieldError["reason"], head: string, detail: string): FieldError {
  return { field, reason, message: detail ? `${head}: ${detail}` : head };
}

/** Strings quoted, numbers and booleans plain, the rest as Go's JSON (which escapes `<`, `>` and `&`). */
function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = JSON.stringify(value ?? null);
  return text.replace(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
}

/** `path[0]`, `path[1]`, … for each item. */
export function eachItem<T>(
  items: readonly T[] | null | undefined,
  path: string,
  check: (item: T, path: string, index: number) => FieldError[],
): FieldError[] {
  return (items ?? []).flatMap((item, index) => check(item, `${path}[${index}]`, index));
}

/** One `Invalid value` for each text that a name check gave. */
export function invalidEach(path: string, value: unknown, texts: readonly string[]): FieldError[] {
  return texts.map((text) => fieldError.invalid(path, value, text));
}

/** `Unsupported value` unless `value` is one of `supported`. */
export function oneOf(path: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  return supported.includes(value ?? "") ? [] : [fieldError.notSupported(path, value ?? "", supported)];
}

/** `must be greater than or equal to 0` for negative numbers. */
export function nonNegative(path: string, value: number | null | undefined): FieldError[] {
  return (value ?? 0) < 0 ? [fieldError.invalid(path, value, "must be greater than or equal to 0")] : [];
}

/** `field is immutable` where the two differ. */
export function immutable(
  path: string,
  value: unknown,
  old: unknown,
  equal: (a: unknown, b: unknown) => boolean,
): FieldError[] {
  return equal(value, old) ? [] : [fieldError.invalid(path, value, "field is immutable")];
}
