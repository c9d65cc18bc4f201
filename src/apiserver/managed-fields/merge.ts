import { elementOf, type FieldType, fit, isMap, type ListType, type MapType } from "./field-type.ts";

/** `live` with all that `config` says. Neither is changed. @throws Error for lists with items that can't be told apart */
export function mergeValues(live: unknown, config: unknown, type: FieldType): unknown {
  const left = fit(type, live);
  const right = fit(type, config);
  const shape = config === undefined || config === null ? left : right;
  const mixed =
    live !== undefined && live !== null && config !== undefined && config !== null && left.kind !== right.kind;
  if (shape.kind === "map" && !mixed && !(isEmptyMap(live) && isEmptyMap(config)))
    return mergeMaps(live, config, shape);
  if (shape.kind === "list" && !mixed && !(isEmptyList(live) && isEmptyList(config)))
    return mergeLists(live, config, shape);
  return config !== undefined ? config : live;
}

const isEmptyMap = (value: unknown) =>
  value === undefined || value === null || (isMap(value) && Object.keys(value).length === 0);
const isEmptyList = (value: unknown) =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);

function mergeMaps(live: unknown, config: unknown, type: MapType): unknown {
  const a = isMap(live) ? live : {};
  const b = isMap(config) ? config : {};
  const result: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const value = mergeValues(a[key], b[key], type.field(key) ?? type.item);
    if (value !== undefined) result[key] = value;
  }
  return result;
}

/**
 * Items of the configuration come in its order; those that only the live list has keep their places between the shared ones.
 */
function mergeLists(live: unknown, config: unknown, type: ListType): unknown {
  const left = Array.isArray(live) ? live : [];
  const right = Array.isArray(config) ? config : [];
  const leftElements = left.map((item) => elementOf(type, item));
  const rightElements = right.map((item) => elementOf(type, item));
  const mine = indexOnce(rightElements, right, false);
  const theirs = indexOnce(leftElements, left, true);
  const shared = rightElements.filter((element) => theirs.has(element));
  const done = new Set<string>();
  const result: unknown[] = [];
  let next = shared.shift();
  const take = (element: string) => {
    done.add(element);
    const merged = mergeValues(theirs.get(element), mine.get(element), type.item);
    if (merged !== undefined) result.push(merged);
    if (next === element) next = shared.shift();
  };
  for (let l = 0, r = 0; l < left.length || r < right.length; ) {
    const element = leftElements[l];
    if (element !== undefined && r < right.length) {
      if (element === rightElements[r]) {
        take(element);
        l++;
        r++;
        continue;
      }
      // shared, but not the one whose turn it is
      if (mine.has(element) && next !== undefined && next !== element) {
        l++;
        continue;
      }
    }
    if (element !== undefined) {
      if (!mine.has(element)) {
        result.push(left[l]);
        l++;
        continue;
      }
      if (done.has(element)) l++;
    }
    if (r < right.length) take(rightElements[r++]!);
  }
  return result.length > 0 ? result : undefined;
}

/** Items by their element. @throws Error when one comes twice and may not */
function indexOnce(elements: readonly string[], items: readonly unknown[], repeats: boolean): Map<string, unknown> {
  const index = new Map<string, unknown>();
  for (const [i, element] of elements.entries()) {
    if (!index.has(element)) index.set(element, items[i]);
    else if (repeats) index.set(element, undefined);
    else throw new Error(`duplicate entries for key ${elementText(element)}`);
  }
  return index;
}

function elementText(element: string): string {
  const text = element.slice(2);
  if (element.startsWith("v:")) return `[=${text}]`;
  const fields = Object.entries(JSON.parse(text) as Record<string, unknown>);
  return `[${fields.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(",")}]`;
}
