import { schemaText } from "../generated/schema.ts";

export type ScalarType =
  | "string"
  | "int32"
  | "int64"
  | "float64"
  | "bool"
  | "bytes"
  | "quantity"
  | "time"
  | "microtime"
  | "intOrString"
  | "RawExtension"
  | "FieldsV1"
  | "JSON"
  | "JSONSchemaPropsOrArray"
  | "JSONSchemaPropsOrBool"
  | "JSONSchemaPropsOrStringArray"
  | "CustomResourceSubresourceStatus";

/** One field of a built-in type. */
export interface SchemaField {
  readonly name: string;
  readonly shape: "one" | "list" | "map";
  /** Type of the value, or of the items of a list or map; `object` for another schema. */
  readonly type: ScalarType | "object" | "array";
  /** OpenAPI name of that schema, for `object`. */
  readonly ref: string | undefined;
  readonly required: boolean;
  /** Zero values are left out of JSON. */
  readonly omitEmpty: boolean;
  readonly omitZero: boolean;
  /** A zero value differs from an absent one. */
  readonly pointer: boolean;
  /** `x-kubernetes-list-type`. */
  readonly listType: "atomic" | "set" | "map" | undefined;
  readonly listMapKeys: readonly string[];
  /** `x-kubernetes-map-type`. */
  readonly mapType: "atomic" | undefined;
  /** `x-kubernetes-patch-strategy`, split: `merge`, `retainKeys`, `replace`. */
  readonly patchStrategy: readonly string[];
  readonly patchMergeKey: string | undefined;
  readonly enum: readonly string[];
  /** Default in the OpenAPI schema where it isn't the zero value that the type implies. */
  readonly default: unknown;
  /** Embedded structs that the field comes from, as decoding errors name them: `VolumeSource`. */
  readonly embedded: string | undefined;
  /** Name of the type in error messages: `int32`, `v1.Protocol`, `[]v1.Container`. */
  readonly goType: string;
}

/** One built-in type. */
export interface Schema {
  /** `io.k8s.api.core.v1.PodSpec` */
  readonly name: string;
  /** `PodSpec` */
  readonly type: string;
  readonly fields: ReadonlyMap<string, SchemaField>;
  readonly mapType: "atomic" | undefined;
  /** `x-kubernetes-unions`, as OpenAPI has it. */
  readonly unions: unknown;
}

const packages: Record<string, Record<string, Record<string, string>>> = JSON.parse(schemaText);
const decoded = new Map<string, Schema>();

/** The schema of an OpenAPI name (`io.k8s.api.core.v1.Pod`). Read-only and the same object each time. */
export function schemaOf(name: string): Schema | undefined {
  const known = decoded.get(name);
  if (known) return known;
  const dot = name.lastIndexOf(".");
  const text = packages[name.slice(0, dot)]?.[name.slice(dot + 1)];
  if (!text) return undefined;
  const schema = decode(name, text);
  decoded.set(name, schema);
  return schema;
}

/** OpenAPI names of all built-in types. */
export function schemaNames(): string[] {
  return Object.entries(packages).flatMap(([pkg, types]) => Object.keys(types).map((type) => `${pkg}.${type}`));
}

/**
 * The field that a path of property names leads to, list indices left out (`["spec", "containers", "env"]`). Undefined for
 * an unknown field and below maps and untyped values.
 */
export function fieldAt(schemaName: string, path: readonly string[]): SchemaField | undefined {
  let schema = schemaOf(schemaName);
  let field: SchemaField | undefined;
  for (const name of path) {
    field = schema?.fields.get(name);
    schema = field?.ref ? schemaOf(field.ref) : undefined;
  }
  return field;
}

/** Descriptions of a type (under "") and its fields, for OpenAPI and `kubectl explain`; loaded when first asked for. */
export async function describeSchema(name: string): Promise<Readonly<Record<string, string>>> {
  descriptions ??= import("../generated/descriptions.ts").then((module) => JSON.parse(module.descriptionsText));
  return (await descriptions)[name] ?? {};
}
let descriptions: Promise<Record<string, Record<string, string>>> | undefined;

function decode(name: string, text: Readonly<Record<string, unknown>>): Schema {
  const dot = name.lastIndexOf(".");
  const { $map, $unions, ...fields } = text;
  const entries = Object.entries(fields as Record<string, string>).map(
    ([field, tokens]) => [field, decodeField(field, tokens, name.slice(0, dot))] as const,
  );
  return {
    name,
    type: name.slice(dot + 1),
    fields: new Map(entries),
    mapType: $map === "atomic" ? "atomic" : undefined,
    unions: $unions,
  };
}

function decodeField(name: string, text: string, pkg: string): SchemaField {
  const [typeText = "", ...tokens] = text.split(" ");
  const [, prefix = "", type = ""] = /^(\[\]|map:)?(.*)$/.exec(typeText) ?? [];
  const value = (key: string) => tokens.find((token) => token.startsWith(`${key}=`))?.slice(key.length + 1);
  const ref = type.startsWith("#") ? (type.includes(".") ? type.slice(1) : `${pkg}.${type.slice(1)}`) : undefined;
  const given = value("default");
  return {
    name,
    shape: prefix === "[]" ? "list" : prefix === "map:" ? "map" : "one",
    type: ref ? "object" : type.startsWith("[]") ? "array" : (type as ScalarType),
    ref,
    required: tokens.includes("required"),
    omitEmpty: tokens.includes("omitempty"),
    omitZero: tokens.includes("omitzero"),
    pointer: tokens.includes("pointer"),
    listType: value("list") as SchemaField["listType"],
    listMapKeys: value("keys")?.split(",") ?? [],
    mapType: value("map") as "atomic" | undefined,
    patchStrategy: value("strategy")?.split(",") ?? [],
    patchMergeKey: value("mergeKey"),
    enum: value("enum")?.split(",") ?? [],
    default: given === undefined ? undefined : JSON.parse(given),
    embedded: value("in"),
    goType: goTypeOf(value("go"), typeText, ref, pkg),
  };
}

const GO_TYPES: Readonly<Record<string, string>> = {
  bytes: "[]uint8",
  quantity: "resource.Quantity",
  time: "v1.Time",
  microtime: "v1.MicroTime",
  intOrString: "intstr.IntOrString",
  RawExtension: "runtime.RawExtension",
  FieldsV1: "v1.FieldsV1",
};

function goTypeOf(given: string | undefined, typeText: string, ref: string | undefined, pkg: string): string {
  const version = (owner: string) => owner.slice(owner.lastIndexOf(".") + 1);
  if (given) {
    const named = given.replace(/\b(?:metav1|corev1|core|meta)\./g, "v1.");
    return named.replace(/(^|\])([A-Z])/g, (_, before, letter) => `${before}${version(pkg)}.${letter}`);
  }
  const prefix = typeText.startsWith("[]") ? "[]" : typeText.startsWith("map:") ? "map[string]" : "";
  if (ref) return `${prefix}${version(ref.slice(0, ref.lastIndexOf(".")))}.${ref.slice(ref.lastIndexOf(".") + 1)}`;
  const inner = typeText.replace(/^(\[\]|map:)/, "");
  return `${prefix}${GO_TYPES[inner] ?? inner}`;
}
