import { type FieldError, fieldError } from "#kinds";
import { itemsOf, type JsonSchema } from "../schema/json-schema.ts";

/** `x-kubernetes-map-type` */
export function validateMapTypeSchema(schema: JsonSchema, path: string): FieldError[] {
  const type = schema["x-kubernetes-map-type"];
  if (type === undefined) return [];
  const errors = wrongType(schema, path, "object", "must be object if x-kubernetes-map-type is specified");
  if (type !== "atomic" && type !== "granular")
    errors.push(fieldError.notSupported(`${path}.x-kubernetes-map-type`, type, ["atomic", "granular"]));
  return errors;
}

function wrongType(schema: JsonSchema, path: string, wanted: string, text: string): FieldError[] {
  if (schema.type === wanted) return [];
  const at = `${path}.type`;
  return [schema.type ? fieldError.invalid(at, schema.type, text) : fieldError.required(at, text)];
}

/** `x-kubernetes-list-type` and `x-kubernetes-list-map-keys` */
export function validateListTypeSchema(schema: JsonSchema, path: string): FieldError[] {
  const type = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const errors: FieldError[] = [];
  if (type !== undefined) {
    const wrong = wrongType(schema, path, "array", "must be array if x-kubernetes-list-type is specified");
    errors.push(...wrong, ...(wrong.length === 0 && type === "set" ? validateSetItems(schema, path) : []));
    if (!["atomic", "set", "map"].includes(type))
      errors.push(fieldError.notSupported(`${path}.x-kubernetes-list-type`, type, ["atomic", "set", "map"]));
  }
  if (keys.length > 0 && type !== "map") {
    const at = `${path}.x-kubernetes-list-type`;
    const text = "must be map if x-kubernetes-list-map-keys is non-empty";
    errors.push(type === undefined ? fieldError.required(at, text) : fieldError.invalid(at, type, text));
  }
  if (type === "map") errors.push(...validateMapItems(schema, keys, path));
  const items = itemsOf(schema);
  if ((type === "map" || type === "set") && items?.nullable)
    errors.push(
      fieldError.forbidden(`${path}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${type}`),
    );
  return errors;
}

function validateSetItems(schema: JsonSchema, path: string): FieldError[] {
  const items = itemsOf(schema);
  const text = "must be atomic as item of a list with x-kubernetes-list-type=set";
  const listType = items?.["x-kubernetes-list-type"];
  if (items?.type === "array" && listType !== undefined && listType !== "atomic")
    return [fieldError.invalid(`${path}.items.x-kubernetes-list-type`, listType, text)];
  if (items?.type === "object" && items["x-kubernetes-map-type"] !== "atomic")
    return [fieldError.invalid(`${path}.items.x-kubernetes-map-type`, listType ?? null, text)];
  return [];
}

function validateMapItems(schema: JsonSchema, keys: readonly string[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const keysPath = `${path}.x-kubernetes-list-map-keys`;
  if (keys.length === 0)
    errors.push(fieldError.required(keysPath, "must not be empty if x-kubernetes-list-type is map"));
  const items = itemsOf(schema);
  if (!items)
    return [...errors, fieldError.required(`${path}.items`, "must have a schema if x-kubernetes-list-type is map")];
  if (items.type !== "object")
    return [
      ...errors,
      fieldError.invalid(
        `${path}.items.type`,
        items.type ?? "",
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    ];
  for (const [i, key] of keys.entries()) {
    const property = items.properties?.[key];
    const at = `${path}.items.properties[${key}]`;
    if (!property) errors.push(fieldError.invalid(keysPath, keys, "entries must all be names of item properties"));
    else if (property.type === "array" || property.type === "object")
      errors.push(
        fieldError.invalid(
          `${at}.type`,
          items.type,
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    if (keys.indexOf(key) < i) errors.push(fieldError.invalid(keysPath, keys, "must not contain duplicate entries"));
    if (!property) continue;
    if (!items.required?.includes(key) && property.default === undefined)
      errors.push(
        fieldError.required(
          `${at}.default`,
          "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
      );
    if (property.nullable)
      errors.push(
        fieldError.forbidden(
          `${at}.nullable`,
          "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
        ),
      );
  }
  return errors;
}
