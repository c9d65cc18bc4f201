import { deepEqual } from "#base";
import { type FieldError, fieldError } from "#kinds";
import { regularExpression } from "../../cel/libraries/regular-expressions.ts";
import { isEmbedded, isIntOrString, itemsOf, type JsonSchema, preserves, valuesOf } from "../schema/json-schema.ts";

type Level = "root" | "item" | "field";

const INT_OR_STRING: readonly JsonSchema[] = [{ type: "integer" }, { type: "string" }];

/**
 * Whether a schema is structural: every field has one type that stands outside of `allOf`, `anyOf`, `oneOf` and `not`, which
 * only restrict values.
 * @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
 */
export function validateStructure(schema: JsonSchema, path: string): FieldError[] {
  const errors = [...invariants(schema, "root", path), ...completeness(schema, path)];
  const text = ({ field, message }: FieldError) => `${field}: ${message}`;
  return errors.sort((a, b) => (text(a) < text(b) ? -1 : 1));
}

function invariants(schema: JsonSchema, level: Level, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const items = itemsOf(schema);
  const values = valuesOf(schema);
  if (schema.type === "array" && !schema.items) errors.push(fieldError.required(`${path}.items`, "must be specified"));
  if (items) errors.push(...invariants(items, "item", `${path}.items`));
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    errors.push(...invariants(property, "field", `${path}.properties[${name}]`));
  if (schema.additionalProperties !== undefined && level === "root")
    errors.push(fieldError.forbidden(`${path}.additionalProperties`, "must not be used at the root"));
  if (values) errors.push(...invariants(values, "field", `${path}.additionalProperties`));
  errors.push(...extensions(schema, path), ...typeOf(schema, level, path), ...metadataOf(schema, level, path));
  const skip = deepEqual(schema.anyOf, INT_OR_STRING);
  const skipFirst = deepEqual(schema.allOf?.[0]?.anyOf, INT_OR_STRING);
  return [...errors, ...restrictions(schema, path, { skip, skipFirst })];
}

function extensions(schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const exclusive = (name: "x-kubernetes-preserve-unknown-fields" | "x-kubernetes-embedded-resource") => {
    if (isIntOrString(schema) && schema[name])
      errors.push(fieldError.invalid(`${path}.${name}`, true, "must be false if x-kubernetes-int-or-string is true"));
  };
  exclusive("x-kubernetes-preserve-unknown-fields");
  exclusive("x-kubernetes-embedded-resource");
  if (!isEmbedded(schema)) return errors;
  if (schema.additionalProperties !== undefined)
    errors.push(
      fieldError.forbidden(`${path}.additionalProperties`, "must not be used if x-kubernetes-embedded-resource is set"),
    );
  if (!preserves(schema) && Object.keys(schema.properties ?? {}).length === 0)
    errors.push(
      fieldError.required(
        `${path}.properties`,
        "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
      ),
    );
  return errors;
}

const EMPTY: Record<Level, string> = {
  root: "must not be empty at the root",
  item: "must not be empty for specified array items",
  field: "must not be empty for specified object fields",
};

function typeOf(schema: JsonSchema, level: Level, path: string): FieldError[] {
  const at = `${path}.type`;
  const errors: FieldError[] = [];
  if (isEmbedded(schema) && schema.type !== "object") {
    const text = "must be object if x-kubernetes-embedded-resource is true";
    errors.push(schema.type ? fieldError.invalid(at, schema.type, text) : fieldError.required(at, text));
  } else if (!schema.type && !isIntOrString(schema) && !preserves(schema))
    errors.push(fieldError.required(at, EMPTY[level]));
  if (level === "root" && schema.type && schema.type !== "object")
    errors.push(fieldError.invalid(at, schema.type, "must be object at the root"));
  return errors;
}

function metadataOf(schema: JsonSchema, level: Level, path: string): FieldError[] {
  if (level !== "root" && !isEmbedded(schema)) return [];
  const errors: FieldError[] = [];
  const { properties = {} } = schema;
  for (const name of ["kind", "apiVersion"]) {
    const type = properties[name]?.type;
    if (properties[name] && type !== "string")
      errors.push(fieldError.invalid(`${path}.properties[${name}].type`, type ?? "", "must be string"));
  }
  const { metadata } = properties;
  if (!metadata) return errors;
  const at = `${path}.properties[metadata]`;
  if (metadata.type !== "object") errors.push(fieldError.invalid(`${at}.type`, metadata.type ?? "", "must be object"));
  if (level === "root" && !onlyNames(metadata))
    errors.push(
      fieldError.forbidden(
        at,
        "must not specify anything other than name and generateName, but metadata is implicitly specified",
      ),
    );
  return errors;
}

