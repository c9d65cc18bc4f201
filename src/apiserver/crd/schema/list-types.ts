import { type FieldError, fieldError } from "#kinds";
import { child, type Fields, fieldOf, isFields, itemsOf, type JsonSchema, propertyOf } from "./json-schema.ts";

/** Items that occur twice in lists that are sets or maps. */
export function validateListTypes(value: unknown, schema: JsonSchema | undefined, path = ""): FieldError[] {
  if (!schema) return [];
  if (Array.isArray(value)) {
    return [
      ...duplicates(value, schema, path),
      ...value.flatMap((item, i) => validateListTypes(item, itemsOf(schema), `${path}[${i}]`)),
    ];
  }
  if (!isFields(value)) return [];
  return Object.entries(value).flatMap(([name, item]) => {
    if (path === "" && name === "metadata") return [];
    const at = propertyOf(schema, name) ? child(path, name) : `${path}[${name}]`;
    return validateListTypes(item, fieldOf(schema, name), at);
  });
}

function duplicates(list: readonly unknown[], schema: JsonSchema, path: string): FieldError[] {
  switch (schema["x-kubernetes-list-type"]) {
    case "set":
      return repeated(list.map(canonical)).map((i) => fieldError.duplicate(`${path}[${i}]`, list[i]));
    case "map": {
      const at = list.findIndex((item) => !isFields(item));
      if (at >= 0)
        return [fieldError.invalid(`${path}[${at}]`, list[at], "must be an object for an array of list-type map")];
      const keys = list.map((item) => keyOf(item as Fields, schema));
      return repeated(keys.map(canonical)).map((i) => fieldError.duplicate(`${path}[${i}]`, keys[i]));
    }
    default:
      return [];
  }
}

/** What tells an item of a map list from the others. */
export function keyOf(item: Fields, schema: JsonSchema): Fields {
  const key: Fields = {};
  for (const name of schema["x-kubernetes-list-map-keys"] ?? []) if (item[name] !== undefined) key[name] = item[name];
  return key;
}

/** The same text for equal values, whatever the order of their fields. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isFields(value)) return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join()}}`;
}

/** Positions of a value's second occurrence. */
function repeated(texts: readonly string[]): number[] {
  const seen = new Map<string, number>();
  return texts.flatMap((text, i) => {
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    return times === 2 ? [i] : [];
  });
}
