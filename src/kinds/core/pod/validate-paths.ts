import type { FieldError } from "../../status-error.ts";
import { fieldError } from "../../validation/field-error.ts";

/** A path without `..`. */
export function validateNoBacksteps(value: string, path: string): FieldError[] {
  return value.split("/").includes("..") ? [fieldError.invalid(path, value, "must not contain '..'")] : [];
}

/** A relative path that stays below where it starts. */
export function validateLocalDescendingPath(value: string, path: string): FieldError[] {
  const errors = value.startsWith("/") ? [fieldError.invalid(path, value, "must be a relative path")] : [];
  return [...errors, ...validateNoBacksteps(value, path)];
}

/** The same, and its name does not start like those that volumes keep for themselves (`..data`). */
export function validateLocalNonReservedPath(value: string, path: string): FieldError[] {
  const errors = validateLocalDescendingPath(value, path);
  if (value.startsWith("..") && !value.startsWith("../")) {
    errors.push(fieldError.invalid(path, value, "must not start with '..'"));
  }
  return errors;
}

/** Permission bits of a file. */
export function validateMode(mode: number | undefined, path: string): FieldError[] {
  const valid = mode === undefined || (mode >= 0 && mode <= 0o777);
  return valid ? [] : [fieldError.invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")];
}
