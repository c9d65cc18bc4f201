import { apiVersionOf, type KindInfo } from "#kinds";
import type { CustomSchemas } from "../openapi/openapi.ts";
import { isEmbedded, isFields, isIntOrString, type JsonSchema, preserves } from "./schema/json-schema.ts";

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
const DOCS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const API_VERSION = {
  description: `The versioned schema that this object is written in. More info: ${DOCS}#resources`,
  type: "string",
};
const KIND = { description: `What the object is. More info: ${DOCS}#types-kinds`, type: "string" };

const published = new WeakMap<KindInfo, Record<string, Record<string, unknown>>>();

/** OpenAPI schemas of custom resources and of their lists, made when they are first asked for. */
export function createCustomSchemas(): CustomSchemas {
  return {
    schemasOf(kind) {
      let known = published.get(kind);
      if (!known) {
        known = schemasOf(kind);
        published.set(kind, known);
      }
      return known;
    },
  };
}

function schemasOf(kind: KindInfo): Record<string, Record<string, unknown>> {
  const own = kind.customSchema as JsonSchema | undefined;
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const list = kind.schema.replace(/\.[^.]+$/, `.${kind.listKind}`);
  return {
    [kind.schema]: withMetadata(publishSchema(own ?? {}, true), kind),
    [list]: {
      description: `${kind.listKind} is a list of ${kind.kind}`,
      type: "object",
      required: ["items"],
      properties: {
        apiVersion: API_VERSION,
        items: {
          description: `The ${kind.resource}. More info: ${DOCS}`,
          type: "array",
          items: { allOf: [ref(kind.schema)] },
        },
        kind: KIND,
        metadata: {
          description: `Metadata of the list. More info: ${DOCS}#types-kinds`,
          allOf: [ref(`${META}.ListMeta`)],
        },
      },
    },
  };
}

function withMetadata(schema: Record<string, unknown>, kind: KindInfo): Record<string, unknown> {
  const properties = isFields(schema.properties) ? schema.properties : {};
  return {
    ...schema,
    properties: {
      ...properties,
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: {
        description: `Metadata of the ${kind.kind} in ${apiVersionOf(kind)}. More info: ${DOCS}#metadata`,
        allOf: [{ $ref: `#/components/schemas/${META}.ObjectMeta` }],
      },
    },
  };
}

/** The schema as OpenAPI knows it. What clients must not judge by (unknown fields that are kept) is left open. */
function publishSchema(schema: JsonSchema, root = false): Record<string, unknown> {
  if (root && preserves(schema) && !schema.properties) return { type: "object", ...extensions(schema) };
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "properties" || key === "definitions")
      result[key] = Object.fromEntries(
        Object.entries(value as Record<string, JsonSchema>).map(([name, one]) => [name, publishSchema(one)]),
      );
    else if (key === "items" || key === "not") result[key] = publishSchema(value as JsonSchema);
    else if (key === "additionalProperties" && isFields(value)) result[key] = publishSchema(value as JsonSchema);
    else if (key === "allOf" || key === "anyOf" || key === "oneOf")
      result[key] = (value as JsonSchema[]).map((one) => publishSchema(one));
    else result[key] = value;
  }
  if (isIntOrString(schema)) delete result.type;
  if (isEmbedded(schema) && isFields(result.properties))
    result.properties = {
      ...result.properties,
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { allOf: [{ $ref: `#/components/schemas/${META}.ObjectMeta` }] },
    };
  return result;
}

function extensions(schema: JsonSchema): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key.startsWith("x-kubernetes-")));
}
