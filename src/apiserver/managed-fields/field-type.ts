import { type KindInfo, type Schema, type SchemaField, schemaOf } from "#kinds";
import { keyElement } from "./field-set.ts";

/** How values of a field are compared and merged (structured merge: maps and lists that are granular or atomic). */
export type FieldType =
  | { readonly kind: "scalar" }
  /** One value, whatever is inside. */
  | { readonly kind: "atomic" }
  /** No schema: maps are granular, lists atomic. */
  | { readonly kind: "untyped" }
  | {
      readonly kind: "map";
      /** Type of a declared field; undefined for the keys of a map. */
      field(name: string): FieldType | undefined;
      /** Type of other keys. */
      readonly item: FieldType;
    }
  | {
      readonly kind: "list";
      /** Fields that tell items apart; empty: a set of values. */
      readonly keys: readonly string[];
      readonly keyDefaults: ReadonlyMap<string, unknown>;
      readonly item: FieldType;
    };

const SCALAR: FieldType = { kind: "scalar" };
const ATOMIC: FieldType = { kind: "atomic" };
export const UNTYPED: FieldType = { kind: "untyped" };

/** The type of a kind's objects. A custom resource without a schema of its own is untyped. */
export function typeOfKind(kind: KindInfo): FieldType {
  if (kind.decode) return customTypeOf((kind.customSchema ?? {}) as JsonSchema);
  const schema = schemaOf(kind.schema);
  return schema ? typeOfSchema(schema) : UNTYPED;
}

/** The part of a custom resource's schema (JSONSchemaProps) that tells how its values are merged. */
interface JsonSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly default?: unknown;
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: string;
}

const customTypes = new WeakMap<JsonSchema, FieldType>();

/** Metadata of custom resources has the type that all metadata has. */
function customTypeOf(schema: JsonSchema): FieldType {
  let type = customTypes.get(schema);
  if (!type) {
    const meta = schemaOf("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    const metadata = meta && typeOfSchema(meta);
    const whole = typeOfJson({ ...schema, type: "object" }) as MapType;
    type = { ...whole, field: (name) => (name === "metadata" ? metadata : whole.field(name)) };
    customTypes.set(schema, type);
  }
  return type;
}

function typeOfJson(schema: JsonSchema): FieldType {
  if (schema.type === "array") return listOfJson(schema);
  if (schema.type !== "object") return schema.type === undefined ? UNTYPED : SCALAR;
  if (schema["x-kubernetes-map-type"] === "atomic") return ATOMIC;
  const { properties = {}, additionalProperties: others } = schema;
  const fields = new Map(Object.entries(properties).map(([name, field]) => [name, typeOfJson(field)]));
  const item = typeof others === "object" ? typeOfJson(others) : UNTYPED;
  return { kind: "map", field: (name) => fields.get(name), item };
}

function listOfJson(schema: JsonSchema): FieldType {
  const relation = schema["x-kubernetes-list-type"];
  if (relation !== "map" && relation !== "set") return ATOMIC;
  const keys = relation === "map" ? (schema["x-kubernetes-list-map-keys"] ?? []) : [];
  const defaults = keys.map((key) => [key, schema.items?.properties?.[key]?.default] as const);
  return {
    kind: "list",
    keys,
    keyDefaults: new Map(defaults.filter(([, value]) => value !== undefined)),
    item: schema.items ? typeOfJson(schema.items) : UNTYPED,
  };
}

const types = new WeakMap<Schema, FieldType>();

function typeOfSchema(schema: Schema): FieldType {
  const known = types.get(schema);
  if (known) return known;
  const fields = new Map<string, FieldType>();
  const type: FieldType = {
    kind: "map",
    field(name) {
      let found = fields.get(name);
      if (found) return found;
      const field = schema.fields.get(name);
      if (!field) return undefined;
      found = typeOfField(field);
      fields.set(name, found);
      return found;
    },
    item: UNTYPED,
  };
  types.set(schema, type);
  return type;
}

function typeOfField(field: SchemaField): FieldType {
  if (field.shape === "list") return listType(field);
  if (field.mapType === "atomic") return ATOMIC;
  const value = typeOfValue(field);
  return field.shape === "map" ? { kind: "map", field: () => undefined, item: value } : value;
}

function listType(field: SchemaField): FieldType {
  const merged = field.patchStrategy.includes("merge");
  const relation = field.listType ?? (merged ? (field.patchMergeKey ? "map" : "set") : "atomic");
  if (relation === "atomic") return ATOMIC;
  const keys = relation === "set" ? [] : field.listMapKeys.length > 0 ? field.listMapKeys : [field.patchMergeKey!];
  const schema = field.ref ? schemaOf(field.ref) : undefined;
  const defaults = keys.map((key) => [key, schema?.fields.get(key)?.default] as const);
  return {
    kind: "list",
    keys,
    keyDefaults: new Map(defaults.filter(([, value]) => value !== undefined)),
    item: typeOfValue(field),
  };
}

function typeOfValue(field: SchemaField): FieldType {
  switch (field.type) {
    case "object": {
      const schema = field.ref ? schemaOf(field.ref) : undefined;
      if (!schema) return UNTYPED;
      return schema.mapType === "atomic" ? ATOMIC : typeOfSchema(schema);
    }
    case "RawExtension":
    case "FieldsV1":
      return UNTYPED;
    case "array":
    case "JSON":
    case "JSONSchemaPropsOrArray":
    case "JSONSchemaPropsOrBool":
    case "JSONSchemaPropsOrStringArray":
    case "CustomResourceSubresourceStatus":
      return ATOMIC;
    default:
      return SCALAR;
  }
}

/** A type that fits the value: untyped values are maps or leaves, and so is what has a form that the type doesn't foresee. */
export function fit(type: FieldType, value: unknown): FieldType {
  if (type.kind === "untyped")
    return isMap(value) ? UNTYPED_MAP : value === null || value === undefined ? type : ATOMIC;
  if (value === null || value === undefined) return type;
  if (type.kind === "map" && !isMap(value)) return ATOMIC;
  if (type.kind === "list" && !Array.isArray(value)) return ATOMIC;
  return type;
}

const UNTYPED_MAP: FieldType = { kind: "map", field: () => undefined, item: UNTYPED };

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export type ListType = Extract<FieldType, { kind: "list" }>;
export type MapType = Extract<FieldType, { kind: "map" }>;

/** The path element of a list's item. @throws Error for an item that can't be told apart */
export function elementOf(type: ListType, item: unknown): string {
  if (type.keys.length === 0) {
    if (typeof item === "object") throw new Error("associative list without keys has an element that's a map type");
    return `v:${JSON.stringify(item)}`;
  }
  if (!isMap(item)) throw new Error("associative list with keys may not have non-map elements");
  const fields: [string, unknown][] = [];
  for (const key of type.keys) {
    const value = item[key] ?? type.keyDefaults.get(key);
    if (value !== undefined) fields.push([key, value]);
  }
  if (fields.length === 0) {
    const names = type.keys.map((key) => JSON.stringify(key)).join(" ");
    throw new Error(
      `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`,
    );
  }
  return keyElement(fields);
}
