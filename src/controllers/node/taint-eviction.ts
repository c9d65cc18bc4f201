import type { DeepReadonly } from "#base";
import { isPodTerminal, isStatus, type Node, type Pod, resources, type Taint, tolerates } from "#kinds";
import { type Controller, type ControllerDeps, createController, type ReconcileResult } from "../runtime/controller.ts";
import { fromCache, keyOf, timeOf, timestamp } from "../runtime/objects.ts";

type P = DeepReadonly<Pod>;

/** Deletes pods from nodes whose NoExecute taints they don't tolerate (any longer). */
export function createTaintEvictionController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const pods = deps.informers.for(resources.pods);
  const nodes = deps.informers.for(resources.nodes);
  const recorder = deps.recorder("taint-eviction-controller");
  pods.addIndex("node", ({ spec }) => (spec.nodeName ? [spec.nodeName] : []));
  /** When the taints of a node were first seen to bear on a pod, milliseconds. */
  const since = new Map<string, number>();

  async function evict(pod: P): Promise<void> {
    const { name, namespace, uid, generation } = pod.metadata;
    recorder.event(pod as Pod, "Normal", "TaintManagerEviction", `Marking for deletion Pod ${keyOf(pod)}`);
    const condition = {
      type: "DisruptionTarget",
      status: "True",
      reason: "DeletionByTaintManager",
      message: "Taint manager: deleting due to NoExecute taint",
      lastTransitionTime: timestamp(clock),
      ...(generation ? { observedGeneration: generation } : {}),
    };
    try {
      const body = { metadata: { uid }, status: { conditions: [condition] } };
      await client.patch(resources.pods, name, { type: "strategic", body }, { namespace, subresource: "status" });
      await client.delete(resources.pods, name, { namespace, ...(uid ? { preconditions: { uid } } : {}) });
    } catch (error) {
      if (!isStatus(error, "NotFound", "Conflict")) throw error;
    }
  }

  return createController(deps, {
    name: "taint-eviction",
    watch({ on, enqueue }) {
      const hasTaints = (name: string | undefined) =>
        noExecute(name ? nodes.get(undefined, name) : undefined).length > 0;
      const look = (pod: P) => {
        if (pod.spec.nodeName && (hasTaints(pod.spec.nodeName) || since.has(keyOf(pod)))) enqueue(keyOf(pod));
      };
      on(pods, {
        add: look,
        update(pod, before) {
          if (pod.spec.nodeName !== before.spec.nodeName || pod.metadata.generation !== before.metadata.generation)
            look(pod);
        },
        delete: (pod) => void since.delete(keyOf(pod)),
      });
      const changed = (node: DeepReadonly<Node>, before?: DeepReadonly<Node>) => {
        if (JSON.stringify(noExecute(node)) === JSON.stringify(noExecute(before))) return;
        for (const pod of pods.byIndex("node", node.metadata.name)) enqueue(keyOf(pod));
      };
      on(nodes, { add: (node) => changed(node), update: changed });
    },
    async reconcile(key): Promise<ReconcileResult> {
      const pod = fromCache(pods, key);
      const taints = noExecute(pod?.spec.nodeName ? nodes.get(undefined, pod.spec.nodeName) : undefined);
      if (!pod || pod.metadata.deletionTimestamp || isPodTerminal(pod)) return void since.delete(key);
      const patience = patienceOf(pod, taints);
      if (taints.length === 0 || patience === Number.POSITIVE_INFINITY) {
        if (since.delete(key)) {
          recorder.event(pod as Pod, "Normal", "TaintManagerEviction", `Cancelling deletion of Pod ${key}`);
        }
        return;
      }
      const begin =
        since.get(key) ?? Math.min(clock.now(), ...taints.map(({ timeAdded }) => timeOf(timeAdded) || clock.now()));
      since.set(key, begin);
      const left = begin + patience * 1000 - clock.now();
      if (left > 0) return { requeueAfterMs: left };
      await evict(pod);
    },
  });
}

const noExecute = (node: DeepReadonly<Node> | undefined): DeepReadonly<Taint>[] =>
  (node?.spec.taints ?? []).filter(({ effect }) => effect === "NoExecute");

/** Seconds that a pod may stay: 0 with a taint that it doesn't tolerate, infinity when it tolerates all without limit. */
export function patienceOf(pod: P, taints: readonly DeepReadonly<Taint>[]): number {
  let patience = Number.POSITIVE_INFINITY;
  for (const taint of taints) {
    const matching = (pod.spec.tolerations ?? []).filter((toleration) => tolerates(toleration, taint));
    if (matching.length === 0) return 0;
    for (const { tolerationSeconds } of matching) {
      if (tolerationSeconds !== undefined) patience = Math.min(patience, Math.max(0, tolerationSeconds));
    }
  }
  return patience;
}
