import { deepEqual } from "#base";
import {
  type CustomResourceColumnDefinition,
  type CustomResourceDefinitionVersion,
  type CustomResourceSubresources,
  type FieldError,
  fieldError,
} from "#kinds";
import type { JsonSchema } from "../schema/json-schema.ts";
import { schemaAt } from "./field-path.ts";
import { validateSchema } from "./schema.ts";

const MAX_SELECTABLE_FIELDS = 8;

/** Where parts of a version stand in messages; absent: another version has the same one and was looked at. */
export type VersionPlaces = Readonly<
  Partial<Record<"schema" | "subresources" | "additionalPrinterColumns" | "selectableFields", string | undefined>>
>;

/** One version of a definition; `before` is what it was. */
export function validateVersion(
  version: CustomResourceDefinitionVersion,
  path: string,
  places: VersionPlaces,
  before: CustomResourceDefinitionVersion | undefined,
): FieldError[] {
  const schema = version.schema?.openAPIV3Schema as JsonSchema | undefined;
  const hasStatus = version.subresources?.status !== undefined;
  // what was accepted once isn't refused for what it costs
  const known = deepEqual(before?.schema, version.schema);
  return [
    ...validateDeprecation(version, `${path}.deprecationWarning`),
    ...(schema && places.schema
      ? validateSchema(schema, `${places.schema}.openAPIV3Schema`, { hasStatus, known })
      : []),
    ...(places.subresources ? validateSubresources(version.subresources, places.subresources) : []),
    ...(places.additionalPrinterColumns ? (version.additionalPrinterColumns ?? []) : []).flatMap((column, i) =>
      validateColumn(column, `${places.additionalPrinterColumns}[${i}]`),
    ),
    ...(schema && places.selectableFields ? validateSelectable(version, schema, places.selectableFields) : []),
  ];
}

function validateDeprecation(
  { deprecated, deprecationWarning }: CustomResourceDefinitionVersion,
  path: string,
): FieldError[] {
  if (deprecationWarning === undefined) return [];
  const fail = (text: string) => [fieldError.invalid(path, deprecationWarning, text)];
  if (!deprecated) return fail("can only be set for deprecated versions");
  if (Buffer.byteLength(deprecationWarning) > 256) return fail("must be <= 256 characters long");
  if (deprecationWarning === "") return fail("must not be an empty string");
  const at = deprecationWarning.search(/\p{C}|[\u2028\u2029]/u);
  return at < 0
    ? []
    : fail(`must only contain printable UTF-8 characters; non-printable character found at index ${at}`);
}

const TYPES = ["boolean", "date", "integer", "number", "string"];
const FORMATS = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

function validateColumn(column: CustomResourceColumnDefinition, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const types = `must be one of ${TYPES.join(",")}`;
  if (!column.name) errors.push(fieldError.required(`${path}.name`));
  if (!column.type) errors.push(fieldError.required(`${path}.type`, types));
  else if (!TYPES.includes(column.type)) errors.push(fieldError.invalid(`${path}.type`, column.type, types));
  if (column.format && !FORMATS.includes(column.format))
    errors.push(fieldError.invalid(`${path}.format`, column.format, `must be one of ${FORMATS.join(",")}`));
  if (!column.jsonPath) errors.push(fieldError.required(`${path}.JSONPath`));
  else errors.push(...simplePath(column.jsonPath, `${path}.JSONPath`));
  return errors;
}

function simplePath(text: string, path: string): FieldError[] {
  return text.startsWith(".") ? [] : [fieldError.invalid(path, text, "must be a simple json path starting with .")];
}

function validateSubresources(subresources: CustomResourceSubresources | undefined, path: string): FieldError[] {
  const scale = subresources?.scale;
  if (!scale) return [];
  const under = (name: "specReplicasPath" | "statusReplicasPath", root: string): FieldError[] => {
    const text = scale[name];
    const at = `${path}.scale.${name}`;
    if (!text) return [fieldError.required(at)];
    const errors = simplePath(text, at);
    if (errors.length > 0 || text.startsWith(`${root}.`)) return errors;
    return [fieldError.invalid(at, text, `should be a json path under ${root}`)];
  };
  const errors = [...under("specReplicasPath", ".spec"), ...under("statusReplicasPath", ".status")];
  const selector = scale.labelSelectorPath;
  if (!selector) return errors;
  const at = `${path}.scale.labelSelectorPath`;
  const wrong = simplePath(selector, at);
  if (wrong.length === 0 && !/^\.(spec|status)\./.test(selector))
    wrong.push(fieldError.invalid(at, selector, "should be a json path under either .spec or .status"));
  return [...errors, ...wrong];
}

function validateSelectable(
  { selectableFields = [] }: CustomResourceDefinitionVersion,
  schema: JsonSchema,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, { jsonPath }] of selectableFields.entries()) {
    const at = `${path}[${i}].jsonPath`;
    if (!jsonPath) {
      errors.push(fieldError.required(at));
      continue;
    }
    const found = schemaAt(jsonPath, schema);
    if ("error" in found) {
      errors.push(fieldError.invalid(at, jsonPath, `is an invalid path: ${found.error}`));
      continue;
    }
    if (/^\.metadata(\.|$)/.test(jsonPath))
      errors.push(fieldError.invalid(at, jsonPath, "must not point to fields in metadata"));
    if (!["string", "boolean", "integer"].includes(found.schema.type ?? ""))
      errors.push(
        fieldError.invalid(
          at,
          jsonPath,
          "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
        ),
      );
    if (seen.has(jsonPath)) errors.push(fieldError.duplicate(at, jsonPath));
    seen.add(jsonPath);
  }
  if (seen.size > MAX_SELECTABLE_FIELDS) errors.push(fieldError.tooMany(path, seen.size, MAX_SELECTABLE_FIELDS));
  return errors;
}
