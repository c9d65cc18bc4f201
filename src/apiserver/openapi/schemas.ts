import { describeSchema, type KindInfo, type Schema, type SchemaField, schemaOf } from "#kinds";

export type JsonSchema = Record<string, unknown>;

/** JSON schemas of the types that these names lead to, by OpenAPI name. `prefix` is where references point. */
export async function componentSchemas(names: readonly string[], prefix: string): Promise<Record<string, JsonSchema>> {
  const found = new Map<string, Schema>();
  const open = [...names];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (found.has(name)) continue;
    const schema = schemaOf(name);
    if (!schema) continue;
    found.set(name, schema);
    for (const field of schema.fields.values()) if (field.ref) open.push(field.ref);
  }
  const result: Record<string, JsonSchema> = { ...wrappers() };
  for (const [name, schema] of [...found].sort(([a], [b]) => (a < b ? -1 : 1)))
    result[name] = await jsonSchema(name, schema, prefix);
  return result;
}

async function jsonSchema(name: string, schema: Schema, prefix: string): Promise<JsonSchema> {
  const texts = await describeSchema(name);
  const required = [...schema.fields.values()].filter((field) => field.required).map((field) => field.name);
  return {
    ...(texts[""] ? { description: texts[""] } : {}),
    ...(required.length > 0 ? { required } : {}),
    type: "object",
    properties: Object.fromEntries(
      [...schema.fields.values()].map((field) => [field.name, fieldSchema(field, texts[field.name], prefix)]),
    ),
    ...(schema.mapType ? { "x-kubernetes-map-type": schema.mapType } : {}),
    ...(schema.unions ? { "x-kubernetes-unions": schema.unions } : {}),
  };
}

function fieldSchema(field: SchemaField, description: string | undefined, prefix: string): JsonSchema {
  const item = itemSchema(field, prefix);
  const about = description ? { description } : {};
  const extra: JsonSchema = {
    ...(field.default === undefined ? {} : { default: field.default }),
    ...(field.listType ? { "x-kubernetes-list-type": field.listType } : {}),
    ...(field.listMapKeys.length > 0 ? { "x-kubernetes-list-map-keys": field.listMapKeys } : {}),
    ...(field.mapType ? { "x-kubernetes-map-type": field.mapType } : {}),
    ...(field.patchStrategy.length > 0 ? { "x-kubernetes-patch-strategy": field.patchStrategy.join(",") } : {}),
    ...(field.patchMergeKey ? { "x-kubernetes-patch-merge-key": field.patchMergeKey } : {}),
  };
  if (field.shape === "list") return { ...about, type: "array", items: withDefault(item, field), ...extra };
  if (field.shape === "map")
    return { ...about, type: "object", additionalProperties: withDefault(item, field), ...extra };
  // OpenAPI 3.0 ignores what stands beside a reference, so the rest of the field goes around it
  if ("$ref" in item)
    return prefix === V2_PREFIX
      ? { ...about, ...item, ...extra }
      : {
          ...about,
          allOf: [item],
          ...extra,
          ...(field.type === "object" && !field.pointer && field.default === undefined ? { default: {} } : {}),
        };
  return { ...about, ...item, ...(field.enum.length > 0 ? { enum: field.enum } : {}), ...extra };
}

function withDefault(item: JsonSchema, field: SchemaField): JsonSchema {
  if ("$ref" in item) return field.type === "object" ? { allOf: [item], default: {} } : item;
  return item.type === "string" ? { ...item, default: "" } : item.type === "integer" ? { ...item, default: 0 } : item;
}

const V2_PREFIX = "#/definitions/";
const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
const EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

function itemSchema(field: SchemaField, prefix: string): JsonSchema {
  const ref = (name: string) => ({ $ref: prefix + name });
  switch (field.type) {
    case "string":
      return { type: "string" };
    case "bool":
      return { type: "boolean" };
    case "int32":
    case "int64":
      return { type: "integer", format: field.type };
    case "float64":
      return { type: "number", format: "double" };
    case "bytes":
      return { type: "string", format: "byte" };
    case "array":
      return { type: "array", items: { type: "string", default: "" } };
    case "object":
      return ref(field.ref ?? "");
    case "quantity":
      return ref("io.k8s.apimachinery.pkg.api.resource.Quantity");
    case "time":
      return ref(`${META}.Time`);
    case "microtime":
      return ref(`${META}.MicroTime`);
    case "intOrString":
      return ref("io.k8s.apimachinery.pkg.util.intstr.IntOrString");
    case "RawExtension":
      return ref("io.k8s.apimachinery.pkg.runtime.RawExtension");
    case "FieldsV1":
      return ref(`${META}.FieldsV1`);
    default:
      return ref(`${EXTENSIONS}.${field.type}`);
  }
}

/** Types that are a plain value in JSON. */
function wrappers(): Record<string, JsonSchema> {
  const any = { description: "any value" };
  return {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
      description: "A number with an optional suffix: 100m, 1.5, 2Gi.",
      oneOf: [{ type: "string" }, { type: "number" }],
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
      description: "A number or a text.",
      format: "int-or-string",
      oneOf: [{ type: "integer" }, { type: "string" }],
    },
    "io.k8s.apimachinery.pkg.runtime.RawExtension": { description: "Any object.", type: "object" },
    [`${META}.Time`]: { description: "A time in RFC 3339, to the second.", type: "string", format: "date-time" },
    [`${META}.MicroTime`]: {
      description: "A time in RFC 3339, to the microsecond.",
      type: "string",
      format: "date-time",
    },
    [`${META}.FieldsV1`]: { description: "A set of fields, as a tree of their names.", type: "object" },
    [`${EXTENSIONS}.JSON`]: any,
    [`${EXTENSIONS}.JSONSchemaPropsOrArray`]: any,
    [`${EXTENSIONS}.JSONSchemaPropsOrBool`]: any,
    [`${EXTENSIONS}.JSONSchemaPropsOrStringArray`]: any,
    [`${EXTENSIONS}.CustomResourceSubresourceStatus`]: { description: "Without fields.", type: "object" },
  };
}

/** Names a schema as that of a kind. */
export function markKind(
  schema: JsonSchema,
  { group, version, kind }: Pick<KindInfo, "group" | "version" | "kind">,
): JsonSchema {
  const before = (schema["x-kubernetes-group-version-kind"] as object[] | undefined) ?? [];
  return { ...schema, "x-kubernetes-group-version-kind": [...before, { group, kind, version }] };
}
