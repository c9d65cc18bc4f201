import { deepEqual } from "#base";
import { type SchemaField, schemaOf } from "#kinds";

type Fields = Record<string, unknown>;

/** A patch that brings `current` to `modified`. */
export interface ThreeWayPatch {
  readonly patch: Fields;
  /** Strategic merge for built-in kinds, plain merge for others. */
  readonly strategic: boolean;
}

/**
 * What `kubectl apply` sends: every field of `modified` that `current` has otherwise, and the removal of what `original` (the last
 * configuration that was applied) had and `modified` has no more. Fields that others set stay.
 * @param schemaName OpenAPI name of the kind; without a schema lists are replaced as a whole
 * @see https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/
 */
export function threeWayMerge(
  original: object,
  modified: object,
  current: object,
  schemaName: string | undefined,
): ThreeWayPatch {
  const known = schemaName !== undefined && schemaOf(schemaName) !== undefined;
  const patch = mergeMaps(original as Fields, modified as Fields, current as Fields, known ? schemaName : undefined);
  return { patch, strategic: known };
}

const isMap = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const mapOf = (value: unknown): Fields => (isMap(value) ? value : {});
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function mergeMaps(original: Fields, modified: Fields, current: Fields, schemaName: string | undefined): Fields {
  const schema = schemaName === undefined ? undefined : schemaOf(schemaName);
  const patch: Fields = {};
  for (const [key, wanted] of Object.entries(modified)) {
    const now = current[key];
    if (now === undefined || now === null) {
      if (wanted !== null && wanted !== undefined) patch[key] = wanted;
      continue;
    }
    const field = schema?.fields.get(key);
    if (isMap(wanted) && isMap(now)) mergeMapField(patch, key, field, mapOf(original[key]), wanted, now);
    else if (Array.isArray(wanted) && Array.isArray(now) && field?.patchStrategy.includes("merge"))
      mergeListField(patch, key, field, listOf(original[key]), wanted, now);
    else if (!deepEqual(wanted, now)) patch[key] = wanted;
  }
  for (const key of Object.keys(original))
    if (!(key in modified) && current[key] !== undefined && current[key] !== null) patch[key] = null;
  return patch;
}

function mergeMapField(
  patch: Fields,
  key: string,
  field: SchemaField | undefined,
  original: Fields,
  wanted: Fields,
  now: Fields,
): void {
  const inner = mergeMaps(original, wanted, now, field?.shape === "one" ? field.ref : undefined);
  if (Object.keys(inner).length === 0) {
    // a union whose other member is still there: only what is wanted stays
    if (!field?.patchStrategy.includes("retainKeys") || Object.keys(now).every((name) => name in wanted)) return;
  }
  patch[key] = field?.patchStrategy.includes("retainKeys")
    ? { $retainKeys: Object.keys(wanted).sort(), ...inner }
    : inner;
}

function mergeListField(
  patch: Fields,
  key: string,
  field: SchemaField,
  original: unknown[],
  wanted: unknown[],
  now: unknown[],
): void {
  const mergeKey = field.patchMergeKey;
  if (mergeKey === undefined) {
    mergeSet(patch, key, original, wanted, now);
    return;
  }
  const find = (items: readonly unknown[], item: unknown) =>
    items.find((one) => deepEqual(mapOf(one)[mergeKey], mapOf(item)[mergeKey]));
  const changes: unknown[] = [];
  for (const item of wanted) {
    const there = find(now, item);
    if (there === undefined) {
      changes.push(item);
      continue;
    }
    const inner = mergeMaps(mapOf(find(original, item)), mapOf(item), mapOf(there), field.ref);
    if (Object.keys(inner).length === 0) continue;
    const retained = field.patchStrategy.includes("retainKeys") ? { $retainKeys: Object.keys(mapOf(item)).sort() } : {};
    changes.push({ ...retained, ...inner, [mergeKey]: mapOf(item)[mergeKey] });
  }
  for (const item of original)
    if (find(wanted, item) === undefined && find(now, item) !== undefined)
      changes.push({ $patch: "delete", [mergeKey]: mapOf(item)[mergeKey] });
  if (changes.length === 0) return;
  patch[`$setElementOrder/${key}`] = wanted.map((item) => ({ [mergeKey]: mapOf(item)[mergeKey] }));
  patch[key] = changes;
}

/** Lists of scalars that are sets: finalizers. */
function mergeSet(patch: Fields, key: string, original: unknown[], wanted: unknown[], now: unknown[]): void {
  const has = (items: readonly unknown[], item: unknown) => items.some((one) => deepEqual(one, item));
  const added = wanted.filter((item) => !has(now, item));
  const gone = original.filter((item) => !has(wanted, item) && has(now, item));
  if (added.length + gone.length === 0) return;
  patch[`$setElementOrder/${key}`] = wanted;
  if (added.length > 0) patch[key] = added;
  if (gone.length > 0) patch[`$deleteFromPrimitiveList/${key}`] = gone;
}
