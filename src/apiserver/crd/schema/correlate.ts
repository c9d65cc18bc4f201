import { isFields, itemsOf, type JsonSchema } from "./json-schema.ts";
import { canonical, keyOf } from "./list-types.ts";

/**
 * The former values of a list's items. Only items of map lists keep their identity, told by their keys; of all others it is
 * not known what they were.
 */
export function correlateItems(list: readonly unknown[], old: unknown, schema: JsonSchema): readonly unknown[] {
  if (schema["x-kubernetes-list-type"] !== "map" || !Array.isArray(old) || !itemsOf(schema)) return [];
  const byKey = new Map<string, unknown>();
  for (const item of old) if (isFields(item)) byKey.set(canonical(keyOf(item, schema)), item);
  return list.map((item) => (isFields(item) ? byKey.get(canonical(keyOf(item, schema))) : undefined));
}

/** The former value of a field; none in maps that are atomic. */
export function correlateField(old: unknown, name: string, schema: JsonSchema): unknown {
  if (schema["x-kubernetes-map-type"] === "atomic" || !isFields(old)) return undefined;
  return Object.hasOwn(old, name) ? old[name] : undefined;
}
