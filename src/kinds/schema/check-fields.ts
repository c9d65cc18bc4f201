import { quantityError } from "../quantity.ts";
import { type Schema, type SchemaField, schemaOf } from "./schema.ts";
import { canonicalMicroTime, canonicalTime, timeError } from "./time.ts";

/** What decoding a request body into a built-in type finds. */
export interface FieldCheck {
  /** `unknown field "spec.containres"`, in the body's order. */
  readonly unknown: readonly string[];
  /** What Go's decoder says of values of a wrong type; the first is the one that the API server reports. */
  readonly typeErrors: readonly string[];
}

interface Walk {
  readonly unknown: string[];
  readonly typeErrors: string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Compares an object with the schema of its kind. */
export function checkFields(object: Fields, schemaName: string): FieldCheck {
  const schema = schemaOf(schemaName);
  const walk: Walk = { unknown: [], typeErrors: [] };
  if (schema) checkStruct(object, schema, "", "", walk);
  return walk;
}

/** The message of the 400 for a body with a type error. */
export function typeErrorMessage(kind: string, version: string, typeError: string, given: string = kind): string {
  return `${given} in version "${version}" cannot be handled as a ${kind}: ${typeError}`;
}

/** The message of the 400 (or the texts of warnings) for unknown and duplicate fields. */
export function strictErrorMessage(texts: readonly string[]): string {
  return `strict decoding error: ${texts.join(", ")}`;
}

/** `path` names list items (`spec.containers[0]`), `plain` doesn't (`spec.containers`), as Go's errors need it. */
function checkStruct(object: Fields, schema: Schema, path: string, plain: string, walk: Walk): void {
  for (const [key, value] of Object.entries(object)) {
    const at = path ? `${path}.${key}` : key;
    const field = schema.fields.get(key);
    if (!field) {
      walk.unknown.push(`unknown field ${JSON.stringify(at)}`);
      continue;
    }
    if (value === null || value === undefined) continue;
    const names = [...(plain ? [plain] : []), ...(field.embedded ? [field.embedded] : []), key];
    checkField(value, field, { owner: schema.type, path: at, plain: names.join(".") }, walk);
  }
}

interface Place {
  /** The struct that has the field. */
  readonly owner: string;
  readonly path: string;
  readonly plain: string;
}

function checkField(value: unknown, field: SchemaField, at: Place, walk: Walk): void {
  const kind = jsonKind(value);
  if (field.shape === "one") {
    checkValue(value, field, at, walk);
  } else if (kind !== (field.shape === "list" ? "array" : "object")) {
    walk.typeErrors.push(cannotUnmarshal(kind, at, field.goType));
  } else {
    const entries = Object.entries(value as object);
    for (const [key, item] of entries) {
      const path = field.shape === "list" ? `${at.path}[${key}]` : `${at.path}.${key}`;
      if (item !== null) checkValue(item, field, { ...at, path }, walk);
    }
  }
}

function cannotUnmarshal(shown: string, at: Place, goType: string): string {
  return `json: cannot unmarshal ${shown} into Go struct field ${at.owner}.${at.plain} of type ${goType}`;
}

const EXPECTED: Readonly<Partial<Record<SchemaField["type"], JsonKind>>> = {
  object: "object",
  array: "array",
  string: "string",
  bytes: "string",
  bool: "bool",
  float64: "number",
  int32: "number",
  int64: "number",
};

function checkValue(value: unknown, field: SchemaField, at: Place, walk: Walk): void {
  const kind = jsonKind(value);
  const expected = EXPECTED[field.type];
  const itemType = field.goType.replace(
    field.shape === "list" ? /^\[\]/ : field.shape === "map" ? /^map\[[^\]]*\]/ : /^/,
    "",
  );
  if (!expected) {
    checkSpecial(value, field, at, walk);
  } else if (kind !== expected) {
    walk.typeErrors.push(cannotUnmarshal(kind, at, itemType));
  } else if (field.type === "object") {
    const schema = schemaOf(field.ref ?? "");
    if (schema) checkStruct(value as Fields, schema, at.path, at.plain, walk);
  } else if (field.type === "bytes") {
    checkBytes(value as string, walk);
  } else if ((field.type === "int32" || field.type === "int64") && !fits(value as number, field.type)) {
    walk.typeErrors.push(cannotUnmarshal(`number ${String(value)}`, at, itemType));
  }
}

/** Types that decode themselves. */
function checkSpecial(value: unknown, field: SchemaField, at: Place, walk: Walk): void {
  const kind = jsonKind(value);
  const wrong = (shown: string, type: string) => walk.typeErrors.push(cannotUnmarshal(shown, at, type));
  if (field.type === "quantity") {
    checkQuantity(value, walk);
  } else if (field.type === "intOrString" && kind !== "string") {
    if (kind !== "number") wrong(kind, "int32");
    else if (!fits(value as number, "int32")) wrong(`number ${String(value)}`, "int32");
  } else if (field.type === "time" || field.type === "microtime") {
    const canonical = field.type === "time" ? canonicalTime : canonicalMicroTime;
    if (kind !== "string") wrong(kind, "string");
    else if (canonical(value as string) === undefined) walk.typeErrors.push(timeError(value as string, field.type));
  }
}

function checkQuantity(value: unknown, walk: Walk): void {
  const error = quantityError(typeof value === "string" ? value : JSON.stringify(value));
  if (error) walk.typeErrors.push(error);
}

function checkBytes(value: string, walk: Walk): void {
  const text = value.replace(/[\r\n]/g, "");
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0) return;
  const bad = /[^A-Za-z0-9+/]/.exec(text);
  const position = bad && bad[0] !== "=" ? bad.index : text.length - (text.length % 4);
  walk.typeErrors.push(`illegal base64 data at input byte ${position}`);
}

function fits(value: number, type: "int32" | "int64"): boolean {
  if (!Number.isInteger(value)) return false;
  return type === "int32" ? value >= -2147483648 && value <= 2147483647 : Math.abs(value) < 2 ** 63;
}

type JsonKind = "string" | "number" | "bool" | "array" | "object";

function jsonKind(value: unknown): JsonKind {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return typeof value === "object" ? "object" : (typeof value as "string" | "number");
}
