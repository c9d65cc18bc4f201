import { type DeepReadonly, deepEqual } from "#base";
import {
  type DaemonSet,
  type DaemonSetStatus,
  isEmptySelector,
  isPodAvailable,
  isPodReady,
  matchesSelector,
  type Pod,
  podCondition,
  resources,
} from "#kinds";
import { createBackoff } from "#base";
import { type Controller, type ControllerDeps, createController, type ReconcileResult } from "../runtime/controller.ts";
import { createExpectations } from "../runtime/expectations.ts";
import { REVISION_HASH, RevisionCollision, syncRevisions, trimRevisions } from "../runtime/history.ts";
import { fromCache, isNamespaceTerminating, keyOf, timeOf, writeStatus } from "../runtime/objects.ts";
import { claim, controllerKey, indexByController } from "../runtime/ownership.ts";
import { createPodControl, podFromTemplate, slowStart } from "../runtime/pod-control.ts";
import {
  byStanding,
  daemonTolerations,
  type DaemonPlan,
  type DaemonView,
  type DS,
  isUpdated,
  type N,
  nodeOf,
  nodeSuits,
  type P,
  planNodes,
  planUpdate,
} from "./plan.ts";

const GENERATION = "deprecated.daemonset.template.generation";
/** Pods created in one step at most. */
const BURST = 250;

