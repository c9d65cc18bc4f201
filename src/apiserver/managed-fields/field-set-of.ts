import { type FieldSet, FieldSetBuilder, pathText } from "./field-set.ts";
import { elementOf, type FieldType, fit, isMap } from "./field-type.ts";

/**
 * The paths of all that a value says.
 * @param strict items of a list that can't be told apart are an error, as in a configuration that is applied
 */
export function fieldSetOf(value: unknown, type: FieldType, strict = false): FieldSet {
  const builder = new FieldSetBuilder();
  visit(value, type, [], { builder, strict });
  return builder.set;
}

interface Walk {
  readonly builder: FieldSetBuilder;
  readonly strict: boolean;
}

function visit(value: unknown, type: FieldType, path: string[], walk: Walk): void {
  const shape = fit(type, value);
  if (shape.kind === "map") {
    if (!isMap(value)) return;
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue;
      const declared = shape.field(key);
      path.push(`f:${key}`);
      visit(item, declared ?? shape.item, path, walk);
      if (!declared || item === null || (isMap(item) && Object.keys(item).length === 0)) walk.builder.insert(path);
      path.pop();
    }
  } else if (shape.kind === "list") {
    if (Array.isArray(value)) visitItems(value, shape, path, walk);
  } else walk.builder.insert(path);
}

function visitItems(
  items: readonly unknown[],
  type: Extract<FieldType, { kind: "list" }>,
  path: string[],
  walk: Walk,
): void {
  const elements = items.map((item) => elementOf(type, item));
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const element of elements) (seen.has(element) ? repeated : seen).add(element);
  const [double] = repeated;
  if (walk.strict && double !== undefined)
    throw new Error(`${pathText(path)}: duplicate entries for key ${pathText([double])}`);
  for (const [i, element] of elements.entries()) {
    path.push(element);
    // items with one key can't be told apart: they are owned together
    if (!repeated.has(element)) visit(items[i], type.item, path, walk);
    walk.builder.insert(path);
    path.pop();
  }
}
