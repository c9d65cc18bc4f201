import { EMPTY, type FieldSet, isEmpty } from "./field-set.ts";
import { elementOf, type FieldType, fit, isMap, type MapType } from "./field-type.ts";

/** A value without the paths of a set. What lies below a removed path goes with it; a map that loses all is null. */
export function removePaths(value: unknown, paths: FieldSet, type: FieldType): unknown {
  if (isEmpty(paths)) return value;
  const shape = fit(type, value);
  if (shape.kind === "map" && isMap(value)) return removeFields(value, paths, shape);
  if (shape.kind === "list" && Array.isArray(value)) {
    const kept = value.flatMap((item) => {
      const element = elementOf(shape, item);
      if (paths.members.has(element)) return [];
      return [removePaths(item, paths.children.get(element) ?? EMPTY, shape.item)];
    });
    return kept.length > 0 ? kept : null;
  }
  return shape.kind === "scalar" ? value : null;
}

function removeFields(value: Readonly<Record<string, unknown>>, paths: FieldSet, type: MapType): unknown {
  const result: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    const element = `f:${key}`;
    if (paths.members.has(element)) continue;
    const below = paths.children.get(element);
    result[key] = below ? removePaths(item, below, type.field(key) ?? type.item) : item;
  }
  return Object.keys(result).length > 0 ? result : null;
}

/** The set with every declared field above its paths as a path of its own. */
export function withParents(set: FieldSet, type: FieldType | undefined): FieldSet {
  const members = new Set(set.members);
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    let below: FieldType | undefined;
    if (element.startsWith("f:") && type?.kind === "map") {
      const declared = type.field(element.slice(2));
      if (declared) members.add(element);
      below = declared ?? type.item;
    } else if (type?.kind === "list") below = type.item;
    children.set(element, withParents(child, below));
  }
  return { members, children };
}
