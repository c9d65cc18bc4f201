import { isFields, type JsonSchema } from "./json-schema.ts";

/** Fields that are no pointers: their zero value is the same as none. */
const ZERO = new Set([
  "id",
  "$schema",
  "description",
  "type",
  "format",
  "title",
  "pattern",
  "nullable",
  "exclusiveMaximum",
  "exclusiveMinimum",
  "uniqueItems",
  "x-kubernetes-embedded-resource",
  "x-kubernetes-int-or-string",
  "required",
  "allOf",
  "anyOf",
  "oneOf",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-validations",
  "properties",
  "enum",
]);
const LISTS = ["allOf", "anyOf", "oneOf"] as const;

/** Removes, in place and at every level, what says nothing (null, zero values), as a round trip through the API's types does. */
export function cleanSchema(schema: JsonSchema): void {
  const fields = schema as Record<string, unknown>;
  for (const [key, value] of Object.entries(fields)) {
    if (value === null || (ZERO.has(key) && isZero(value))) delete fields[key];
  }
  for (const name of LISTS) for (const one of schema[name] ?? []) cleanSchema(one);
  for (const one of Object.values(schema.properties ?? {})) cleanSchema(one);
  for (const one of [schema.not, schema.additionalProperties]) if (isFields(one)) cleanSchema(one);
  if (Array.isArray(schema.items)) for (const one of schema.items) cleanSchema(one);
  else if (isFields(schema.items)) cleanSchema(schema.items);
}

function isZero(value: unknown): boolean {
  if (value === "" || value === false) return true;
  return Array.isArray(value) ? value.length === 0 : isFields(value) && Object.keys(value).length === 0;
}
