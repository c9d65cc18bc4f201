import { type FieldSet, FieldSetBuilder } from "./field-set.ts";
import { elementOf, type FieldType, fit, isMap } from "./field-type.ts";

/** The paths of all that a value says. */
export function fieldSetOf(value: unknown, type: FieldType): FieldSet {
  const builder = new FieldSetBuilder();
  visit(value, type, [], builder);
  return builder.set;
}

function visit(value: unknown, type: FieldType, path: string[], builder: FieldSetBuilder): void {
  const shape = fit(type, value);
  if (shape.kind === "map") {
    if (!isMap(value)) return;
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue;
      const declared = shape.field(key);
      path.push(`f:${key}`);
      visit(item, declared ?? shape.item, path, builder);
      if (!declared || item === null || (isMap(item) && Object.keys(item).length === 0)) builder.insert(path);
      path.pop();
    }
  } else if (shape.kind === "list") {
    if (Array.isArray(value)) visitItems(value, shape, path, builder);
  } else builder.insert(path);
}

function visitItems(
  items: readonly unknown[],
  type: Extract<FieldType, { kind: "list" }>,
  path: string[],
  builder: FieldSetBuilder,
): void {
  const elements = items.map((item) => elementOf(type, item));
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const element of elements) (seen.has(element) ? repeated : seen).add(element);
  for (const [i, element] of elements.entries()) {
    path.push(element);
    // items with one key can't be told apart: they are owned together
    if (!repeated.has(element)) visit(items[i], type.item, path, builder);
    builder.insert(path);
    path.pop();
  }
}
