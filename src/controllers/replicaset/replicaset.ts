import { type DeepReadonly, deepEqual, messageOf } from "#base";
import {
  isPodActive,
  isPodAvailable,
  isPodReady,
  isPodTerminal,
  type LabelSelector,
  matchesLabels,
  matchesSelector,
  type ObjectMeta,
  type Pod,
  podCondition,
  type PodTemplateSpec,
  type ReplicaSetStatus,
  type Resource,
  resources,
} from "#kinds";
import { conditionOf, withCondition, withoutCondition } from "../runtime/conditions.ts";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { createExpectations } from "../runtime/expectations.ts";
import { fromCache, isNamespaceTerminating, keyOf, timeOf, timestamp, writeStatus } from "../runtime/objects.ts";
import { claim, controlledBy, controllerKey, indexByController } from "../runtime/ownership.ts";
import { createPodControl, podFromTemplate, slowStart } from "../runtime/pod-control.ts";
import { rankForDeletion } from "../runtime/pod-ranking.ts";

/** Pods created or deleted in one step at most. */
const BURST = 500;

/** What ReplicaSets and ReplicationControllers have in common. */
interface Replicator {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: { replicas?: number; minReadySeconds?: number; template?: PodTemplateSpec };
  status?: ReplicaSetStatus;
}
type R = DeepReadonly<Replicator>;
type P = DeepReadonly<Pod>;

interface Flavour {
  name: string;
  component: string;
  resource: Resource<Replicator>;
  selectorOf(owner: R): DeepReadonly<LabelSelector> | undefined;
}

/** Keeps as many pods as each ReplicaSet asks for. https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/ */
export const createReplicaSetController = (deps: ControllerDeps): Controller =>
  createReplicator(deps, {
    name: "replicaset",
    component: "replicaset-controller",
    resource: resources.replicaSets as unknown as Resource<Replicator>,
    selectorOf: (owner) => (owner.spec as { selector?: LabelSelector }).selector,
  });

/** https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller/ */
export const createReplicationController = (deps: ControllerDeps): Controller =>
  createReplicator(deps, {
    name: "replicationcontroller",
    component: "replication-controller",
    resource: resources.replicationControllers as unknown as Resource<Replicator>,
    selectorOf(owner) {
      const given = (owner.spec as { selector?: Record<string, string> }).selector;
      return { matchLabels: given ?? owner.spec.template?.metadata?.labels ?? {} };
    },
  });

function createReplicator(deps: ControllerDeps, flavour: Flavour): Controller {
  const { client, clock } = deps;
  const owners = deps.informers.for(flavour.resource);
  const pods = deps.informers.for(resources.pods);
  const recorder = deps.recorder(flavour.component);
  const control = createPodControl({ client, recorder });
  const expectations = createExpectations(clock);
  indexByController(pods);
  owners.addIndex(
    "parent",
    ({ metadata }) => metadata.ownerReferences?.flatMap((ref) => (ref.controller ? [ref.uid] : [])) ?? [],
  );

  async function manage(key: string, owner: R, active: readonly P[]): Promise<unknown> {
    const diff = active.length - (owner.spec.replicas ?? 1);
    if (diff < 0) return createPods(key, owner, Math.min(-diff, BURST));
    if (diff > 0) return deletePods(key, owner, active, Math.min(diff, BURST));
    return undefined;
  }
  async function createPods(key: string, owner: R, count: number): Promise<unknown> {
    expectations.expectCreations(key, count);
    let left = count;
    const { error } = await slowStart(count, async () => {
      left--;
      try {
        await control.create(podFromTemplate(owner.spec.template!, owner, flavour.resource), owner);
      } catch (failure) {
        expectations.creationObserved(key);
        if (!isNamespaceTerminating(failure)) throw failure;
      }
    });
    for (; left > 0; left--) expectations.creationObserved(key);
    return error;
  }
  async function deletePods(key: string, owner: R, active: readonly P[], count: number): Promise<unknown> {
    const ready = new Map<string, number>();
    for (const pod of relatedPods(owner)) {
      const node = pod.spec.nodeName;
      if (node && isPodActive(pod) && isPodReady(pod)) ready.set(node, (ready.get(node) ?? 0) + 1);
    }
    const ranked = rankForDeletion(active, (pod) => ready.get(pod.spec.nodeName ?? "") ?? 0, clock.now());
    const victims = ranked.slice(0, count);
    expectations.expectDeletions(key, victims.map(uidOf));
    const results = await Promise.allSettled(
      victims.map(async (pod) => {
        try {
          await control.delete(pod, owner);
        } catch (error) {
          expectations.deletionObserved(key, uidOf(pod));
          throw error;
        }
      }),
    );
    return results.find((result) => result.status === "rejected")?.reason;
  }
  /** Pods of all replicators with the same parent (a Deployment's), for judging how crowded nodes are. */
  function relatedPods(owner: R): P[] {
    const parent = owner.metadata.ownerReferences?.find((ref) => ref.controller)?.uid;
    const family = parent ? owners.byIndex("parent", parent) : [owner];
    return family.flatMap(({ metadata }) => [...controlledBy(pods, metadata.uid)]);
  }

  return createController(deps, {
    name: flavour.name,
    watch({ on, enqueue, enqueueAfter }) {
      const ownerOf = (pod: P) => controllerKey(pod, flavour.resource as Resource<never>);
      const candidates = (pod: P) => {
        for (const owner of owners.list(pod.metadata.namespace)) {
          if (matchesSelector(flavour.selectorOf(owner), pod.metadata.labels)) enqueue(keyOf(owner));
        }
      };
      const gone = (pod: P) => {
        const key = ownerOf(pod);
        if (!key) return;
        expectations.deletionObserved(key, uidOf(pod));
        enqueue(key);
      };
      on(owners, {
        add: (owner) => enqueue(keyOf(owner)),
        update(owner, previous) {
          if (owner.metadata.uid !== previous.metadata.uid) expectations.forget(keyOf(previous));
          enqueue(keyOf(owner));
        },
        delete(owner) {
          expectations.forget(keyOf(owner));
          enqueue(keyOf(owner));
        },
      });
      on(pods, {
        add(pod) {
          if (pod.metadata.deletionTimestamp) return gone(pod);
          const key = ownerOf(pod);
          if (!key) return candidates(pod);
          expectations.creationObserved(key);
          enqueue(key);
        },
        update(pod, previous) {
          if (pod.metadata.deletionTimestamp) return gone(pod);
          const before = ownerOf(previous);
          const key = ownerOf(pod);
          if (before && before !== key) enqueue(before);
          if (!key) {
            const changed = before || !deepEqual(pod.metadata.labels, previous.metadata.labels);
            return changed ? candidates(pod) : undefined;
          }
          const owner = fromCache(owners, key);
          enqueueAfter(key, spacingOf(owner?.spec.replicas ?? 0));
          const minReady = owner?.spec.minReadySeconds ?? 0;
          if (minReady > 0 && isPodReady(pod) && !isPodReady(previous)) enqueueAfter(key, minReady * 1000);
        },
        delete: gone,
      });
    },
    async reconcile(key) {
      const owner = fromCache(owners, key);
      if (!owner) return expectations.forget(key);
      const selector = flavour.selectorOf(owner);
      const mayManage = expectations.satisfied(key) && !owner.metadata.deletionTimestamp;
      const claimed = await claim(client, {
        informer: pods,
        resource: resources.pods,
        owner: owner as never,
        ownerResource: flavour.resource as never,
        matches: (pod: P) => matchesSelector(selector, pod.metadata.labels) && !isPodTerminal(pod),
      } as Parameters<typeof claim<Pod, Replicator>>[1]);
      const active = claimed.filter(isPodActive);
      const terminating = claimed.filter((pod) => pod.metadata.deletionTimestamp);
      const error = mayManage ? await manage(key, owner, active) : undefined;
      const now = clock.now();
      const managed = { error: mayManage ? error : undefined, known: mayManage };
      const status = statusOf(
        owner,
        active,
        terminating.length,
        managed,
        now,
        timestamp(clock),
        flavour.name === "replicaset",
      );
      if (owner.metadata.generation !== owner.status?.observedGeneration || !deepEqual(status, owner.status)) {
        status.observedGeneration = owner.metadata.generation ?? 0;
        await writeStatus(client, flavour.resource, owner, status);
      }
      if (error !== undefined) throw error;
      const wait = nextAvailability(owner, active, now);
      return wait === undefined ? undefined : { requeueAfterMs: wait };
    },
  });
}