/** One pod on each node. https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/ */
export function createDaemonSetController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const sets = deps.informers.for(resources.daemonSets);
  const pods = deps.informers.for(resources.pods);
  const nodes = deps.informers.for(resources.nodes);
  const revisions = deps.informers.for(resources.controllerRevisions);
  const recorder = deps.recorder("daemonset-controller");
  const control = createPodControl({ client, recorder });
  const expectations = createExpectations(clock);
  const failures = createBackoff(clock, { initial: 1000, max: 15 * 60_000 });
  const replacedAt = new Map<string, number>();
  indexByController(pods);
  indexByController(revisions);

  async function apply(key: string, ds: DS, hash: string, { create, remove }: DaemonPlan): Promise<void> {
    const list = create.slice(0, BURST);
    if (list.length) expectations.expectCreations(key, list.length);
    if (remove.length) expectations.expectDeletions(key, remove.map(uidOf));
    let tried = 0;
    const { error } = await slowStart(list.length, async (i) => {
      tried++;
      try {
        await control.create(podFor(ds, list[i]!, hash), ds);
      } catch (failure) {
        expectations.creationObserved(key);
        if (!isNamespaceTerminating(failure)) throw failure;
      }
    });
    for (let i = tried; i < list.length; i++) expectations.creationObserved(key);
    const results = await Promise.allSettled(
      remove.map((pod) =>
        control.delete(pod, ds).catch((failure: unknown) => {
          expectations.deletionObserved(key, uidOf(pod));
          throw failure;
        }),
      ),
    );
    const failed = error ?? results.find((result) => result.status === "rejected")?.reason;
    if (failed !== undefined) throw failed;
  }

  /** Failed pods are replaced with back-off, by node. */
  function mayReplaceFailed(ds: DS, node: string, pod: P): boolean {
    const key = `${ds.metadata.uid}/${node}`;
    const wait = failures.current(key) - (clock.monotonic() - (replacedAt.get(key) ?? 0));
    if (replacedAt.has(key) && wait > 0) return false;
    failures.next(key);
    replacedAt.set(key, clock.monotonic());
    const message = `Found failed daemon pod ${keyOf(pod)} on node ${node}, will try to kill it`;
    recorder.event(ds, "Warning", "FailedDaemonPod", message);
    return true;
  }
  function announceSucceeded(ds: DS, { remove }: DaemonPlan): void {
    for (const pod of remove) {
      if (pod.status?.phase !== "Succeeded") continue;
      const message = `Found succeeded daemon pod ${keyOf(pod)} on node ${pod.spec.nodeName}, will try to delete it`;
      recorder.event(ds, "Normal", "SucceededDaemonPod", message);
    }
  }

  async function viewOf(ds: DS, hash: string): Promise<DaemonView> {
    const claimed = await claim(client, {
      informer: pods,
      resource: resources.pods,
      owner: ds,
      ownerResource: resources.daemonSets,
      matches: (pod: DeepReadonly<Pod>) => matchesSelector(ds.spec.selector, pod.metadata.labels),
    });
    const byNode = new Map<string, P[]>();
    for (const pod of claimed) {
      const node = nodeOf(pod);
      if (node) byNode.set(node, [...(byNode.get(node) ?? []), pod]);
    }
    return {
      ds,
      nodes: nodes.list(),
      pods: byNode,
      hash,
      now: clock.now(),
      mayReplaceFailed: (node, pod) => mayReplaceFailed(ds, node, pod),
    };
  }

  return createController(deps, {
    name: "daemonset",
    watch({ on, needs, enqueue }) {
      const ownerOf = (pod: P) => controllerKey(pod, resources.daemonSets as never);
      needs(revisions);
      on(sets, {
        add: (ds) => enqueue(keyOf(ds)),
        update: (ds) => enqueue(keyOf(ds)),
        delete(ds) {
          expectations.forget(keyOf(ds));
          enqueue(keyOf(ds));
        },
      });
      const changed = (pod: P) => {
        const key = ownerOf(pod);
        if (key) {
          if (pod.metadata.deletionTimestamp) expectations.deletionObserved(key, uidOf(pod));
          enqueue(key);
        } else if (!pod.metadata.ownerReferences?.some(({ controller }) => controller)) {
          for (const ds of sets.list(pod.metadata.namespace)) {
            if (matchesSelector(ds.spec.selector, pod.metadata.labels)) enqueue(keyOf(ds));
          }
        }
      };
      on(pods, {
        add(pod) {
          const key = ownerOf(pod);
          if (key && !pod.metadata.deletionTimestamp) expectations.creationObserved(key);
          changed(pod);
        },
        update: (pod) => changed(pod),
        delete(pod) {
          const key = ownerOf(pod);
          if (!key) return;
          expectations.deletionObserved(key, uidOf(pod));
          enqueue(key);
        },
      });
      const nodeChanged = (node: N, previous?: N) => {
        for (const ds of sets.list()) {
          const before = previous ? nodeSuits(ds, previous) : { run: false, stay: false };
          const after = nodeSuits(ds, node);
          if (before.run !== after.run || before.stay !== after.stay) enqueue(keyOf(ds));
        }
      };
      on(nodes, {
        add: (node) => nodeChanged(node),
        update(node, previous) {
          const view = ({ metadata, spec }: N) => JSON.stringify([metadata.labels, spec.taints, spec.unschedulable]);
          if (view(node) !== view(previous)) nodeChanged(node, previous);
        },
        delete: () => {
          for (const ds of sets.list()) enqueue(keyOf(ds));
        },
      });
    },
    async reconcile(key): Promise<ReconcileResult> {
      const ds = fromCache(sets, key);
      if (!ds) return expectations.forget(key);
      if (isEmptySelector(ds.spec.selector)) {
        recorder.event(
          ds,
          "Warning",
          "SelectingAll",
          "This daemon set is selecting all pods. A non-empty selector is required.",
        );
        return;
      }
      if (ds.metadata.deletionTimestamp) return;
      const { current, others } = await revisionsOf(ds);
      const hash = current.metadata.labels?.[REVISION_HASH] ?? "";
      if (expectations.satisfied(key)) {
        const plan = planNodes(await viewOf(ds, hash));
        announceSucceeded(ds, plan);
        await apply(key, ds, hash, plan);
        const rolls = (ds.spec.updateStrategy?.type ?? "RollingUpdate") === "RollingUpdate";
        if (rolls && expectations.satisfied(key)) await apply(key, ds, hash, planUpdate(await viewOf(ds, hash)));
      }
      const view = await viewOf(ds, hash);
      const live = new Set([...view.pods.values()].flat().map((pod) => pod.metadata.labels?.[REVISION_HASH]));
      await trimRevisions(
        client,
        others,
        (one) => live.has(one.metadata.labels?.[REVISION_HASH]),
        ds.spec.revisionHistoryLimit ?? 10,
      );
      const status = statusOf(view);
      if (!deepEqual(status, ds.status)) await writeStatus(client, resources.daemonSets, ds, status);
      const waits = [availabilityWait(view), failedWait(view)].filter((wait) => wait !== undefined);
      return { requeueAfterMs: waits.length ? Math.min(...waits) : undefined };
    },
  });

  function failedWait({ ds, pods: byNode }: DaemonView): number | undefined {
    const waits = [...byNode].flatMap(([node, list]) => {
      if (!list.some(({ status, metadata }) => status?.phase === "Failed" && !metadata.deletionTimestamp)) return [];
      const key = `${ds.metadata.uid}/${node}`;
      return [Math.max(1, failures.current(key) - (clock.monotonic() - (replacedAt.get(key) ?? 0)))];
    });
    return waits.length ? Math.min(...waits) : undefined;
  }
  async function revisionsOf(ds: DS): ReturnType<typeof syncRevisions> {
    try {
      return await syncRevisions(client, revisions, ds, resources.daemonSets as never, {
        collisionCount: ds.status?.collisionCount,
        labels: { ...ds.spec.template.metadata?.labels },
        ...(ds.metadata.annotations ? { annotations: { ...ds.metadata.annotations } } : {}),
      });
    } catch (error) {
      if (!(error instanceof RevisionCollision)) throw error;
      const collisionCount = (ds.status?.collisionCount ?? 0) + 1;
      await writeStatus(client, resources.daemonSets, ds, { ...(ds.status as DaemonSetStatus), collisionCount });
      throw error;
    }
  }
}

