import type { JsonSchema } from "../schema/json-schema.ts";

/** Items that fit in the largest request where the schema sets no limit. */
export function maxOf(limit: number | undefined, item: JsonSchema): number {
  return limit ?? Math.floor(REQUEST_SIZE / (minSize(item) + 1));
}
const REQUEST_SIZE = 3 * 1024 * 1024;

/** Bytes of JSON that a value of a schema takes at least. */
function minSize(schema: JsonSchema): number {
  switch (schema.type) {
    case "string":
      return 2 + (schema.minLength ?? 0);
    case "boolean":
      return 4;
    case "object":
      return (schema.required ?? []).reduce(
        (sum, name) => sum + name.length + 4 + minSize(schema.properties?.[name] ?? {}),
        2,
      );
    case "array":
      return 2;
    default:
      return 1;
  }
}
