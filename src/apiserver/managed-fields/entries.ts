import { type FieldSet, fromFieldsV1, toFieldsV1 } from "./field-set.ts";

/** metadata.managedFields[] (meta/v1 ManagedFieldsEntry). */
export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: unknown;
  subresource?: string;
}

export interface OwnerId {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
}

/** Who owns which fields of an object. */
export interface Owner extends OwnerId {
  readonly set: FieldSet;
  readonly time: string | undefined;
}

/** Owners by the text of their identity. */
export type Owners = Map<string, Owner>;

/** One manager has one entry for what it applies, whatever the version, and one a version for what it updates. */
export function idOf({ manager, operation, apiVersion, subresource }: OwnerId): string {
  return JSON.stringify([manager, operation, operation === "Apply" ? "" : apiVersion, subresource]);
}

const sets = new WeakMap<object, FieldSet>();

/** @throws Error for entries that can't be read */
export function decodeOwners(entries: readonly unknown[] | undefined): Owners {
  const owners: Owners = new Map();
  for (const entry of (entries ?? []) as readonly ManagedFieldsEntry[]) {
    const { manager = "", operation, apiVersion, subresource = "", time, fieldsV1 = {} } = entry;
    if (operation !== "Apply" && operation !== "Update") throw new Error("operation must be `Apply` or `Update`");
    if (!apiVersion) throw new Error("apiVersion must not be empty");
    if (entry.fieldsType !== "FieldsV1") throw new Error(`invalid fieldsType ${JSON.stringify(entry.fieldsType)}`);
    const id = { manager, operation, apiVersion, subresource } as const;
    owners.set(idOf(id), { ...id, set: setOf(fieldsV1), time });
  }
  return owners;
}

function setOf(fields: unknown): FieldSet {
  const known = typeof fields === "object" && fields ? sets.get(fields) : undefined;
  if (known) return known;
  const set = fromFieldsV1(fields);
  sets.set(fields as object, set);
  return set;
}

/** The entries in the order that the API server gives them; undefined when nobody owns anything. */
export function encodeOwners(owners: Owners): ManagedFieldsEntry[] | undefined {
  if (owners.size === 0) return undefined;
  return [...owners.values()].sort(byOrder).map(({ manager, operation, apiVersion, subresource, time, set }) => ({
    manager,
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: "FieldsV1",
    fieldsV1: fieldsOf(set),
    ...(subresource ? { subresource } : {}),
  }));
}

function byOrder(a: Owner, b: Owner): number {
  const compare = (x: string, y: string) => (x < y ? -1 : x > y ? 1 : 0);
  return (
    compare(a.operation, b.operation) ||
    compare(a.time ?? "", b.time ?? "") ||
    compare(a.manager, b.manager) ||
    compare(a.apiVersion, b.apiVersion) ||
    compare(a.subresource, b.subresource)
  );
}

/** Objects that were made alike have owners alike: they share one value. Bounded, so that it can't hold on to everything. */
const shared = new Map<string, object>();
const SHARED_LIMIT = 2_000;
const encoded = new WeakMap<FieldSet, object>();

function fieldsOf(set: FieldSet): object {
  const known = encoded.get(set);
  if (known) return known;
  const fresh = toFieldsV1(set);
  const text = JSON.stringify(fresh);
  const fields = shared.get(text) ?? fresh;
  if (fields === fresh) {
    if (shared.size >= SHARED_LIMIT) shared.clear();
    shared.set(text, fields);
  }
  encoded.set(set, fields);
  if (!sets.has(fields)) sets.set(fields, set);
  return fields;
}
