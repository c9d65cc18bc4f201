import { type Comparison, compareValues } from "./compare.ts";
import { idOf, type Owner, type OwnerId, type Owners } from "./entries.ts";
import {
  difference,
  EMPTY,
  type FieldSet,
  fieldSet,
  intersection,
  isEmpty,
  pathsOf,
  recursiveDifference,
  union,
} from "./field-set.ts";
import { fieldSetOf } from "./field-set-of.ts";
import type { FieldType } from "./field-type.ts";
import { mergeValues } from "./merge.ts";
import { removePaths, withParents } from "./remove.ts";
import { isMap } from "./field-type.ts";
import { deepEqual } from "#base";

/** How objects of a kind are compared, in the request's version and in those of other owners. */
export interface Versions {
  readonly apiVersion: string;
  readonly type: FieldType;
  /** Fields that this request can't change: nobody gets to own them by it. */
  readonly ignored: FieldSet;
  /** The object in another version, and that version's type; undefined when it is not served any more. */
  convert(object: unknown, apiVersion: string): { object: unknown; type: FieldType } | undefined;
}

/** Paths that two managers want to differ in. */
export interface Conflict {
  readonly owner: Owner;
  readonly path: readonly string[];
}

/** Fields that nobody owns: the server's own and the object's identity. */
const STRIPPED = fieldSet(
  ["f:apiVersion"],
  ["f:kind"],
  ["f:metadata"],
  ...[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
  ].map((name) => ["f:metadata", `f:${name}`]),
);

/** What owners keep when `before` becomes `after`, and what of theirs was changed. */
function shareOut(
  before: unknown,
  after: unknown,
  owners: Owners,
  versions: Versions,
  acting: string,
): { owners: Owners; conflicts: Conflict[]; comparison: Comparison } {
  const comparisons = new Map<string, Comparison | undefined>();
  const at = (apiVersion: string): Comparison | undefined => {
    if (comparisons.has(apiVersion)) return comparisons.get(apiVersion);
    const found = compareAt(before, after, apiVersion, versions);
    comparisons.set(apiVersion, found);
    return found;
  };
  const comparison = at(versions.apiVersion)!;
  const conflicts: Conflict[] = [];
  const kept: Owners = new Map();
  for (const [id, owner] of owners) {
    if (id === acting) {
      kept.set(id, owner);
      continue;
    }
    const compared = at(owner.apiVersion);
    if (!compared) continue;
    const taken = intersection(owner.set, union(compared.modified, compared.added));
    for (const path of pathsOf(taken)) conflicts.push({ owner, path });
    const set = difference(difference(owner.set, taken), compared.removed);
    if (!isEmpty(set)) kept.set(id, isEmpty(difference(owner.set, set)) ? owner : { ...owner, set });
  }
  return { owners: kept, conflicts, comparison };
}

function compareAt(before: unknown, after: unknown, apiVersion: string, versions: Versions): Comparison | undefined {
  let [a, b, type] = [before, after, versions.type];
  if (apiVersion !== versions.apiVersion) {
    const old = versions.convert(before, apiVersion);
    const fresh = versions.convert(after, apiVersion);
    if (!old || !fresh) return undefined;
    [a, b, type] = [old.object, fresh.object, old.type];
  }
  const { added, modified, removed } = compareValues(a, b, type);
  const { ignored } = versions;
  return {
    added: recursiveDifference(added, ignored),
    modified: recursiveDifference(modified, ignored),
    removed: recursiveDifference(removed, ignored),
  };
}

/** Owners after a write that is no apply: who writes gets what it changed, others lose it. */
export function ownersAfterUpdate(
  before: unknown,
  after: unknown,
  owners: Owners,
  versions: Versions,
  who: OwnerId,
  now: string,
): Owners {
  const { owners: kept, comparison } = shareOut(before, after, owners, versions, "");
  const changed = difference(union(comparison.modified, comparison.added), STRIPPED);
  if (isEmpty(changed)) return capped(kept);
  const id = idOf(who);
  const previous = kept.get(id);
  kept.set(id, { ...who, set: previous ? union(changed, previous.set) : changed, time: now });
  return capped(kept);
}

/** More writers than this are put together, the oldest first. */
const MAX_UPDATERS = 10;

