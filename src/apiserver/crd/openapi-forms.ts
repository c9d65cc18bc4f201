import { deepEqual } from "#base";
import { isIntOrString, itemsOf, type JsonSchema, preserves, valuesOf } from "./schema/json-schema.ts";

const INT_OR_STRING = [{ type: "integer" }, { type: "string" }];

type Writable = { -readonly [K in keyof JsonSchema]: JsonSchema[K] };

/** A copy with every schema in it (but for those that only restrict) changed. */
function mapSchema(schema: JsonSchema, change: (schema: Writable) => void): JsonSchema {
  const copy: Writable = { ...schema };
  change(copy);
  if (copy.properties)
    copy.properties = Object.fromEntries(
      Object.entries(copy.properties).map(([name, one]) => [name, mapSchema(one, change)]),
    );
  const [items, values] = [itemsOf(copy), valuesOf(copy)];
  if (items) copy.items = mapSchema(items, change);
  if (values) copy.additionalProperties = mapSchema(values, change);
  return copy;
}

/** OpenAPI 3: a number or a text is said in its words too. */
export function unfold(schema: JsonSchema): JsonSchema {
  return mapSchema(schema, (one) => {
    if (!isIntOrString(one)) return;
    if (deepEqual(one.anyOf, INT_OR_STRING) || deepEqual(one.allOf?.[0]?.anyOf, INT_OR_STRING)) return;
    if (one.anyOf) one.allOf = [{ anyOf: INT_OR_STRING }, ...(one.allOf ?? [])];
    else one.anyOf = INT_OR_STRING;
  });
}

/** OpenAPI 2 as kubectl reads it: no alternatives, no defaults, no types for what may be null or anything. */
export function forSwagger(schema: JsonSchema): JsonSchema {
  return mapSchema(schema, (one) => {
    const nullable = Object.entries(one.properties ?? {}).flatMap(([name, property]) =>
      property.nullable ? [name] : [],
    );
    const required = valuesOf(one)?.nullable ? [] : (one.required ?? []).filter((name) => !nullable.includes(name));
    for (const name of ["allOf", "oneOf", "anyOf", "not", "default"] as const) delete one[name];
    const open = one.nullable || preserves(one);
    if (open) {
      delete one.items;
      delete one.properties;
    }
    if (one.nullable || (preserves(one) && one.type === "object") || (one.type === "array" && !one.items))
      delete one.type;
    delete one.nullable;
    if (required.length > 0) one.required = required;
    else delete one.required;
  });
}
