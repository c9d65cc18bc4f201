import { deepEqual } from "#base";
import { badRequest, type SchemaField, schemaOf } from "#kinds";
import { isFields } from "./merge-patch.ts";

type Fields = Record<string, unknown>;

const DIRECTIVE = "$patch";
const RETAIN = "$retainKeys";
const ORDER = "$setElementOrder/";
const DELETE = "$deleteFromPrimitiveList/";

/**
 * A strategic merge patch: lists are merged by their merge key or as sets where the schema says so, and directives
 * (`$patch`, `$retainKeys`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x`) are followed. Neither argument is changed.
 * @throws StatusError 400
 * @see https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/
 */
export function strategicMergePatch(target: Fields, patch: Fields, schemaName: string): Fields {
  return mergeMap(target, patch, schemaName);
}

function mergeMap(target: Fields, patch: Fields, schemaName: string | undefined): Fields {
  const directive = patch[DIRECTIVE];
  if (directive === "replace") return strip(patch);
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge")
    throw badRequest(`invalid value for "$patch": ${JSON.stringify(directive)}`);
  const retained = patch[RETAIN];
  const result: Fields = retained === undefined ? { ...target } : retain(target, retained, patch);
  const schema = schemaName ? schemaOf(schemaName) : undefined;
  for (const [key, value] of Object.entries(patch)) {
    if (key === DIRECTIVE || key === RETAIN) continue;
    if (key.startsWith(DELETE)) {
      const name = key.slice(DELETE.length);
      const gone = listOf(value, key);
      result[name] = listOf(result[name] ?? [], name).filter((item) => !gone.some((one) => deepEqual(one, item)));
      continue;
    }
    if (key.startsWith(ORDER)) continue;
    const field = schema?.fields.get(key);
    if (value === null) delete result[key];
    else result[key] = mergeValue(result[key], value, field, patch[ORDER + key]);
  }
  // an order without a patch of the list itself still sorts it
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(ORDER)) continue;
    const name = key.slice(ORDER.length);
    if (patch[name] !== undefined || !Array.isArray(result[name])) continue;
    const field = schema?.fields.get(name);
    result[name] = sorted(result[name], listOf(order, key), field?.patchMergeKey, result[name]);
  }
  return result;
}

function retain(target: Fields, keys: unknown, patch: Fields): Fields {
  const kept = new Set(listOf(keys, RETAIN));
  for (const key of Object.keys(patch)) {
    if (!key.startsWith("$") && patch[key] !== null && !kept.has(key))
      throw badRequest("the patch contains a field that is not in $retainKeys");
  }
  return Object.fromEntries(Object.entries(target).filter(([key]) => kept.has(key)));
}

function mergeValue(target: unknown, value: unknown, field: SchemaField | undefined, order: unknown): unknown {
  if (Array.isArray(value)) {
    const merge = field?.patchStrategy.includes("merge") ?? false;
    if (!merge) return value.map((item) => (isFields(item) ? strip(item) : item));
    const current = Array.isArray(target) ? target : [];
    if (field!.patchMergeKey && value.every(isFields))
      return mergeObjects(current as Fields[], value as Fields[], field!, order);
    return mergePrimitives(current, value, order);
  }
  if (!isFields(value)) return value;
  if (field?.patchStrategy.includes("replace")) return strip(value);
  if (!isFields(target)) return value[DIRECTIVE] === "delete" ? undefined : strip(mergeMap({}, value, childOf(field)));
  return mergeMap(target, value, childOf(field));
}

/** The schema below a field; a map's values have the schema of its items, so its keys are no fields of one. */
function childOf(field: SchemaField | undefined): string | undefined {
  return field?.shape === "map" ? undefined : field?.ref;
}

function mergeObjects(
  current: readonly Fields[],
  patch: readonly Fields[],
  field: SchemaField,
  order: unknown,
): Fields[] {
  const key = field.patchMergeKey!;
  if (patch.some((item) => item[DIRECTIVE] === "replace" && Object.keys(item).length === 1)) {
    return patch.filter((item) => !(DIRECTIVE in item)).map(strip);
  }
  let result = [...current];
  for (const item of patch) {
    const id = item[key];
    if (id === undefined) throw badRequest(`map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`);
    const at = result.findIndex((one) => deepEqual(one[key], id));
    if (item[DIRECTIVE] === "delete") result = result.filter((one) => !deepEqual(one[key], id));
    else if (at < 0) result.push(strip(mergeMap({}, item, field.ref)));
    else if (item[DIRECTIVE] === "replace") result[at] = strip(item);
    else result[at] = mergeMap(result[at]!, item, field.ref);
  }
  const wanted = order === undefined ? patch.filter((item) => item[DIRECTIVE] !== "delete") : listOf(order, ORDER);
  return sorted(result, wanted, key, current) as Fields[];
}

function mergePrimitives(current: readonly unknown[], patch: readonly unknown[], order: unknown): unknown[] {
  const result = [...current];
  for (const item of patch) if (!result.some((one) => deepEqual(one, item))) result.push(item);
  return sorted(result, order === undefined ? patch : listOf(order, ORDER), undefined, current);
}

/**
 * Items that the order names come in that order; the others keep their places relative to their neighbours on the server.
 */
function sorted(
  items: readonly unknown[],
  order: readonly unknown[],
  key: string | undefined,
  server: readonly unknown[],
): unknown[] {
  const idOf = (item: unknown) => (key && isFields(item) ? item[key] : item);
  const position = (list: readonly unknown[], item: unknown) =>
    list.findIndex((one) => deepEqual(idOf(one), idOf(item)));
  const named = items
    .filter((item) => position(order, item) >= 0)
    .sort((a, b) => position(order, a) - position(order, b));
  const others = items
    .filter((item) => position(order, item) < 0)
    .sort((a, b) => position(server, a) - position(server, b));
  const result: unknown[] = [];
  while (named.length > 0 || others.length > 0) {
    const [a] = named;
    const [b] = others;
    const takeOther =
      b !== undefined &&
      (a === undefined ||
        (position(server, a) >= 0 && position(server, b) >= 0 && position(server, b) < position(server, a)));
    result.push(takeOther ? others.shift() : named.shift());
  }
  return result;
}

/** A value without directives, for where there is nothing to merge with. */
function strip(value: Fields): Fields {
  const result: Fields = {};
  for (const [key, item] of Object.entries(value)) {
    if (key === DIRECTIVE || key === RETAIN || key.startsWith(ORDER) || key.startsWith(DELETE)) continue;
    if (item === null) continue;
    result[key] = Array.isArray(item)
      ? item
          .filter((one) => !(isFields(one) && one[DIRECTIVE] === "delete"))
          .map((one) => (isFields(one) ? strip(one) : one))
      : isFields(item)
        ? strip(item)
        : item;
  }
  return result;
}

function listOf(value: unknown, name: string): unknown[] {
  if (!Array.isArray(value)) throw badRequest(`expected a list at ${name}`);
  return value;
}
