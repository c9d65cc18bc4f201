import { deepClone } from "#base";
import { alreadyExists, type ApiObject, badRequest, failure, invalid, type KindInfo } from "#kinds";
import { isStoreError, type StoredObject } from "#store";
import { admissionOf, mutate, validate } from "../pipeline/admit.ts";
import { type Call, isDryRun, nameOf } from "../pipeline/call.ts";
import { keyOf } from "../registry/keys.ts";
import { isVolatile, throwStoreError } from "../registry/store-errors.ts";
import { toStored } from "../registry/view.ts";
import { trackUpdate } from "../managed-fields/field-manager.ts";

/** Tries with a new generated name before the client is told. */
const GENERATE_TRIES = 8;
/** A generated name has at most 63 characters, 5 of them random. */
const MAX_GENERATED = 58;

/** Creates an object: admission, defaults, validation, write. `object` is taken over. @throws StatusError */
export async function createObject(
  call: Call,
  object: ApiObject,
  options: { ownFields?: boolean } = {},
): Promise<StoredObject> {
  const { kind, info, server } = call;
  const { metadata } = object;
  matchNamespace(call, object);
  if (!metadata.name && !metadata.generateName) throw invalid(kind, "", [nameRequired]);
  const dryRun = isDryRun(call);
  if (metadata.resourceVersion && !dryRun)
    throw badRequest("resourceVersion should not be set on objects to be created");
  kind.strategy.setDefaults(object);
  // fields that admission and the server itself set belong to nobody
  if (!options.ownFields) trackUpdate(call, object, undefined);
  const attributes = admissionOf(call, { operation: "CREATE", object, old: undefined, dryRun });
  await mutate(call, attributes);
  const admitted = attributes.object ?? object;
  for (let tries = 1; ; tries++) {
    const candidate =
      tries === GENERATE_TRIES || !metadata.generateName || metadata.name ? admitted : deepClone<ApiObject>(admitted);
    const generated = fillName(call, candidate);
    try {
      return await finish(call, kind, candidate, { dryRun, attributes });
    } catch (error) {
      if (!isStoreError(error, "exists")) throwStoreError(error, kind, candidate.metadata.name);
      if (!generated) throw alreadyExists(kind, candidate.metadata.name);
      if (tries === GENERATE_TRIES) {
        throw failure(
          409,
          "AlreadyExists",
          `${kind.resource} "${nameOf(candidate)}" already exists, the server was not able to generate a unique name for the object`,
          {
            name: candidate.metadata.name,
            ...(kind.group ? { group: kind.group } : {}),
            kind: kind.resource,
            retryAfterSeconds: 1,
          },
        );
      }
    }
  }

  async function finish(
    call: Call,
    kind: KindInfo,
    candidate: ApiObject,
    { dryRun, attributes }: { dryRun: boolean; attributes: ReturnType<typeof admissionOf> },
  ): Promise<StoredObject> {
    fillMetadata(call, candidate);
    kind.strategy.setDefaults(candidate);
    kind.strategy.prepareForCreate(candidate);
    const hook = server.hooks.get(`${kind.group}/${kind.resource}`);
    const undo = await hook?.beforeCreate?.(candidate, { dryRun });
    try {
      const errors = kind.strategy.validate(candidate);
      if (errors.length > 0) throw invalid(kind, nameOf(candidate), errors);
      for (const text of kind.strategy.warnings(candidate)) call.warnings.add(text);
      // a generated name is there by now
      await validate(call, { ...attributes, object: candidate, name: candidate.metadata.name });
      const key = keyOf(kind, info.namespace, candidate.metadata.name);
      if (dryRun) {
        undo?.();
        if (server.store.latest(key)) throw alreadyExists(kind, candidate.metadata.name);
        return dryRunResult(key, toStored(kind, candidate));
      }
      return await server.store.create(key, toStored(kind, candidate), { volatile: isVolatile(kind, candidate) });
    } catch (error) {
      if (!dryRun) undo?.();
      throw error;
    }
  }
}

const nameRequired = {
  field: "metadata.name",
  reason: "FieldValueRequired",
  message: "Required value: name or generateName is required",
} as const;

/** What a dry run shows as if it had been written. */
export function dryRunResult(key: string, object: ApiObject, revision = 0): StoredObject {
  return { key, revision, created: revision, object, json: () => Buffer.from(JSON.stringify(object)) };
}

function matchNamespace({ kind, info }: Call, { metadata }: ApiObject): void {
  if (!kind.namespaced) {
    if (metadata.namespace) throw badRequest("namespace is not allowed on this type");
    return;
  }
  if (metadata.namespace && metadata.namespace !== info.namespace) {
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
  }
  if (!info.namespace) throw badRequest("an empty namespace may not be set during creation");
  metadata.namespace = info.namespace;
}

/** Gives a name from generateName; true when it did. */
function fillName({ server }: Call, { metadata }: ApiObject): boolean {
  if (metadata.name || !metadata.generateName) return false;
  metadata.name = metadata.generateName.slice(0, MAX_GENERATED) + server.random.suffix(5);
  return true;
}

/** What the server sets on every new object, whatever the client said. */
function fillMetadata({ server }: Call, { metadata }: ApiObject): void {
  metadata.uid = server.random.uuid();
  metadata.creationTimestamp = timeOf(server.clock.now());
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.selfLink;
}

/** `2026-01-02T03:04:05Z` */
export function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