const uidOf = (pod: P): string => pod.metadata.uid ?? "";

function podFor(ds: DS, node: string, hash: string): Pod {
  const pod = podFromTemplate(ds.spec.template, ds, resources.daemonSets);
  const generation = ds.metadata.annotations?.[GENERATION];
  const nodeAffinity = {
    ...pod.spec.affinity?.nodeAffinity,
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: [node] }] }],
    },
  };
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: {
        ...pod.metadata.labels,
        ...(generation ? { "pod-template-generation": generation } : {}),
        [REVISION_HASH]: hash,
      },
    },
    spec: { ...pod.spec, affinity: { ...pod.spec.affinity, nodeAffinity }, tolerations: daemonTolerations(pod.spec) },
  };
}

function statusOf({ ds, nodes, pods, hash, now }: DaemonView): DaemonSetStatus {
  const minReady = ds.spec.minReadySeconds ?? 0;
  const count = { desired: 0, current: 0, misplaced: 0, ready: 0, updated: 0, available: 0 };
  for (const node of nodes) {
    const [pod] = [...(pods.get(node.metadata.name) ?? [])].sort(byStanding);
    if (!nodeSuits(ds, node).run) {
      if (pod) count.misplaced++;
      continue;
    }
    count.desired++;
    if (!pod) continue;
    count.current++;
    if (isPodReady(pod)) count.ready++;
    if (isPodAvailable(pod, minReady, now)) count.available++;
    if (isUpdated(pod, hash)) count.updated++;
  }
  const optional = {
    observedGeneration: ds.metadata.generation ?? 0,
    updatedNumberScheduled: count.updated,
    numberAvailable: count.available,
    numberUnavailable: count.desired - count.available,
  };
  const { collisionCount } = (ds as DaemonSet).status ?? {};
  return {
    currentNumberScheduled: count.current,
    numberMisscheduled: count.misplaced,
    desiredNumberScheduled: count.desired,
    numberReady: count.ready,
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== 0)),
    ...(collisionCount === undefined ? {} : { collisionCount }),
  };
}

/** Milliseconds until a ready pod becomes available. */
function availabilityWait({ ds, pods, now }: DaemonView): number | undefined {
  const minReady = ds.spec.minReadySeconds ?? 0;
  if (minReady === 0) return undefined;
  const waits = [...pods.values()].flat().flatMap((pod) => {
    if (!isPodReady(pod) || isPodAvailable(pod, minReady, now)) return [];
    return [Math.max(1, timeOf(podCondition(pod, "Ready")?.lastTransitionTime) + minReady * 1000 - now)];
  });
  return waits.length ? Math.min(...waits) : undefined;
}
