import { describeSchema, type KindInfo } from "#kinds";
import type { CustomSchemas } from "../openapi/openapi.ts";
import { forSwagger, unfold } from "./openapi-forms.ts";
import {
  type Fields,
  isEmbedded,
  isFields,
  itemsOf,
  type JsonSchema,
  preserves,
  valuesOf,
} from "./schema/json-schema.ts";

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
const CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

type Published = Record<string, Fields>;

/** OpenAPI schemas of custom resources and of their lists, made when they are first asked for. */
export function createCustomSchemas(): CustomSchemas {
  const published = new WeakMap<KindInfo, { v3?: Promise<Published>; v2?: Promise<Published> }>();
  return {
    schemasOf(kind, form) {
      const known = published.get(kind) ?? {};
      published.set(kind, known);
      known[form] ??= schemasOf(kind, form === "v2");
      return known[form];
    },
  };
}

/** Texts of the fields that all objects and all lists have, as built-in kinds have them. */
async function commonTexts() {
  const object = await describeSchema("io.k8s.api.core.v1.Pod");
  const list = await describeSchema("io.k8s.api.core.v1.PodList");
  return { object, list };
}

async function schemasOf(kind: KindInfo, swagger: boolean): Promise<Published> {
  const { object, list } = await commonTexts();
  const prefix = swagger ? "#/definitions/" : "#/components/schemas/";
  const about = (texts: Readonly<Record<string, string>>, meta: string): Fields => ({
    apiVersion: { description: texts.apiVersion, type: "string" },
    kind: { description: texts.kind, type: "string" },
    metadata: reference(prefix + meta, `Standard object's metadata. More info: ${CONVENTIONS}#metadata`, swagger),
  });
  const own = (kind.customSchema ?? {}) as JsonSchema;
  const listName = kind.schema.replace(/\.[^.]+$/, `.${kind.listKind}`);
  const selectable = selectableOf(kind);
  return {
    [kind.schema]: { ...objectSchema(own, about(object, `${META}.ObjectMeta`), swagger, prefix), ...selectable },
    [listName]: {
      description: `${kind.listKind} is a list of ${kind.kind}`,
      type: "object",
      required: ["items"],
      properties: {
        ...about(list, `${META}.ListMeta`),
        items: {
          description: `List of ${kind.resource}. More info: ${CONVENTIONS}`,
          type: "array",
          items: { $ref: prefix + kind.schema },
        },
      },
      ...selectable,
    },
  };
}

/** OpenAPI 3 ignores what stands beside a reference, so the text goes around it. */
function reference(target: string, description: string | undefined, swagger: boolean): Fields {
  return swagger ? { description, $ref: target } : { description, allOf: [{ $ref: target }] };
}

function objectSchema(schema: JsonSchema, about: Fields, swagger: boolean, prefix: string): Fields {
  // kubectl takes properties for all that there are: where everything is kept, none are told
  if (swagger && preserves(schema)) return { type: "object" };
  const form = swagger ? forSwagger(schema) : unfold(schema);
  if (!form.type && !form.properties && !swagger) return { ...form, type: "object", properties: about };
  const embedded = withEmbedded(form, swagger, prefix) as Fields;
  return { ...embedded, properties: { ...(embedded.properties as Fields | undefined), ...about } };
}

/** Embedded objects have the metadata of objects. */
function withEmbedded(schema: JsonSchema, swagger: boolean, prefix: string): JsonSchema {
  const result = { ...schema } as Fields;
  const inner = (one: JsonSchema) => withEmbedded(one, swagger, prefix);
  if (schema.properties)
    result.properties = Object.fromEntries(Object.entries(schema.properties).map(([name, one]) => [name, inner(one)]));
  const [items, values] = [itemsOf(schema), valuesOf(schema)];
  if (items) result.items = inner(items);
  if (values) result.additionalProperties = inner(values);
  if (!isEmbedded(schema) || (swagger && preserves(schema))) return result as JsonSchema;
  result.properties = {
    ...(isFields(result.properties) ? result.properties : {}),
    apiVersion: { description: `Version of the embedded object. More info: ${CONVENTIONS}#resources`, type: "string" },
    kind: { description: `Kind of the embedded object. More info: ${CONVENTIONS}#types-kinds`, type: "string" },
    metadata: reference(`${prefix}${META}.ObjectMeta`, `Metadata. More info: ${CONVENTIONS}#metadata`, swagger),
  };
  result.required = [...new Set([...(schema.required ?? []), "kind", "apiVersion"])];
  return result as JsonSchema;
}

function selectableOf(kind: KindInfo): Fields {
  if (!kind.selectableFields) return {};
  const sample = { apiVersion: "", kind: kind.kind, metadata: { name: "" } };
  const fields = Object.keys(kind.selectableFields(sample)).map((fieldPath) => ({ fieldPath }));
  return { "x-kubernetes-selectable-fields": fields };
}
