import { deepClone } from "#base";
import { type Fields, fieldOf, isFields, itemsOf, type JsonSchema, propertyOf, valuesOf } from "./json-schema.ts";

const hasDefault = new WeakMap<JsonSchema, boolean>();

/** Whether a schema or anything in it has a default: without, defaulting can be left out. */
export function specifiesDefaults(schema: JsonSchema | undefined): boolean {
  if (!schema) return false;
  let known = hasDefault.get(schema);
  if (known === undefined) {
    known =
      schema.default !== undefined ||
      Object.values(schema.properties ?? {}).some(specifiesDefaults) ||
      specifiesDefaults(valuesOf(schema)) ||
      specifiesDefaults(itemsOf(schema));
    hasDefault.set(schema, known);
  }
  return known;
}

/** Sets, in place, what is missing and has a default. `null` for a field that can't be null counts as missing. */
export function setDefaults(value: unknown, schema: JsonSchema | undefined): void {
  if (!schema || !specifiesDefaults(schema)) return;
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    for (const [i, item] of value.entries()) {
      if (item === null && items && !items.nullable && items.default !== undefined) value[i] = deepClone(items.default);
      setDefaults(value[i], items);
    }
    return;
  }
  if (!isFields(value)) return;
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (property.default === undefined) continue;
    if (value[name] === undefined || (value[name] === null && !property.nullable))
      value[name] = deepClone(property.default);
  }
  const values = valuesOf(schema);
  for (const name of Object.keys(value)) {
    const own = propertyOf(schema, name);
    if (!own && value[name] === null && values && !values.nullable && values.default !== undefined)
      value[name] = deepClone(values.default);
    setDefaults(value[name], own ?? values);
  }
}

/** Removes, in place, nulls of fields that can't be null and have no default. */
export function dropNulls(value: unknown, schema: JsonSchema | undefined): void {
  if (Array.isArray(value)) {
    for (const item of value) dropNulls(item, itemsOf(schema));
    return;
  }
  if (!isFields(value)) return;
  dropNullFields(value, schema);
}

function dropNullFields(value: Fields, schema: JsonSchema | undefined): void {
  for (const name of Object.keys(value)) {
    const own = fieldOf(schema, name);
    if (value[name] === null && own && !own.nullable && own.default === undefined) delete value[name];
    else dropNulls(value[name], own);
  }
}
