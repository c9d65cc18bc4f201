import { deepClone } from "#base";
import {
  type ApiObject,
  badRequest,
  checkFields,
  conflict,
  invalid,
  type KindInfo,
  modified,
  notFound,
  type Status,
} from "#kinds";
import { isStoreError, type StoredObject } from "#store";
import { admissionOf, mutate, validate } from "../pipeline/admit.ts";
import { type Call, isDryRun } from "../pipeline/call.ts";
import { readBody } from "../pipeline/decode.ts";
import { integerOf } from "../pipeline/query.ts";
import { isTrue } from "../pipeline/request-info.ts";
import { dryRunErrors } from "../pipeline/write-options.ts";
import { keyOf } from "../registry/keys.ts";
import { isVolatile, throwStoreError } from "../registry/store-errors.ts";
import { toStored, viewOf } from "../registry/view.ts";
import { timeOf } from "./create.ts";

/** meta/v1 DeleteOptions. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly propagationPolicy?: string;
  readonly orphanDependents?: boolean;
  readonly dryRun?: readonly string[];
}

export interface Deletion {
  /** The object as it is now, or as it was last. */
  readonly stored: StoredObject;
  /** False: it is marked, and waits for finalizers or its grace period. */
  readonly gone: boolean;
  readonly dryRun: boolean;
}

/** Options of a delete, from the body or the query. @throws StatusError 400, 422 */
export function deleteOptionsOf(call: Call): DeleteOptions {
  const { query } = call.request;
  const options = optionsIn(readBody(call.request)) ?? fromQuery(query);
  const policies = ["Orphan", "Background", "Foreground"];
  const causes = dryRunErrors(options.dryRun ?? query.getAll("dryRun"));
  if (options.propagationPolicy && !policies.includes(options.propagationPolicy)) {
    causes.push({
      field: "propagationPolicy",
      reason: "FieldValueNotSupported",
      message: `Unsupported value: "${options.propagationPolicy}": supported values: "Foreground", "Background", "Orphan", "nil"`,
    } as const);
  }
  if (options.propagationPolicy && options.orphanDependents !== undefined) {
    causes.push({
      field: "propagationPolicy",
      reason: "FieldValueInvalid",
      message: `Invalid value: "${options.propagationPolicy}": orphanDependents and deletionPropagation cannot be both set`,
    } as const);
  }
  if (causes.length > 0) throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", causes);
  return options;
}

/** @throws StatusError 400 for another kind or fields of other types */
function optionsIn(body: unknown): DeleteOptions | undefined {
  if (body === undefined || body === null) return undefined;
  const { kind = "DeleteOptions", apiVersion = "v1", ...fields } = body as { kind?: string; apiVersion?: string };
  if (kind !== "DeleteOptions")
    throw badRequest(
      `no kind "${kind}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:110"`,
    );
  const [typeError] = checkFields(fields, DELETE_OPTIONS).typeErrors;
  if (typeError) throw badRequest(typeError);
  return fields;
}
const DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

function fromQuery(query: URLSearchParams): DeleteOptions {
  const grace = integerOf(query, "gracePeriodSeconds");
  const policy = query.get("propagationPolicy");
  const orphan = query.get("orphanDependents");
  return {
    ...(grace === undefined ? {} : { gracePeriodSeconds: grace }),
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(orphan === null ? {} : { orphanDependents: isTrue(orphan) }),
  };
}

/**
 * Deletes, or marks for deletion: with finalizers the object stays until the last one is gone, a pod until its containers have
 * stopped. @throws StatusError
 */
export async function deleteObject(call: Call, options: DeleteOptions): Promise<Deletion> {
  const { kind, info, server } = call;
  const key = keyOf(kind, info.namespace, info.name);
  const dryRun = isDryRun(call, options);
  let admitted = false;
  for (let tries = 1; ; tries++) {
    const stored = server.store.latest(key);
    if (!stored) throw notFound(kind, info.name);
    const object = viewOf(kind, stored).object;
    checkPreconditions(kind, object, options);
    if (!admitted) {
      await admitDelete(call, object, options, dryRun);
      admitted = true;
      if (server.store.latest(key) !== stored) continue;
    }
    const step = planDeletion(kind, object, options, server.clock.now());
    if (dryRun || step.type === "keep") return { stored, gone: step.type === "remove", dryRun };
    try {
      if (step.type === "remove") {
        const gone = await server.store.delete(key, stored.revision, toStored(kind, step.object));
        server.hooks.get(`${kind.group}/${kind.resource}`)?.afterDelete?.(step.object);
        return { stored: gone, gone: true, dryRun };
      }
      const marked = await server.store.update(key, toStored(kind, step.object), stored.revision, {
        volatile: isVolatile(kind, step.object),
      });
      return { stored: marked, gone: false, dryRun };
    } catch (error) {
      if (!isStoreError(error, "conflict")) throwStoreError(error, kind, info.name);
      if (options.preconditions?.resourceVersion) throw modified(kind, info.name);
      if (tries > 100) throw modified(kind, info.name);
    }
  }
}

