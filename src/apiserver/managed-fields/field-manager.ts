import { deepClone, deepEqual } from "#base";
import {
  type ApiObject,
  apiVersionOf,
  badRequest,
  failure,
  type KindInfo,
  normalizeObject,
  type StatusError,
} from "#kinds";
import type { Call } from "../pipeline/call.ts";
import { timeOf } from "../verbs/create.ts";
import { decodeOwners, encodeOwners, type OwnerId, type Owners } from "./entries.ts";
import { EMPTY, type FieldSet, fieldSet, has, pathText } from "./field-set.ts";
import { typeOfKind } from "./field-type.ts";
import { agreedPaths, applyTo, type Conflict, ownersAfterUpdate, type Versions } from "./updater.ts";

/** Longest name of a field manager, bytes. */
const MAX_MANAGER = 128;
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Keeps `metadata.managedFields` of a write that is no apply. `object` has its defaults and nothing from admission yet; `old` is
 * absent for a create. `requested` are the entries that the request carried.
 */
export function trackUpdate(
  call: Call,
  object: ApiObject,
  old: ApiObject | undefined,
  requested: unknown = object.metadata.managedFields,
): void {
  const { subresource } = call.info;
  const live = old?.metadata.managedFields;
  delete object.metadata.managedFields;
  try {
    const before = chosenOwners(requested, live, subresource !== "");
    // an object that was never tracked stays so until it is applied
    if (before.size === 0 && old) return;
    const versions = versionsOf(call);
    const who: OwnerId = {
      manager: managerOf(call),
      operation: "Update",
      apiVersion: versions.apiVersion,
      subresource,
    };
    const base = old ? withoutEntries(old) : emptyObject(call.kind);
    const owners = ownersAfterUpdate(base, object, before, versions, who, timeOf(call.server.clock.now()));
    setEntries(object, owners);
  } catch (error) {
    // lists with items that can't be told apart: validation has the words for it
    call.server.logger.debug("managed fields are not kept", { path: call.request.path, error });
    delete object.metadata.managedFields;
  }
}

function chosenOwners(requested: unknown, live: unknown[] | undefined, isSubresource: boolean): Owners {
  const given = Array.isArray(requested) ? requested : undefined;
  if (isSubresource || !given || given === live || deepEqual(given, live)) return readable(live);
  // an empty list, or one empty entry, asks to forget
  if (given.length === 0 || (given.length === 1 && Object.keys(given[0] as object).length === 0)) return new Map();
  const owners = readable(given);
  return owners.size > 0 ? owners : readable(live);
}

function readable(entries: readonly unknown[] | undefined): Owners {
  try {
    return decodeOwners(entries);
  } catch {
    // as the original: entries that can't be read count as none
    return new Map();
  }
}

function setEntries(object: ApiObject, owners: Owners): void {
  const entries = encodeOwners(owners);
  if (entries) object.metadata.managedFields = entries;
  else delete object.metadata.managedFields;
}

function withoutEntries(object: ApiObject): ApiObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata } as ApiObject;
}

const empties = new WeakMap<KindInfo, ApiObject>();

/** What a create starts from: an object that says nothing, with the fields that its type always has. */
function emptyObject(kind: KindInfo): ApiObject {
  let empty = empties.get(kind);
  if (!empty) {
    empty = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: {} } as unknown as ApiObject;
    if (!kind.decode) normalizeObject(empty as never, kind.schema);
    empties.set(kind, empty);
  }
  return empty;
}

