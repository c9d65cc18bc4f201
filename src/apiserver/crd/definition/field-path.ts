import { itemsOf, type JsonSchema, propertyOf, valuesOf } from "../schema/json-schema.ts";

/** The schema of the field that a path like `.spec.a['b.c']` leads to, or why it leads nowhere. */
export function schemaAt(path: string, root: JsonSchema): { schema: JsonSchema } | { error: string } {
  let schema: JsonSchema | undefined = root;
  let rest = path;
  while (rest !== "") {
    const step = /^\.([A-Za-z_][\w-]*)|^\['((?:[^'\\]|\\.)*)'\]/.exec(rest);
    if (!step) return { error: rest.startsWith("[") ? "unexpected [" : `unexpected ${JSON.stringify(rest[0])}` };
    const name: string = step[1] ?? step[2]!.replace(/\\(.)/g, "$1");
    const next: JsonSchema | undefined = propertyOf(schema, name) ?? valuesOf(schema);
    if (!next || (itemsOf(schema) && !schema.properties)) return { error: `does not refer to a valid field` };
    schema = next;
    rest = rest.slice(step[0].length);
  }
  return { schema };
}
