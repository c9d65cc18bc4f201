import { deepEqual } from "#base";
import { type FieldSet, FieldSetBuilder } from "./field-set.ts";
import { elementOf, type FieldType, fit, isMap, type ListType, type MapType } from "./field-type.ts";

/** Paths by what became of them. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

interface Walk {
  readonly added: FieldSetBuilder;
  readonly modified: FieldSetBuilder;
  readonly removed: FieldSetBuilder;
  /** Where the walk is; elements are pushed and popped. */
  readonly path: string[];
}

/** What differs between two values of a type. */
export function compareValues(before: unknown, after: unknown, type: FieldType): Comparison {
  const walk: Walk = {
    added: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    removed: new FieldSetBuilder(),
    path: [],
  };
  compare(before, after, type, walk);
  return { added: walk.added.set, modified: walk.modified.set, removed: walk.removed.set };
}

/** `undefined` is absent; null is a value. */
function compare(a: unknown, b: unknown, type: FieldType, walk: Walk): void {
  // shared parts of two versions of an object are the same object
  if (a === b) return;
  const left = fit(type, a);
  const right = fit(type, b);
  const shape = b === undefined || b === null ? left : right;
  if (shape.kind === "map" && !(emptyMap(a) && emptyMap(b)) && sameKind(left, right, a, b)) {
    compareMaps(a, b, shape, walk);
    mark(a, b, walk);
  } else if (shape.kind === "list" && !(emptyList(a) && emptyList(b)) && sameKind(left, right, a, b)) {
    compareLists(a, b, shape, walk);
    mark(a, b, walk);
  } else {
    mark(a, b, walk);
    if (a !== undefined && b !== undefined && !deepEqual(a, b)) walk.modified.insert(walk.path);
  }
}

function sameKind(left: FieldType, right: FieldType, a: unknown, b: unknown): boolean {
  return left.kind === right.kind || isAbsent(a) || isAbsent(b);
}

const isAbsent = (value: unknown) => value === undefined || value === null;
const emptyMap = (value: unknown) => isAbsent(value) || (isMap(value) && Object.keys(value).length === 0);
const emptyList = (value: unknown) => isAbsent(value) || (Array.isArray(value) && value.length === 0);

function mark(a: unknown, b: unknown, walk: Walk): void {
  if (a === undefined) walk.added.insert(walk.path);
  else if (b === undefined) walk.removed.insert(walk.path);
}

function compareMaps(a: unknown, b: unknown, type: MapType, walk: Walk): void {
  const before = isMap(a) ? a : {};
  const after = isMap(b) ? b : {};
  const visit = (key: string) => {
    const x = before[key];
    const y = after[key];
    if (x === undefined && y === undefined) return;
    walk.path.push(`f:${key}`);
    compare(x, y, type.field(key) ?? type.item, walk);
    walk.path.pop();
  };
  for (const key of Object.keys(before)) visit(key);
  for (const key of Object.keys(after)) if (!Object.hasOwn(before, key)) visit(key);
}

function compareLists(a: unknown, b: unknown, type: ListType, walk: Walk): void {
  const before = indexItems(a, type);
  const after = indexItems(b, type);
  for (const element of new Set([...before.keys(), ...after.keys()])) {
    const x = before.get(element) ?? [];
    const y = after.get(element) ?? [];
    walk.path.push(element);
    if (x.length <= 1 && y.length <= 1) compare(x[0], y[0], type.item, walk);
    else if (x.length > 1 && y.length > 1) {
      if (!deepEqual(x, y)) walk.modified.insert(walk.path);
    } else if (x.length > 1) {
      // items that had one key are no longer one thing
      if (y.length > 0) compare(undefined, y[0], type.item, walk);
      walk.removed.insert(walk.path);
    } else {
      if (x.length > 0) compare(x[0], undefined, type.item, walk);
      walk.added.insert(walk.path);
    }
    walk.path.pop();
  }
}

function indexItems(list: unknown, type: ListType): Map<string, unknown[]> {
  const index = new Map<string, unknown[]>();
  for (const item of Array.isArray(list) ? list : []) {
    const element = elementOf(type, item);
    const known = index.get(element);
    if (known) known.push(item);
    else index.set(element, [item]);
  }
  return index;
}
