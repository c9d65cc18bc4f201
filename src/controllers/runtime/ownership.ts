import type { DeepReadonly } from "#base";
import type { Client, Informer } from "#client";
import {
  type ApiObject,
  apiVersionOf,
  controllerOf,
  controllerReference,
  isStatus,
  type ObjectMeta,
  type Resource,
} from "#kinds";

type Owned = { metadata: ObjectMeta };

const BY_CONTROLLER = "controller";
const ORPHANS = "orphans";

/** Indexes objects by the uid of their controller, and those without one by namespace. */
export function indexByController<T extends Owned>(informer: Informer<T>): void {
  informer.addIndex(BY_CONTROLLER, (object) => {
    const owner = controllerOf(object as never);
    return owner ? [owner.uid] : [];
  });
  informer.addIndex(ORPHANS, (object) =>
    controllerOf(object as never) ? [] : [(object as Owned).metadata.namespace ?? ""],
  );
}

/** What an owner controls. */
export const controlledBy = <T extends Owned>(
  informer: Informer<T>,
  uid: string | undefined,
): readonly DeepReadonly<T>[] => (uid ? informer.byIndex(BY_CONTROLLER, uid) : []);

/** What nobody controls in a namespace. */
export const orphansIn = <T extends Owned>(
  informer: Informer<T>,
  namespace: string | undefined,
): readonly DeepReadonly<T>[] => informer.byIndex(ORPHANS, namespace ?? "");

export interface ClaimOptions<T, O> {
  readonly informer: Informer<T>;
  readonly resource: Resource<T>;
  readonly owner: DeepReadonly<O>;
  readonly ownerResource: Resource<O>;
  matches(object: DeepReadonly<T>): boolean;
  /** Added to the object's metadata with the reference (a Job's finalizer). */
  readonly adoptWith?: { finalizers?: string[] };
}

/**
 * What an owner manages: what it controls and its selector matches; it adopts matching orphans and releases what has
 * stopped to match. https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#how-a-replicaset-works
 */
export async function claim<T extends Owned, O extends Owned>(
  client: Client,
  options: ClaimOptions<T, O>,
): Promise<DeepReadonly<T>[]> {
  const { informer, resource, owner, ownerResource } = options;
  const { namespace, name, uid, deletionTimestamp } = (owner as DeepReadonly<Owned>).metadata;
  const kept: DeepReadonly<T>[] = [];
  for (const object of controlledBy(informer, uid)) {
    if (options.matches(object)) kept.push(object);
    else if (!deletionTimestamp) await release(client, resource, object, uid ?? "");
  }
  if (deletionTimestamp) return kept;
  let mayAdopt: boolean | undefined;
  for (const object of orphansIn(informer, namespace)) {
    const { metadata } = object as DeepReadonly<Owned>;
    if (metadata.deletionTimestamp || !options.matches(object)) continue;
    if (mayAdopt === undefined) {
      const fresh = (await client.get(ownerResource, name, { namespace })) as DeepReadonly<Owned>;
      mayAdopt = fresh.metadata.uid === uid && !fresh.metadata.deletionTimestamp;
    }
    if (!mayAdopt) break;
    const adopted = await adopt(client, options, object);
    if (adopted) kept.push(adopted);
  }
  return kept;
}

async function adopt<T extends Owned, O extends Owned>(
  client: Client,
  { resource, owner, ownerResource, adoptWith }: ClaimOptions<T, O>,
  object: DeepReadonly<T>,
): Promise<DeepReadonly<T> | undefined> {
  const { namespace, name, uid } = (object as DeepReadonly<Owned>).metadata;
  const reference = controllerReference(owner as never, ownerResource);
  const body = { metadata: { uid, ownerReferences: [reference], ...adoptWith } };
  try {
    return await client.patch(resource, name, { type: "strategic", body }, { namespace });
  } catch (error) {
    if (isStatus(error, "NotFound", "Conflict")) return undefined;
    throw error;
  }
}

async function release<T extends Owned>(
  client: Client,
  resource: Resource<T>,
  object: DeepReadonly<T>,
  ownerUid: string,
): Promise<void> {
  const { namespace, name, uid } = (object as DeepReadonly<Owned>).metadata;
  const body = { metadata: { uid, ownerReferences: [{ $patch: "delete", uid: ownerUid }] } };
  try {
    await client.patch(resource, name, { type: "strategic", body }, { namespace });
  } catch (error) {
    if (!isStatus(error, "NotFound", "Conflict", "Invalid")) throw error;
  }
}

/** The key of an object's controller when it is of this kind. */
export function controllerKey(object: DeepReadonly<Owned>, resource: Resource<never>): string | undefined {
  const owner = controllerOf(object as DeepReadonly<ApiObject>);
  if (
    !owner ||
    owner.kind !== resource.kind ||
    owner.apiVersion.split("/")[0] !== apiVersionOf(resource).split("/")[0]
  ) {
    return undefined;
  }
  return `${object.metadata.namespace}/${owner.name}`;
}