/**
 * Every change of a pod makes its owner count all of them: a big set looks again only so often, milliseconds, so that what it does
 * grows with its size and not with the square of it.
 */
const spacingOf = (replicas: number): number => (replicas > 50 ? Math.min(500, replicas / 10) : 0);

const uidOf = (pod: P): string => pod.metadata.uid ?? "";

/** The status that the pods call for. `managed.known`: whether creating and deleting was tried this time. */
function statusOf(
  owner: R,
  active: readonly P[],
  terminating: number,
  managed: { error: unknown; known: boolean },
  now: number,
  stamp: string,
  withTerminating: boolean,
): ReplicaSetStatus {
  const labels = owner.spec.template?.metadata?.labels ?? {};
  const minReady = owner.spec.minReadySeconds ?? 0;
  const before = owner.status;
  const diff = active.length - (owner.spec.replicas ?? 1);
  let conditions = [...(before?.conditions ?? [])] as NonNullable<ReplicaSetStatus["conditions"]>;
  const failing = conditionOf(conditions, "ReplicaFailure");
  if (managed.error !== undefined && !failing) {
    const reason = diff < 0 ? "FailedCreate" : "FailedDelete";
    const message = messageOf(managed.error);
    conditions = withCondition(conditions, {
      type: "ReplicaFailure",
      status: "True",
      reason,
      message,
      lastTransitionTime: stamp,
    });
  } else if (managed.known && managed.error === undefined && failing)
    conditions = withoutCondition(conditions, "ReplicaFailure");
  const counts = {
    fullyLabeledReplicas: active.filter((pod) => matchesLabels(labels, pod.metadata.labels)).length,
    readyReplicas: active.filter(isPodReady).length,
    availableReplicas: active.filter((pod) => isPodAvailable(pod, minReady, now)).length,
  };
  return {
    replicas: active.length,
    ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)),
    ...(withTerminating ? { terminatingReplicas: terminating } : {}),
    ...(before?.observedGeneration ? { observedGeneration: before.observedGeneration } : {}),
    ...(conditions.length ? { conditions } : {}),
  };
}

/** Milliseconds until the next ready pod has been so for minReadySeconds. */
function nextAvailability(owner: R, active: readonly P[], now: number): number | undefined {
  const minReady = owner.spec.minReadySeconds ?? 0;
  if (minReady === 0) return undefined;
  const waits = active.flatMap((pod) => {
    if (!isPodReady(pod) || isPodAvailable(pod, minReady, now)) return [];
    return [timeOf(podCondition(pod, "Ready")?.lastTransitionTime) + minReady * 1000 - now];
  });
  return waits.length ? Math.max(1, Math.min(...waits)) : undefined;
}
