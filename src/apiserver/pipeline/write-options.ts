import type { FieldError } from "#kinds";
import type { Call } from "./call.ts";
import { isTrue } from "./request-info.ts";
import { checkOptions, forbiddenOption, unsupportedOption } from "./query.ts";

const KINDS: Readonly<Record<string, string>> = {
  create: "CreateOptions",
  update: "UpdateOptions",
  patch: "PatchOptions",
  apply: "PatchOptions",
};
const MAX_MANAGER = 128;

/**
 * The query of a write: `dryRun`, `fieldManager`, `fieldValidation`, `force`.
 * @param verb `apply` is the patch whose body is an apply configuration
 * @throws StatusError 422
 */
export function checkWriteOptions(call: Call, verb: "create" | "update" | "patch" | "apply"): void {
  const { query } = call.request;
  if (query.size === 0 && verb !== "apply") return;
  const manager = query.get("fieldManager") ?? "";
  const errors: FieldError[] = [];
  if (verb === "apply") {
    if (manager === "")
      errors.push({
        field: "fieldManager",
        reason: "FieldValueRequired",
        message: "Required value: is required for apply patch",
      });
  } else if (verb === "patch" && query.has("force"))
    errors.push(forbiddenOption("force", "may not be specified for non-apply patch"));
  errors.push(...managerErrors(manager), ...dryRunErrors(query.getAll("dryRun")));
  const validation = query.get("fieldValidation") ?? "";
  if (!["", "Ignore", "Warn", "Strict"].includes(validation))
    errors.push(unsupportedOption("fieldValidation", `"${validation}"`, ["", "Ignore", "Strict", "Warn"]));
  checkOptions(KINDS[verb]!, errors);
}

function managerErrors(manager: string): FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > MAX_MANAGER)
    errors.push({
      field: "fieldManager",
      reason: "FieldValueTooLong",
      message: `Too long: may not be more than ${MAX_MANAGER} bytes`,
    });
  const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(manager);
  if (unprintable) {
    const code = unprintable[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    errors.push({
      field: "fieldManager",
      reason: "FieldValueInvalid",
      message: `Invalid value: ${JSON.stringify(manager)}: invalid character U+${code} (at position ${unprintable.index})`,
    });
  }
  return errors;
}

/** @param values every `dryRun` of the query or of the body's list */
export function dryRunErrors(values: readonly string[]): FieldError[] {
  if (values.every((value) => value === "All")) return [];
  return [unsupportedOption("dryRun", JSON.stringify(values), ["All"])];
}

/** Whether an apply takes fields from other managers. */
export function isForced(call: Call): boolean {
  return isTrue(call.request.query.get("force"));
}
