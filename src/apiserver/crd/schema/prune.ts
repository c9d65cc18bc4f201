import {
  asRoot,
  type Fields,
  isEmbedded,
  isFields,
  itemsOf,
  type JsonSchema,
  preserves,
  propertyOf,
  valuesOf,
} from "./json-schema.ts";

const META = new Set(["apiVersion", "kind", "metadata"]);

/** Removes, in place, the fields of an object that its schema doesn't know. Gives their paths, in order. */
export function prune(object: Fields, schema: JsonSchema): string[] {
  const unknown: string[] = [];
  pruneValue(object, asRoot(schema), "", unknown);
  return unknown.sort();
}

function pruneValue(value: unknown, schema: JsonSchema | undefined, path: string, unknown: string[]): void {
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    if (schema && preserves(schema) && !items) return;
    for (const [i, item] of value.entries()) pruneValue(item, items, `${path}[${i}]`, unknown);
    return;
  }
  if (!isFields(value)) return;
  for (const key of Object.keys(value)) {
    if (schema && isEmbedded(schema) && META.has(key)) continue;
    const at = path ? `${path}.${key}` : key;
    const own = propertyOf(schema, key);
    if (own) pruneValue(value[key], own, at, unknown);
    else if (schema?.additionalProperties !== undefined) {
      const values = valuesOf(schema);
      if (values || !preserves(schema)) pruneValue(value[key], values, at, unknown);
    } else if (!schema || !preserves(schema)) {
      unknown.push(at);
      delete value[key];
    }
  }
}