function onlyNames({ type: _type, default: _default, properties = {}, ...rest }: JsonSchema): boolean {
  const named = Object.keys(properties).every((name) => name === "name" || name === "generateName");
  return named && Object.keys(rest).length === 0;
}

/** What restricts values only: nothing in it may define. */
function restrictions(
  schema: JsonSchema,
  path: string,
  { skip = false, skipFirst = false }: { skip?: boolean; skipFirst?: boolean } = {},
): FieldError[] {
  const errors: FieldError[] = [];
  if (!skip) for (const [i, one] of (schema.anyOf ?? []).entries()) errors.push(...nested(one, `${path}.anyOf[${i}]`));
  for (const [i, one] of (schema.allOf ?? []).entries())
    errors.push(...nested(one, `${path}.allOf[${i}]`, skipFirst && i === 0));
  for (const [i, one] of (schema.oneOf ?? []).entries()) errors.push(...nested(one, `${path}.oneOf[${i}]`));
  if (schema.not) errors.push(...nested(schema.not, `${path}.not`));
  if (schema.pattern) {
    try {
      regularExpression(schema.pattern);
    } catch (error) {
      const text = `must be a valid regular expression, but isn't: ${(error as Error).message}`;
      errors.push(fieldError.invalid(`${path}.pattern`, schema.pattern, text));
    }
  }
  return errors;
}

const FORBIDDEN: readonly (readonly [keyof JsonSchema, string])[] = [
  ["type", "must be empty to be structural"],
  ["additionalProperties", "must be undefined to be structural"],
  ["default", "must be undefined to be structural"],
  ["title", "must be empty to be structural"],
  ["description", "must be empty to be structural"],
  ["nullable", "must be false to be structural"],
  ["x-kubernetes-preserve-unknown-fields", "must be false to be structural"],
  ["x-kubernetes-embedded-resource", "must be false to be structural"],
  ["x-kubernetes-int-or-string", "must be false to be structural"],
  ["x-kubernetes-list-map-keys", "must be empty to be structural"],
  ["x-kubernetes-list-type", "must be undefined to be structural"],
  ["x-kubernetes-map-type", "must be undefined to be structural"],
  ["x-kubernetes-validations", "must be empty to be structural"],
];

function nested(schema: JsonSchema, path: string, skip = false): FieldError[] {
  const errors = restrictions(schema, path, { skip });
  const items = itemsOf(schema);
  if (items) errors.push(...nested(items, `${path}.items`));
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    errors.push(...nested(property, `${path}.properties[${name}]`));
  for (const [name, text] of FORBIDDEN)
    if (schema[name] !== undefined && schema[name] !== false && schema[name] !== "")
      errors.push(fieldError.forbidden(`${path}.${name}`, text));
  if (schema.properties?.metadata)
    errors.push(fieldError.forbidden(`${path}.properties[metadata]`, "must not be specified in a nested context"));
  return errors;
}

/** Fields and items that restrictions name must be defined outside of them. The original looks at the root's restrictions only. */
function completeness(schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const name of ["allOf", "anyOf", "oneOf"] as const)
    for (const [i, one] of (schema[name] ?? []).entries())
      errors.push(...defined(one, schema, `${path}.${name}[${i}]`, path));
  if (schema.not) errors.push(...defined(schema.not, schema, `${path}.not`, path));
  return errors;
}

function defined(nestedSchema: JsonSchema, schema: JsonSchema | undefined, path: string, at: string): FieldError[] {
  if (!schema) return [fieldError.required(at, `because it is defined in ${path}`)];
  const errors: FieldError[] = [];
  for (const name of ["allOf", "anyOf", "oneOf"] as const)
    for (const [i, one] of (nestedSchema[name] ?? []).entries())
      errors.push(...defined(one, schema, `${path}.${name}[${i}]`, at));
  if (nestedSchema.not) errors.push(...defined(nestedSchema.not, schema, `${path}.not`, at));
  const items = itemsOf(nestedSchema);
  if (items) errors.push(...defined(items, itemsOf(schema), `${path}.items`, `${at}.items`));
  for (const [name, property] of Object.entries(nestedSchema.properties ?? {}))
    errors.push(
      ...defined(property, schema.properties?.[name], `${path}.properties[${name}]`, `${at}.properties[${name}]`),
    );
  return errors;
}
