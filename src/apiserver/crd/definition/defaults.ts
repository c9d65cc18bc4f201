import { deepClone, deepEqual } from "#base";
import { type FieldError, fieldError } from "#kinds";
import { createCelBudget } from "../../cel/mod.ts";
import { runRules } from "../rules/run.ts";
import { type Fields, isEmbedded, isFields, type JsonSchema, visitSchema } from "../schema/json-schema.ts";
import { validateEmbedded } from "../schema/metadata.ts";
import { prune } from "../schema/prune.ts";
import { validateValue } from "../schema/validate-value.ts";

/** Defaults must themselves be valid, and know no fields that the schema doesn't. */
export function validateDefaults(root: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  visitSchema(root, path, (schema, at) => {
    if (schema.default === undefined) return;
    const place = `${at}.default`;
    const value = schema.default;
    if (isFields(value) && !isPruned(value, schema))
      errors.push(fieldError.invalid(place, value, "must not have unknown fields"));
    const invalid = [
      ...validateEmbedded(value, schema, place),
      ...validateValue(value, { ...schema, default: undefined } as JsonSchema).map((error) => ({
        ...error,
        field: error.field === "<nil>" ? place : `${place}.${error.field}`,
      })),
    ];
    errors.push(...invalid);
    if (invalid.length === 0) errors.push(...runRules(value, schema, undefined, createCelBudget(), place).errors);
  });
  return errors;
}

function isPruned(value: Fields, schema: JsonSchema): boolean {
  // a plain object has no metadata of its own: only embedded ones keep theirs
  const holder = { value: deepClone<Fields>(value) };
  prune(holder, { type: "object", properties: { value: schema } });
  return deepEqual(holder.value, value) || isEmbedded(schema);
}