async function admitDelete(call: Call, old: ApiObject, options: DeleteOptions, dryRun: boolean): Promise<void> {
  const attributes = admissionOf(call, {
    operation: "DELETE",
    object: undefined,
    old,
    dryRun,
    options: { ...options },
  });
  await mutate(call, attributes);
  await validate(call, attributes);
}

function checkPreconditions(kind: KindInfo, { metadata }: ApiObject, { preconditions }: DeleteOptions): void {
  const { uid, resourceVersion } = preconditions ?? {};
  if (uid && uid !== metadata.uid) {
    throw conflict(
      kind,
      metadata.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`,
    );
  }
  if (resourceVersion && resourceVersion !== metadata.resourceVersion) {
    throw conflict(
      kind,
      metadata.name,
      `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${metadata.resourceVersion}`,
    );
  }
}

export type DeletionStep =
  | { readonly type: "remove"; readonly object: ApiObject }
  | { readonly type: "mark"; readonly object: ApiObject }
  /** Nothing changes: it is marked already. */
  | { readonly type: "keep" };

/** What a delete does to an object now. Pure. */
export function planDeletion(kind: KindInfo, old: ApiObject, options: DeleteOptions, now: number): DeletionStep {
  const object = deepClone<ApiObject>(old);
  const { metadata } = object;
  if (!metadata.deletionTimestamp) kind.strategy.prepareForDelete?.(object, timeOf(now));
  const finalizers = finalizersFor(kind, metadata.finalizers ?? [], options);
  const changed = finalizers.join() !== (metadata.finalizers ?? []).join();
  if (finalizers.length > 0) metadata.finalizers = finalizers;
  else delete metadata.finalizers;
  const graceful = kind.strategy.gracePeriodSeconds;
  const grace = graceful ? graceful(old, options.gracePeriodSeconds) : 0;
  if (metadata.deletionTimestamp) {
    const shorter = grace < (metadata.deletionGracePeriodSeconds ?? 0);
    if (shorter) shorten(object, grace, now);
    const free = finalizers.length === 0 && specFinalizers(kind, old).length === 0;
    if (free && (metadata.deletionGracePeriodSeconds ?? 0) === 0) return { type: "remove", object };
    return changed || shorter ? { type: "mark", object } : { type: "keep" };
  }
  const held = finalizers.length > 0 || specFinalizers(kind, old).length > 0;
  if (grace === 0 && !held) {
    if (graceful) metadata.deletionGracePeriodSeconds = 0;
    if (graceful) metadata.deletionTimestamp = timeOf(now);
    return { type: "remove", object };
  }
  metadata.deletionTimestamp = timeOf(now + grace * 1000);
  metadata.deletionGracePeriodSeconds = grace;
  if (metadata.generation) metadata.generation++;
  if (isNamespace(kind)) object.status = { ...(object.status as object | undefined), phase: "Terminating" };
  return { type: "mark", object };
}

const isNamespace = ({ group, resource }: KindInfo): boolean => group === "" && resource === "namespaces";

/** Namespaces have finalizers of their own in the spec: they stay until their content is gone. */
export function specFinalizers(kind: KindInfo, object: ApiObject): readonly string[] {
  if (!isNamespace(kind)) return [];
  return (object.spec as { finalizers?: string[] } | undefined)?.finalizers ?? [];
}

/** A later delete may only shorten the time: the deadline counts from the first one. */
function shorten({ metadata }: ApiObject, grace: number, now: number): void {
  const asked = Date.parse(metadata.deletionTimestamp!) - (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  metadata.deletionTimestamp = timeOf(Math.min(asked + grace * 1000, now + grace * 1000));
  metadata.deletionGracePeriodSeconds = grace;
}

/** The propagation policy becomes a finalizer that the garbage collector acts on and removes. */
function finalizersFor(kind: KindInfo, current: readonly string[], options: DeleteOptions): string[] {
  const others = current.filter((name) => name !== "orphan" && name !== "foregroundDeletion");
  if (kind.strategy.garbageCollected === false) return [...current];
  const had = (name: string) => current.includes(name);
  switch (
    options.propagationPolicy ??
    (options.orphanDependents === undefined ? undefined : options.orphanDependents ? "Orphan" : "Background")
  ) {
    case "Orphan":
      return [...others, "orphan"];
    case "Foreground":
      return [...others, "foregroundDeletion"];
    case "Background":
      return others;
    default:
      if (had("orphan")) return [...others, "orphan"];
      if (had("foregroundDeletion")) return [...others, "foregroundDeletion"];
      return kind.strategy.defaultDeletionPropagation === "Orphan" ? [...others, "orphan"] : others;
  }
}

/** The body of a delete's answer: the object while it stays, a Status once it is gone. */
export function deletionStatus(kind: KindInfo, object: ApiObject): Status {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: {
      name: object.metadata.name,
      ...(kind.group ? { group: kind.group } : {}),
      kind: kind.resource,
      ...(object.metadata.uid ? { uid: object.metadata.uid } : {}),
    },
  };
}
