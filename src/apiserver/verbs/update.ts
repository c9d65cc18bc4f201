import { deepClone, deepEqual } from "#base";
import { type ApiObject, badRequest, conflict, invalid, modified, notFound } from "#kinds";
import { isStoreError, type StoredObject } from "#store";
import { admissionOf, mutate, validate } from "../pipeline/admit.ts";
import { type Call, isDryRun } from "../pipeline/call.ts";
import { differsInTimesOnly, trackUpdate } from "../managed-fields/field-manager.ts";
import { keyOf } from "../registry/keys.ts";
import { isVolatile, throwStoreError } from "../registry/store-errors.ts";
import { toStored, viewOf } from "../registry/view.ts";
import { createObject, dryRunResult } from "./create.ts";
import { specFinalizers } from "./delete.ts";

export interface UpdateOptions {
  /** Gives the new object from the current one (read-only). May be called again after a conflict. */
  change(current: ApiObject): ApiObject | Promise<ApiObject>;
  /** The revision that the client saw; the write fails when it is another. Absent: try again on top of the newer one. */
  resourceVersion?: string;
  uid?: string;
  /** Tries before a conflict is told. Default 5, as the API server's for patches. */
  tries?: number;
  /** The server's own step (binding a pod): no admission, no preparation, no validation. */
  internal?: boolean;
  /** `metadata.managedFields` are what `change` gave. */
  ownFields?: boolean;
}

/** Read, change, admit, validate, write; from the start again when another write came between. @throws StatusError */
export async function updateObject(call: Call, options: UpdateOptions): Promise<StoredObject> {
  const { kind, info, server } = call;
  const key = keyOf(kind, info.namespace, info.name);
  for (let tries = 1; ; tries++) {
    const stored = server.store.latest(key);
    if (!stored) throw notFound(kind, info.name);
    const old = viewOf(kind, stored).object;
    checkPreconditions(call, old, options);
    try {
      return await attempt(call, stored, old, options);
    } catch (error) {
      if (!isStoreError(error, "conflict")) throwStoreError(error, kind, info.name);
      if (options.resourceVersion) throw modified(kind, info.name);
      if (tries >= (options.tries ?? 5)) throw modified(kind, info.name);
    }
  }
}

function checkPreconditions({ kind, info }: Call, old: ApiObject, { resourceVersion, uid }: UpdateOptions): void {
  if (uid && uid !== old.metadata.uid) {
    throw conflict(
      kind,
      info.name,
      `StorageError: invalid object, Code: 4, Key: ${keyOf(kind, info.namespace, info.name).replace(/^\/core/, "")}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
    );
  }
  if (resourceVersion && resourceVersion !== old.metadata.resourceVersion) throw modified(kind, info.name);
}

async function attempt(
  call: Call,
  stored: StoredObject,
  old: ApiObject,
  options: UpdateOptions,
): Promise<StoredObject> {
  const { kind, info, server } = call;
  const { strategy } = kind;
  const dryRun = isDryRun(call);
  const object = await options.change(old);
  if (options.internal) return write(call, stored, old, object, dryRun);
  const attributes = admissionOf(call, { operation: "UPDATE", object, old, dryRun });
  // read before the defaults: they drop an empty list, and that one says something here
  const requested = object.metadata.managedFields;
  strategy.setDefaults(object);
  if (!options.ownFields) trackUpdate(call, object, old, requested);
  await mutate(call, attributes);
  const candidate = attributes.object ?? object;
  if (candidate !== object) strategy.setDefaults(candidate);
  if (kind.namespaced) candidate.metadata.namespace = info.namespace;
  strategy.prepareForUpdate(candidate, old, info.subresource);
  const hook = server.hooks.get(`${kind.group}/${kind.resource}`);
  const undo = await hook?.beforeUpdate?.(candidate, old, { dryRun, subresource: info.subresource });
  // an unconditional write is one on the version that is there
  candidate.metadata.resourceVersion ||= old.metadata.resourceVersion!;
  try {
    const errors = strategy.validateUpdate(candidate, old, info.subresource);
    if (errors.length > 0) throw invalid(kind, info.name, errors);
    for (const text of strategy.warnings(candidate, old)) call.warnings.add(text);
    await validate(call, attributes);
    if (dryRun) undo?.();
    return await write(call, stored, old, candidate, dryRun);
  } catch (error) {
    if (!dryRun) undo?.();
    throw error;
  }
}

async function write(
  call: Call,
  stored: StoredObject,
  old: ApiObject,
  candidate: ApiObject,
  dryRun: boolean,
): Promise<StoredObject> {
  const { kind, server } = call;
  candidate.metadata.resourceVersion = old.metadata.resourceVersion!;
  if (dryRun) return dryRunResult(stored.key, toStored(kind, candidate), stored.revision);
  if (isReleased(candidate) && specFinalizers(kind, candidate).length === 0) {
    const gone = await server.store.delete(stored.key, stored.revision, toStored(kind, candidate));
    server.hooks.get(`${kind.group}/${kind.resource}`)?.afterDelete?.(candidate);
    return gone;
  }
  // a write that changes nothing is none: same revision, no event
  if (deepEqual(candidate, old) || differsInTimesOnly(candidate, old)) return stored;
  return server.store.update(stored.key, toStored(kind, candidate), stored.revision, {
    volatile: isVolatile(kind, candidate),
  });
}

/** Deleted, and the last finalizer is gone: the object goes with this write. */
function isReleased({ metadata }: ApiObject): boolean {
  if (!metadata.deletionTimestamp || (metadata.finalizers?.length ?? 0) > 0) return false;
  return (metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

/** PUT. */
export async function replaceObject(call: Call, object: ApiObject): Promise<StoredObject> {
  const { kind, info, server } = call;
  const { metadata } = object;
  if (!metadata.name)
    throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`);
  if (metadata.name !== info.name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${info.name})`);
  }
  if (metadata.namespace && metadata.namespace !== info.namespace) {
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
  }
  if (kind.strategy.allowCreateOnUpdate && !server.store.latest(keyOf(kind, info.namespace, info.name))) {
    // of what is not there no version was seen
    delete metadata.resourceVersion;
    return createObject(call, object);
  }
  if (!metadata.resourceVersion && !kind.strategy.allowUnconditionalUpdate) {
    throw invalid(kind, info.name, [
      {
        field: "metadata.resourceVersion",
        reason: "FieldValueInvalid",
        message: "Invalid value: 0: must be specified for an update",
      },
    ]);
  }
  return updateObject(call, {
    change: () => deepClone<ApiObject>(object),
    ...(metadata.resourceVersion ? { resourceVersion: metadata.resourceVersion } : {}),
    ...(metadata.uid ? { uid: metadata.uid } : {}),
  });
}
