import type { DeepReadonly } from "#base";
import { isPodTerminal, isStatus, type Pod, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { byCreation, formatTime, fromCache, ignoreNotFound, keyOf } from "../runtime/objects.ts";

type P = DeepReadonly<Pod>;

/** A pod on a node that is gone is kept this long, should the node come back, milliseconds. */
const QUARANTINE = 40_000;
const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";
const TERMINATED = "*terminated";

/**
 * Removes pods that nobody else would: on nodes that are gone or out of service, deleted before they had a node, and the
 * oldest terminated ones beyond a number. https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-garbage-collection
 */
export function createPodGC(deps: ControllerDeps, options: { terminatedPodThreshold?: number } = {}): Controller {
  const { client, clock } = deps;
  const pods = deps.informers.for(resources.pods);
  const nodes = deps.informers.for(resources.nodes);
  const threshold = options.terminatedPodThreshold ?? 12_500;
  const terminated = new Set<string>();
  pods.addIndex("node", ({ spec }) => (spec.nodeName ? [spec.nodeName] : []));

  /** Marks a pod as disrupted and, unless it is over, failed; then deletes it at once. */
  async function fail(pod: P, reason: string, message: string): Promise<void> {
    if (!isPodTerminal(pod)) {
      const condition = {
        type: "DisruptionTarget",
        status: "True",
        reason,
        message,
        lastTransitionTime: formatTime(clock.now()),
        ...(pod.metadata.generation ? { observedGeneration: pod.metadata.generation } : {}),
      };
      const body = { metadata: { uid: pod.metadata.uid }, status: { phase: "Failed", conditions: [condition] } };
      const at = { namespace: pod.metadata.namespace, subresource: "status" };
      await ignoreNotFound(client.patch(resources.pods, pod.metadata.name, { type: "strategic", body }, at));
    }
    await remove(pod);
  }
  async function remove(pod: P): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    const options = { namespace, gracePeriodSeconds: 0, ...(uid ? { preconditions: { uid } } : {}) };
    try {
      await client.delete(resources.pods, name, options);
    } catch (error) {
      if (!isStatus(error, "NotFound", "Conflict")) throw error;
    }
  }

  async function checkPod(pod: P): Promise<void> {
    const { deletionTimestamp } = pod.metadata;
    if (!pod.spec.nodeName) {
      if (deletionTimestamp) await remove(pod);
      return;
    }
    const node = nodes.get(undefined, pod.spec.nodeName);
    if (!node) {
      const there = await ignoreNotFound(client.get(resources.nodes, pod.spec.nodeName));
      if (!there) await fail(pod, "DeletionByPodGC", "PodGC: node no longer exists");
      return;
    }
    const notReady = node.status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True";
    if (deletionTimestamp && notReady && node.spec.taints?.some(({ key }) => key === OUT_OF_SERVICE)) {
      await fail(pod, "DeletionByPodGC", "PodGC: node out of service");
    }
  }
  async function checkTerminated(): Promise<void> {
    const excess = terminated.size - threshold;
    if (threshold <= 0 || excess <= 0) return;
    const candidates = [...terminated].flatMap((key) => fromCache(pods, key) ?? []);
    candidates.sort(
      (a, b) => Number(b.status?.reason === "Evicted") - Number(a.status?.reason === "Evicted") || byCreation(a, b),
    );
    for (const pod of candidates.slice(0, excess)) await remove(pod);
  }

  return createController(deps, {
    name: "pod-garbage-collector",
    watch({ on, enqueue, enqueueAfter }) {
      const look = (pod: P) => {
        const key = keyOf(pod);
        if (isPodTerminal(pod) && !pod.metadata.deletionTimestamp) terminated.add(key);
        else terminated.delete(key);
        if (terminated.size > threshold) enqueue(TERMINATED);
        if (!pod.spec.nodeName) {
          if (pod.metadata.deletionTimestamp) enqueue(key);
        } else if (!nodes.get(undefined, pod.spec.nodeName)) enqueueAfter(key, QUARANTINE);
        else if (pod.metadata.deletionTimestamp) enqueue(key);
      };
      on(pods, { add: look, update: look, delete: (pod) => void terminated.delete(keyOf(pod)) });
      on(nodes, {
        update(node, previous) {
          if (node.spec.taints === previous.spec.taints || !node.spec.taints?.some(({ key }) => key === OUT_OF_SERVICE))
            return;
          for (const pod of pods.byIndex("node", node.metadata.name)) enqueue(keyOf(pod));
        },
        delete(node) {
          for (const pod of pods.byIndex("node", node.metadata.name)) enqueueAfter(keyOf(pod), QUARANTINE);
        },
      });
    },
    async reconcile(key) {
      if (key === TERMINATED) return checkTerminated();
      const pod = fromCache(pods, key);
      if (pod) await checkPod(pod);
    },
  });
}
