import { Environment } from "@marcbachmann/cel-js";
import { deepEqual } from "#base";
import { ObjectValue, toCel } from "../../cel/mod.ts";
import {
  type Fields,
  isEmbedded,
  isFields,
  isIntOrString,
  itemsOf,
  type JsonSchema,
  valuesOf,
} from "../schema/json-schema.ts";

/** How values of one schema look in CEL. */
export interface CelType {
  /** `int`, `list<string>`, or the name of an object type that was declared. */
  readonly name: string;
  /** A JSON value (read-only) as CEL takes it. */
  convert(value: unknown): unknown;
}

const RESERVED = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);

/** The name by which a field is read in CEL; undefined for names that can't be. */
export function escapeField(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  const escaped = name
    .replaceAll("__", "__underscores__")
    .replaceAll(".", "__dot__")
    .replaceAll("-", "__dash__")
    .replaceAll("/", "__slash__");
  return /^[A-Za-z_]\w*$/.test(escaped) ? escaped : undefined;
}

const scalar = (name: string, convert: (value: unknown) => unknown): CelType => ({ name, convert });
const DYN = scalar("dyn", toCel);
const STRING = scalar("string", (value) => value);
const META: JsonSchema = {
  type: "object",
  properties: { name: { type: "string" }, generateName: { type: "string" } },
};

/** The schema with what every object has: apiVersion, kind, and name and generateName of metadata. */
function withObjectFields(schema: JsonSchema): JsonSchema {
  const string = { type: "string" };
  return { ...schema, properties: { ...schema.properties, apiVersion: string, kind: string, metadata: META } };
}

/** Declares in `env` the types that a schema needs. `name` begins the names of its object types. */
export function declareType(env: Environment, schema: JsonSchema, name: string, root = false): CelType {
  const type = bareType(env, schema, name, root);
  // null has a type of its own: a field that may be null is checked when it is evaluated
  return schema.nullable ? { name: "dyn", convert: (value) => (value === null ? null : type.convert(value)) } : type;
}

function bareType(env: Environment, schema: JsonSchema, name: string, root: boolean): CelType {
  if (isIntOrString(schema)) return DYN;
  switch (schema.type) {
    case "object":
      return objectType(env, root || isEmbedded(schema) ? withObjectFields(schema) : schema, name);
    case "array": {
      const items = itemsOf(schema);
      const item = items ? declareType(env, items, `${name}.item`) : DYN;
      return {
        name: `list<${item.name}>`,
        convert: (value) => (Array.isArray(value) ? value.map((one) => item.convert(one)) : toCel(value)),
      };
    }
    case "integer":
      return scalar("int", (value) => (Number.isInteger(value) ? BigInt(value as number) : toCel(value)));
    case "number":
      return scalar("double", (value) => value);
    case "boolean":
      return scalar("bool", (value) => value);
    case "string":
      return stringType(schema.format);
    default:
      return DYN;
  }
}

function stringType(format: string | undefined): CelType {
  switch (format) {
    case "byte":
      return scalar("bytes", (value) => Buffer.from(String(value), "base64"));
    case "date":
    case "date-time":
      return scalar("google.protobuf.Timestamp", (value) => new Date(String(value)));
    case "duration":
      return scalar("google.protobuf.Duration", (value) => durationOf(String(value)));
    default:
      return STRING;
  }
}

const durations = new Environment();

/** A duration as CEL's own `duration()` reads it. */
function durationOf(text: string): unknown {
  return durations.evaluate(`duration(${JSON.stringify(text)})`);
}

function objectType(env: Environment, schema: JsonSchema, name: string): CelType {
  const values = valuesOf(schema);
  if (values) {
    const value = declareType(env, values, `${name}.value`);
    return {
      name: `map<string, ${value.name}>`,
      convert: (map) => (isFields(map) ? mapOf(map, (one) => value.convert(one)) : toCel(map)),
    };
  }
  if (!schema.properties) return DYN;
  const fields: Record<string, CelType> = {};
  const ctor = class extends ObjectValue {};
  for (const [key, property] of Object.entries(schema.properties)) {
    const escaped = escapeField(key);
    if (!escaped) continue;
    const type = declareType(env, property, `${name}.${escaped}`);
    fields[escaped] = type;
    Object.defineProperty(ctor.prototype, escaped, {
      enumerable: true,
      get(this: ObjectValue) {
        const value = Object.hasOwn(this.raw, key) ? this.raw[key] : undefined;
        return value === undefined ? undefined : type.convert(value);
      },
    });
  }
  const names = Object.fromEntries(Object.entries(fields).map(([key, type]) => [key, type.name]));
  env.registerType(name, { ctor, fields: names });
  env.registerOperator(`${name} == ${name}`, (a: ObjectValue, b: ObjectValue) => deepEqual(a.raw, b.raw));
  return { name, convert: (value) => (isFields(value) ? new ctor(value) : toCel(value)) };
}

function mapOf(map: Fields, convert: (value: unknown) => unknown): Map<string, unknown> {
  return new Map(Object.entries(map).map(([key, value]) => [key, convert(value)]));
}