/** The `fieldManager` of the request, else what stands before the first slash of its user agent. */
function managerOf({ request }: Call): string {
  const asked = request.query.get("fieldManager");
  if (asked) return asked;
  let name = "";
  for (const char of (request.headers["user-agent"] ?? "").split("/")[0]!) {
    if (!/[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(char)) continue;
    if (Buffer.byteLength(name + char) > MAX_MANAGER) break;
    name += char;
  }
  return name || "unknown";
}

function versionsOf({ kind, info, server }: Call): Versions {
  const apiVersion = apiVersionOf(kind);
  return {
    apiVersion,
    type: typeOfKind(kind),
    ignored: ignoredFields(kind, info.subresource),
    convert(object, to) {
      const other = server.scheme.byKind(to, kind.kind);
      if (!other) return undefined;
      const source = object as ApiObject;
      const from = server.scheme.byKind(source.apiVersion, kind.kind) ?? kind;
      const whole = deepClone<ApiObject>(source);
      // what lost all that its manager no longer says still has the fields that its type always has
      if (!from.decode) normalizeObject(whole as never, from.schema);
      const stored = from.toStorage ? from.toStorage(whole) : whole;
      return { object: other.fromStorage ? other.fromStorage(stored) : stored, type: typeOfKind(other) };
    },
  };
}

const STATUS = fieldSet(["f:status"]);
const SPEC = fieldSet(["f:spec"]);
const SPEC_AND_METADATA = fieldSet(["f:spec"], ["f:metadata"]);

/** Fields beside the spec that a status write of a kind leaves alone. */
const STATUS_IGNORES: Readonly<Record<string, FieldSet>> = {
  "/pods": fieldSet(["f:spec"], ["f:metadata", "f:deletionTimestamp"], ["f:metadata", "f:ownerReferences"]),
  "apps/deployments": fieldSet(["f:spec"], ["f:metadata", "f:labels"]),
  "certificates.k8s.io/certificatesigningrequests": fieldSet(["f:spec"], ["f:status", "f:conditions"]),
  "networking.k8s.io/servicecidrs": SPEC_AND_METADATA,
  "resource.k8s.io/resourceclaims": SPEC_AND_METADATA,
  "storage.k8s.io/volumeattachments": SPEC_AND_METADATA,
  "flowcontrol.apiserver.k8s.io/flowschemas": SPEC_AND_METADATA,
  "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": SPEC_AND_METADATA,
  "admissionregistration.k8s.io/validatingadmissionpolicies": SPEC_AND_METADATA,
};

function ignoredFields(kind: KindInfo, subresource: string): FieldSet {
  if (subresource === "approval") return fieldSet(["f:spec"], ["f:status", "f:certificate"]);
  if (subresource === "status") {
    if (kind.decode) return SPEC_AND_METADATA;
    return STATUS_IGNORES[`${kind.group}/${kind.resource}`] ?? SPEC;
  }
  return subresource === "" && kind.subresources.some(({ name }) => name === "status") ? STATUS : EMPTY;
}

/**
 * Server-side apply: the object that a configuration makes of the current one (absent: of nothing), its managedFields set.
 * @throws StatusError 400; 409 with a cause for every field that another manager owns
 */
export function applyConfig(
  call: Call,
  config: ApiObject,
  current: ApiObject | undefined,
  options: { manager: string; force: boolean },
): ApiObject {
  if (config.metadata.managedFields) throw badRequest("metadata.managedFields must be nil");
  const versions = versionsOf(call);
  const { apiVersion, type } = versions;
  const { subresource } = call.info;
  const now = timeOf(call.server.clock.now());
  const base = emptyObject(call.kind);
  const live = current ? withoutEntries(current) : base;
  let owners = decodeOwners(current?.metadata.managedFields);
  if (owners.size === 0 && current) {
    const before = { manager: "before-first-apply", operation: "Update", apiVersion, subresource } as const;
    owners = ownersAfterUpdate(base, live, owners, versions, before, now);
  }
  const who = { manager: options.manager, operation: "Apply", apiVersion, subresource } as const;
  const attempt = (force: boolean) => applyTo(live, config, owners, versions, who, { force, now });
  try {
    let applied = attempt(options.force);
    if (applied.conflicts) {
      const conflicts = unsettled(applied.conflicts, live, options.manager, type, apiVersion);
      if (conflicts.length > 0) throw conflictError(conflicts);
      applied = attempt(true);
    }
    if (applied.conflicts) throw conflictError(applied.conflicts);
    const object = deepClone<ApiObject>(applied.object as ApiObject);
    renewLastApplied(object, config, options.manager);
    setEntries(object, applied.owners);
    return object;
  } catch (error) {
    if (error instanceof Error && "status" in error) throw error;
    throw failedApply(call, config, error);
  }
}

/** What `kubectl apply` has left as its last configuration, kubectl may take over when it turns to server-side apply. */
function unsettled(
  conflicts: readonly Conflict[],
  live: ApiObject,
  manager: string,
  type: Versions["type"],
  apiVersion: string,
): readonly Conflict[] {
  const text = manager === "kubectl" ? live.metadata.annotations?.[LAST_APPLIED] : undefined;
  if (!text) return conflicts;
  try {
    const last = JSON.parse(text) as ApiObject;
    if (last.apiVersion !== apiVersion) return conflicts;
    const agreed = agreedPaths(last, live, type);
    return conflicts.filter(({ path }) => !has(agreed, path));
  } catch {
    return conflicts;
  }
}

/** Keeps the annotation of client-side apply in step, where there is one, so that either way of applying can follow. */
function renewLastApplied(object: ApiObject, config: ApiObject, manager: string): void {
  if (manager !== "kubectl" || !object.metadata.annotations?.[LAST_APPLIED]) return;
  const copy = deepClone<ApiObject>(config);
  delete copy.metadata.annotations?.[LAST_APPLIED];
  object.metadata.annotations[LAST_APPLIED] = `${JSON.stringify(copy)}\n`;
}

function conflictError(conflicts: readonly Conflict[]): StatusError {
  const causes = conflicts.map(({ owner, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${ownerText(owner)}`,
    field: pathText(path),
  }));
  return failure(409, "Conflict", conflictMessage(conflicts), { causes });
}

function conflictMessage(conflicts: readonly Conflict[]): string {
  if (conflicts.length === 1) {
    const [{ owner, path }] = conflicts as [Conflict];
    return `Apply failed with 1 conflict: conflict with ${ownerText(owner)}: ${pathText(path)}`;
  }
  const byOwner = Map.groupBy(conflicts, ({ owner }) => ownerText(owner));
  const lines = [...byOwner]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([owner, list]) => [`conflicts with ${owner}:`, ...list.map(({ path }) => `- ${pathText(path)}`)]);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join("\n")}`;
}

function ownerText({ manager, subresource, operation, apiVersion }: OwnerId): string {
  const name = JSON.stringify(manager) + (subresource ? ` with subresource ${JSON.stringify(subresource)}` : "");
  return operation === "Update" ? `${name} using ${apiVersion}` : name;
}

/** A configuration that its kind's schema does not fit; the original tells it as an error of its own, without a reason. */
export function failedApply(
  { kind, info }: Call,
  { metadata }: Pick<ApiObject, "metadata">,
  error: unknown,
): StatusError {
  const message = error instanceof Error ? error.message : String(error);
  const at = `${kind.namespaced ? info.namespace : ""}/${metadata.name}; ${kind.group}/${kind.version}, Kind=${kind.kind}`;
  return failure(500, undefined, `failed to create typed patch object (${at}): ${message}`);
}

/** True when nothing differs but the times of managedFields: such a write is none. */
export function differsInTimesOnly(object: ApiObject, old: ApiObject): boolean {
  const [fresh = [], known = []] = [object.metadata.managedFields, old.metadata.managedFields];
  if (fresh.length !== known.length) return false;
  for (const [i, entry] of fresh.entries()) {
    if (!deepEqual({ ...(entry as object), time: "" }, { ...(known[i] as object), time: "" })) return false;
  }
  return deepEqual({ ...object, metadata: { ...object.metadata, managedFields: known } }, old);
}
