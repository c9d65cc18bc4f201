import { canonicalQuantity } from "../quantity.ts";
import { type Schema, type SchemaField, schemaOf } from "./schema.ts";
import { canonicalMicroTime, canonicalTime } from "./time.ts";

type Fields = Record<string, unknown>;

/**
 * Gives an object the shape that the API server gives it by decoding and encoding: unknown fields and values of a wrong type
 * go, zero values go where the type leaves them out and appear where it always has them (`resources: {}`, `status: {}`),
 * quantities and times become canonical. Changes the object in place. Fields keep the order in which they were.
 */
export function normalizeObject(object: Fields, schemaName: string): void {
  const schema = schemaOf(schemaName);
  if (schema) normalizeStruct(object, schema);
}

function normalizeStruct(object: Fields, schema: Schema): void {
  for (const key of Object.keys(object)) {
    const field = schema.fields.get(key);
    const value = field ? normalizeField(object[key], field) : undefined;
    if (value === undefined) delete object[key];
    else object[key] = value;
  }
  for (const field of schema.fields.values()) {
    if (object[field.name] === undefined) {
      const value = zeroOf(field);
      if (value !== undefined) object[field.name] = value;
    }
  }
}

/** The normal form, or undefined where the field is left out. */
function normalizeField(value: unknown, field: SchemaField): unknown {
  if (value === null || value === undefined) return zeroOf(field);
  if (field.shape === "list") return normalizeList(value, field);
  if (field.shape === "map") return normalizeMap(value, field);
  const normal = normalizeValue(value, field);
  if (normal === undefined) return zeroOf(field);
  if (field.pointer) return normal;
  if (field.omitZero && typeof normal === "object" && isZeroStruct(normal, field)) return undefined;
  return field.omitEmpty && isEmptyScalar(normal, field) ? undefined : normal;
}

function normalizeList(value: unknown, field: SchemaField): unknown {
  if (!Array.isArray(value)) return zeroOf(field);
  // stored objects know no empty list but an absent one
  if (value.length === 0) return zeroOf(field);
  for (let i = 0; i < value.length; i++) value[i] = normalizeValue(value[i], field) ?? zeroItem(field);
  return value;
}

function normalizeMap(value: unknown, field: SchemaField): unknown {
  if (typeof value !== "object" || Array.isArray(value)) return zeroOf(field);
  const map = value as Fields;
  const keys = Object.keys(map);
  if (keys.length === 0) return zeroOf(field);
  for (const key of keys) map[key] = normalizeValue(map[key], field) ?? zeroItem(field);
  return map;
}

/** One value, item or map entry; undefined where its type is wrong. */
function normalizeValue(value: unknown, field: SchemaField): unknown {
  switch (field.type) {
    case "object": {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
      const schema = schemaOf(field.ref ?? "");
      if (schema) normalizeStruct(value as Fields, schema);
      return value;
    }
    case "array":
      return Array.isArray(value) ? value.filter((item) => typeof item === "string") : undefined;
    case "string":
    case "bytes":
      return typeof value === "string" ? value : undefined;
    case "int32":
    case "int64":
      return Number.isInteger(value) ? value : undefined;
    case "float64":
      return typeof value === "number" ? value : undefined;
    case "bool":
      return typeof value === "boolean" ? value : undefined;
    case "intOrString":
      return typeof value === "string" || Number.isInteger(value) ? value : undefined;
    case "quantity":
      return typeof value === "string" || typeof value === "number" ? canonicalQuantity(value) : undefined;
    case "time":
      return typeof value === "string" ? canonicalTime(value) : undefined;
    case "microtime":
      return typeof value === "string" ? canonicalMicroTime(value) : undefined;
    default:
      return value ?? undefined;
  }
}

/** What an absent field is in JSON: undefined where it is left out. */
function zeroOf(field: SchemaField): unknown {
  // Defaults that the schema itself declares: `protocol: TCP` of ports and a few others.
  if (field.default !== undefined && (field.pointer || field.default)) return structuredClone(field.default);
  if (field.shape !== "one" || field.pointer) return field.omitEmpty || field.omitZero ? undefined : null;
  if (field.omitZero) return undefined;
  switch (field.type) {
    case "object":
      return zeroItem(field);
    case "time":
    case "microtime":
      return null;
    case "quantity":
      return "0";
    case "intOrString":
      return 0;
    case "RawExtension":
      return null;
    default:
      return field.omitEmpty ? undefined : zeroScalar(field);
  }
}

function zeroScalar(field: SchemaField): unknown {
  switch (field.type) {
    case "string":
      return "";
    case "bool":
      return false;
    case "int32":
    case "int64":
    case "float64":
      return 0;
    default:
      return null;
  }
}

function zeroItem(field: SchemaField): unknown {
  switch (field.type) {
    case "object": {
      const value: Fields = {};
      const schema = schemaOf(field.ref ?? "");
      if (schema) normalizeStruct(value, schema);
      return value;
    }
    case "quantity":
      return "0";
    case "intOrString":
      return 0;
    default:
      return zeroScalar(field);
  }
}

function isEmptyScalar(value: unknown, field: SchemaField): boolean {
  if (field.type === "intOrString" || field.type === "quantity") return false;
  return value === "" || value === 0 || value === false;
}

function isZeroStruct(value: unknown, field: SchemaField): boolean {
  return (
    field.type === "object" &&
    Object.values(value as Fields).every((item) => item === null || item === 0 || item === "")
  );
}
