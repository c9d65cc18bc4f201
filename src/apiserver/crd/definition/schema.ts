import { type FieldError, fieldError } from "#kinds";
import { isEmbedded, itemsOf, type JsonSchema, valuesOf } from "../schema/json-schema.ts";
import { validateDefaults } from "./defaults.ts";
import { validateListTypeSchema, validateMapTypeSchema } from "./list-types.ts";
import { validateRules } from "./rules.ts";
import { validateStructure } from "./structural.ts";

export interface SchemaOptions {
  readonly hasStatus: boolean;
  /** The schema was accepted before. */
  readonly known: boolean;
}

const ROOT_FIELDS = new Set([
  "description",
  "type",
  "format",
  "title",
  "maximum",
  "exclusiveMaximum",
  "minimum",
  "exclusiveMinimum",
  "maxLength",
  "minLength",
  "pattern",
  "maxItems",
  "minItems",
  "uniqueItems",
  "multipleOf",
  "required",
  "items",
  "properties",
  "externalDocs",
  "example",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-validations",
]);
const ROOT_WORDS =
  "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

/** The schema of one version. Rules are looked at once everything else is right. */
export function validateSchema(schema: JsonSchema, path: string, options: SchemaOptions): FieldError[] {
  const errors: FieldError[] = [];
  if (options.hasStatus) errors.push(...validateRoot(schema, path));
  if (schema.nullable) errors.push(fieldError.forbidden(`${path}.nullable`, "nullable cannot be true at the root"));
  const structure = validateStructure(schema, path);
  errors.push(...structure);
  if (structure.length === 0) errors.push(...validateDefaults(schema, path));
  const own = validateNode(schema, path, { root: true, meta: false, noDefaults: undefined });
  errors.push(...own);
  return errors.length > 0 ? errors : validateRules(schema, path, options.known);
}

function validateRoot(schema: JsonSchema, path: string): FieldError[] {
  if (schema.type && schema.type !== "object")
    return [
      fieldError.invalid(
        `${path}.type`,
        schema.type,
        'only "object" is allowed as the type at the root of the schema if the status subresource is enabled',
      ),
    ];
  const other = Object.keys(schema).find((key) => !ROOT_FIELDS.has(key));
  if (!other) return [];
  return [
    fieldError.invalid(
      path,
      schema,
      `only ${ROOT_WORDS} fields are allowed at the root of the schema if the status subresource is enabled`,
    ),
  ];
}

interface Where {
  readonly root: boolean;
  /** Inside metadata, or apiVersion or kind. */
  readonly meta: boolean;
  /** Why a default may not stand here. */
  readonly noDefaults: string | undefined;
}

const TYPES = ["array", "boolean", "integer", "number", "object", "string"];
const UNSUPPORTED = ["additionalItems", "patternProperties", "definitions", "dependencies", "$ref", "id"] as const;
const META = new Set(["metadata", "kind", "apiVersion"]);

/** What OpenAPI allows and Kubernetes doesn't, and the extensions. */
function validateNode(schema: JsonSchema, path: string, where: Where): FieldError[] {
  return [...validateOwn(schema, path, where), ...validateInner(schema, path, where)];
}

function validateOwn(schema: JsonSchema, path: string, where: Where): FieldError[] {
  const errors: FieldError[] = [];
  const forbid = (name: string, text: string) => errors.push(fieldError.forbidden(`${path}.${name}`, text));
  if (schema.type === "null") forbid("type", "type cannot be set to null, use nullable as an alternative");
  if (schema.type && !TYPES.includes(schema.type))
    errors.push(fieldError.notSupported(`${path}.type`, schema.type, TYPES));
  if (schema.default !== undefined && where.noDefaults) forbid("default", `must not be set ${where.noDefaults}`);
  for (const name of UNSUPPORTED) if (schema[name] !== undefined) forbid(name, `${name} is not supported`);
  if (Array.isArray(schema.items)) forbid("items", "items must be a schema object and not an array");
  if (where.meta && isEmbedded(schema))
    forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
  if (schema.uniqueItems)
    forbid("uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  const { additionalProperties, properties } = schema;
  if (additionalProperties !== undefined && additionalProperties !== true && Object.keys(properties ?? {}).length > 0)
    forbid("additionalProperties", "additionalProperties and properties are mutual exclusive");
  if (schema["x-kubernetes-preserve-unknown-fields"] === false)
    errors.push(fieldError.invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, "must be true or undefined"));
  return [...errors, ...validateMapTypeSchema(schema, path), ...validateListTypeSchema(schema, path)];
}

function validateInner(schema: JsonSchema, path: string, where: Where): FieldError[] {
  const errors: FieldError[] = [];
  const inner = { ...where, root: false };
  const values = valuesOf(schema);
  if (values) {
    const noDefaults = where.meta ? "inside additionalProperties applying to object metadata" : where.noDefaults;
    errors.push(...validateNode(values, `${path}.additionalProperties`, { ...inner, noDefaults }));
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const meta = (where.root || isEmbedded(schema)) && META.has(name);
    const noDefaults = meta && where.root ? `in top-level ${name}` : where.noDefaults;
    errors.push(
      ...validateNode(property, `${path}.properties[${name}]`, { root: false, meta: where.meta || meta, noDefaults }),
    );
  }
  const items = itemsOf(schema);
  if (items) errors.push(...validateNode(items, `${path}.items`, inner));
  if (schema.not) errors.push(...validateNode(schema.not, `${path}.not`, inner));
  for (const name of ["allOf", "oneOf", "anyOf"] as const)
    for (const [i, one] of (schema[name] ?? []).entries())
      errors.push(...validateNode(one, `${path}.${name}[${i}]`, inner));
  return errors;
}