function capped(owners: Owners): Owners {
  const updaters = [...owners].filter(([, owner]) => owner.operation === "Update");
  let excess = updaters.length - MAX_UPDATERS;
  if (excess <= 0) return owners;
  updaters.sort(([x, a], [y, b]) => compareText(a.time ?? "", b.time ?? "") || compareText(x, y));
  const first = new Map<string, string>();
  for (const [id, owner] of updaters) {
    if (excess <= 0) break;
    const { apiVersion } = owner;
    const earlier = first.get(apiVersion);
    if (earlier === undefined) {
      first.set(apiVersion, id);
      continue;
    }
    const bucket = { manager: "ancient-changes", operation: "Update", apiVersion, subresource: "" } as const;
    const bucketId = idOf(bucket);
    const before = owners.get(bucketId) ?? owners.get(earlier)!;
    if (!owners.has(bucketId)) owners.delete(earlier);
    owners.set(bucketId, { ...bucket, set: union(owner.set, before.set), time: owner.time });
    if (id !== bucketId) owners.delete(id);
    excess--;
  }
  return owners;
}

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

export type Applied =
  | { readonly conflicts: readonly Conflict[] }
  | { readonly conflicts?: undefined; readonly object: unknown; readonly owners: Owners };

/**
 * A configuration applied to the live object: merged, freed of what its manager no longer says and nobody else owns, and
 * refused where it changes what others own, unless `force`. @throws Error for lists that can't be merged
 */
export function applyTo(
  live: unknown,
  config: unknown,
  owners: Owners,
  versions: Versions,
  who: OwnerId,
  options: { force: boolean; now: string },
): Applied {
  const { type, ignored } = versions;
  const id = idOf(who);
  const last = owners.get(id);
  const said = recursiveDifference(fieldSetOf(config, type, true), ignored);
  const wanted = new Map(owners);
  wanted.set(id, { ...who, set: said, time: last?.time });
  const merged = prune(mergeValues(live, config, type), wanted, versions, last);
  const { owners: kept, conflicts } = shareOut(live, merged, wanted, versions, id);
  if (conflicts.length > 0 && !options.force) return { conflicts };
  const set = difference(said, STRIPPED);
  const changed = !deepEqual(live, merged);
  if (isEmpty(set)) kept.delete(id);
  else kept.set(id, { ...who, set, time: changed ? options.now : last?.time });
  return { object: changed ? merged : live, owners: kept };
}

/** Takes away what the manager's last configuration said and this one doesn't, where no other manager has it. */
function prune(merged: unknown, owners: Owners, versions: Versions, last: Owner | undefined): unknown {
  if (!last || isEmpty(last.set)) return merged;
  const at = (object: unknown, apiVersion: string) => viewAt(object, apiVersion, versions);
  const whole = at(merged, last.apiVersion);
  // applied at a version that is no longer served: its paths mean nothing here, and are dropped from the owner's set alone
  if (!whole) return merged;
  const said = withParents(last.set, whole.type);
  let left = removePaths(whole.object, said, whole.type);
  // what others own comes back, at the version of the removal first: conversions may need it
  const owned = ownedByVersion(owners);
  for (const apiVersion of new Set([last.apiVersion, ...owned.keys()])) {
    const before = at(merged, apiVersion);
    const after = at(left, apiVersion);
    const set = owned.get(apiVersion);
    if (!before || !after || !set) continue;
    const { object, type } = before;
    const kept = union(withParents(fieldSetOf(after.object, type), type), withParents(set, type));
    left = removePaths(object, difference(withParents(fieldSetOf(object, type), type), kept), type);
  }
  // what the manager never owned stays
  const { object, type } = whole;
  const pruned = withParents(fieldSetOf(at(left, last.apiVersion)?.object, type), type);
  const gone = difference(withParents(fieldSetOf(object, type), type), pruned);
  const result = removePaths(object, intersection(gone, said), type);
  return at(result, versions.apiVersion)?.object ?? merged;
}

function viewAt(object: unknown, apiVersion: string, versions: Versions) {
  if (!isMap(object)) return undefined;
  if (object.apiVersion === apiVersion && apiVersion === versions.apiVersion) return { object, type: versions.type };
  return versions.convert(object, apiVersion);
}

function ownedByVersion(owners: Owners): Map<string, FieldSet> {
  const owned = new Map<string, FieldSet>();
  for (const { apiVersion, set } of owners.values()) owned.set(apiVersion, union(owned.get(apiVersion) ?? EMPTY, set));
  return owned;
}

/** The paths that a configuration says and the live object has with the same value. */
export function agreedPaths(config: unknown, live: unknown, type: FieldType): FieldSet {
  const { added, modified, removed } = compareValues(config, live, type);
  return difference(fieldSetOf(config, type), union(union(added, modified), removed));
}
