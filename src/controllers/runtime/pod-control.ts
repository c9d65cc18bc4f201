import { type DeepReadonly, messageOf } from "#base";
import type { Client, Recorder } from "#client";
import {
  type ApiObject,
  controllerReference,
  isStatus,
  type ObjectMeta,
  type Pod,
  type PodTemplateSpec,
  type Resource,
  resources,
} from "#kinds";
import { isNamespaceTerminating } from "./objects.ts";

type Owner = DeepReadonly<{ metadata: ObjectMeta }>;

export interface PodControl {
  /** Creates a pod that `owner` controls, with the event of it. Rejects when it was not created. */
  create(pod: Pod, owner: Owner): Promise<DeepReadonly<Pod>>;
  /** Deletes a pod, with the event of it; a pod that is gone already is no error. */
  delete(pod: DeepReadonly<Pod>, owner: Owner): Promise<void>;
}

export function createPodControl(deps: { client: Client; recorder: Recorder }): PodControl {
  const { client, recorder } = deps;
  return {
    async create(pod, owner) {
      try {
        const created = await client.create(resources.pods, pod);
        recorder.event(owner as ApiObject, "Normal", "SuccessfulCreate", `Created pod: ${created.metadata.name}`);
        return created;
      } catch (error) {
        if (!isNamespaceTerminating(error)) {
          recorder.event(owner as ApiObject, "Warning", "FailedCreate", `Error creating: ${messageOf(error)}`);
        }
        throw error;
      }
    },
    async delete(pod, owner) {
      const { namespace, name } = pod.metadata;
      try {
        await client.delete(resources.pods, name, { namespace });
      } catch (error) {
        if (isStatus(error, "NotFound")) return;
        recorder.event(owner as ApiObject, "Warning", "FailedDelete", `Error deleting: ${messageOf(error)}`);
        throw error;
      }
      recorder.event(owner as ApiObject, "Normal", "SuccessfulDelete", `Deleted pod: ${name}`);
    },
  };
}

/** A pod of a template, controlled by `owner`, with a generated name (`<owner>-xxxxx`) unless `metadata` has one. */
export function podFromTemplate<O>(
  template: DeepReadonly<PodTemplateSpec>,
  owner: Owner,
  resource: Resource<O>,
  metadata: Partial<ObjectMeta> = {},
): Pod {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  const named = metadata.name ? {} : { generateName: `${owner.metadata.name}-` };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...named,
      ...(owner.metadata.namespace ? { namespace: owner.metadata.namespace } : {}),
      labels: { ...labels },
      ...(annotations ? { annotations: { ...annotations } } : {}),
      ...(finalizers ? { finalizers: [...finalizers] } : {}),
      ...metadata,
      ownerReferences: [controllerReference(owner as never, resource)],
    } as ObjectMeta,
    spec: template.spec as Pod["spec"],
  };
}

/**
 * Calls `step` `count` times in batches of 1, 2, 4, …; a batch with a failure is the last, so that a quota that is used up
 * is met by few requests. Gives the number of successes and the first error.
 */
export async function slowStart(
  count: number,
  step: (index: number) => Promise<void>,
): Promise<{ successes: number; error: unknown }> {
  let successes = 0;
  let next = 0;
  for (let batch = Math.min(count, 1); batch > 0; batch = Math.min(2 * batch, count - next)) {
    const results = await Promise.allSettled(Array.from({ length: batch }, (_, i) => step(next + i)));
    next += batch;
    const failed = results.filter((result) => result.status === "rejected");
    successes += batch - failed.length;
    if (failed[0]) return { successes, error: failed[0].reason };
  }
  return { successes, error: undefined };
}
