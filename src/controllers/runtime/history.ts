import { type DeepReadonly, deepEqual } from "#base";
import type { Client, Informer } from "#client";
import {
  type ControllerRevision,
  controllerReference,
  isStatus,
  type ObjectMeta,
  type PodTemplateSpec,
  type Resource,
  resources,
} from "#kinds";
import { byCreation, copyOf, ignoreNotFound } from "./objects.ts";
import { controlledBy } from "./ownership.ts";
import { shortHash } from "./template-hash.ts";

export const REVISION_HASH = "controller-revision-hash";

export type Revision = DeepReadonly<ControllerRevision>;

interface Owner {
  metadata: ObjectMeta;
  spec: { template: PodTemplateSpec; revisionHistoryLimit?: number };
}

/** A template as `kubectl rollout undo` applies it: a strategic merge patch that replaces the present one. */
export const templatePatch = (template: DeepReadonly<PodTemplateSpec>): object => ({
  spec: { template: { ...template, $patch: "replace" } },
});

/** The template that a revision holds. */
export function templateOf(revision: Revision): DeepReadonly<PodTemplateSpec> {
  const { spec } = revision.data as { spec: { template: PodTemplateSpec & { $patch?: string } } };
  const { $patch: _, ...template } = spec.template;
  return template;
}

/** Thrown when a revision's name is taken by another template: the owner's collisionCount has to grow. */
export class RevisionCollision extends Error {}

/**
 * The revision of the owner's present template, made or raised above all others where needed, and the others, oldest first.
 * @throws RevisionCollision
 */
export async function syncRevisions<O extends Owner>(
  client: Client,
  informer: Informer<ControllerRevision>,
  owner: DeepReadonly<O>,
  resource: Resource<O>,
  options: { collisionCount: number | undefined; labels: Record<string, string>; annotations?: Record<string, string> },
): Promise<{ current: Revision; others: Revision[] }> {
  const { metadata, spec } = owner as DeepReadonly<Owner>;
  const list = [...controlledBy(informer, metadata.uid)].sort((a, b) => a.revision - b.revision || byCreation(a, b));
  const data = templatePatch(spec.template);
  const equal = list.filter((one) => deepEqual(one.data, data));
  const current = equal.at(-1);
  const others = list.filter((one) => one !== current);
  const revision = Math.max(0, ...others.map((one) => one.revision)) + 1;
  if (current) {
    if (current.revision >= revision) return { current, others };
    const raised = { ...copyOf(resources.controllerRevisions, current), revision };
    return { current: await client.update(resources.controllerRevisions, raised), others };
  }
  const hash = shortHash(spec.template, options.collisionCount);
  const { namespace } = metadata;
  const name = `${metadata.name.slice(0, 252 - hash.length)}-${hash}`;
  const made: ControllerRevision = {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name,
      ...(namespace ? { namespace } : {}),
      labels: { ...options.labels, [REVISION_HASH]: hash },
      ...(options.annotations ? { annotations: options.annotations } : {}),
      ownerReferences: [controllerReference(owner as never, resource)],
    },
    data,
    revision,
  };
  try {
    return { current: await client.create(resources.controllerRevisions, made), others };
  } catch (error) {
    if (!isStatus(error, "AlreadyExists")) throw error;
    const there = await client.get(resources.controllerRevisions, name, { namespace });
    if (deepEqual(there.data, data))
      return { current: there, others: others.filter((one) => one.metadata.name !== name) };
    throw new RevisionCollision(`controllerrevisions "${name}" holds another template`, { cause: error });
  }
}

/** Deletes the oldest revisions that nothing lives by, beyond the limit. */
export async function trimRevisions(
  client: Client,
  revisions: readonly Revision[],
  live: (revision: Revision) => boolean,
  limit: number,
): Promise<void> {
  const unused = revisions.filter((one) => !live(one));
  for (const { metadata } of unused.slice(0, Math.max(0, unused.length - limit))) {
    await ignoreNotFound(
      client.delete(resources.controllerRevisions, metadata.name, { namespace: metadata.namespace }),
    );
  }
}
