import { type DeepReadonly, deepEqual } from "#base";
import {
  type Condition,
  controllerOf,
  isPodReady,
  isPodTerminal,
  matchesSelector,
  type Pod,
  type PodDisruptionBudget,
  type PodDisruptionBudgetStatus,
  resources,
} from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { formatTime, fromCache, keyOf, scaledValue, timeOf, writeStatus } from "../runtime/objects.ts";
import { withCondition } from "../runtime/conditions.ts";

type PDB = DeepReadonly<PodDisruptionBudget>;
type P = DeepReadonly<Pod>;

/** An eviction that was granted and is not carried out for this long counts no more, milliseconds. */
const DELETION_TIMEOUT = 120_000;

/** How many pods each budget lets go. https://kubernetes.io/docs/tasks/run-application/configure-pdb/ */
export function createDisruptionController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const budgets = deps.informers.for(resources.podDisruptionBudgets);
  const pods = deps.informers.for(resources.pods);
  const recorder = deps.recorder("controllermanager");
  const scalable = {
    ReplicaSet: deps.informers.for(resources.replicaSets),
    Deployment: deps.informers.for(resources.deployments),
    StatefulSet: deps.informers.for(resources.statefulSets),
    ReplicationController: deps.informers.for(resources.replicationControllers),
  };
  pods.addIndex("namespace", ({ metadata }) => [metadata.namespace ?? ""]);

  /** The size that a pod's controller wants: the Deployment's where a ReplicaSet has one. */
  function scaleOf(pod: P): { uid: string; replicas: number } | undefined {
    const owner = controllerOf(pod as never);
    const informer = owner && scalable[owner.kind as keyof typeof scalable];
    const found = informer?.get(pod.metadata.namespace, owner!.name) as
      | { metadata: { uid?: string }; spec: { replicas?: number } }
      | undefined;
    if (!owner || !found || found.metadata.uid !== owner.uid) return undefined;
    const parent = controllerOf(found as never);
    const deployment =
      parent?.kind === "Deployment" ? scalable.Deployment.get(pod.metadata.namespace, parent.name) : undefined;
    if (deployment) return { uid: deployment.metadata.uid ?? "", replicas: deployment.spec.replicas ?? 1 };
    return { uid: owner.uid, replicas: found.spec.replicas ?? 1 };
  }
  function expectedScale(list: readonly P[]): { expected: number; unmanaged: boolean } {
    const sizes = new Map<string, number>();
    let unmanaged = false;
    for (const pod of list) {
      const scale = scaleOf(pod);
      if (scale) sizes.set(scale.uid, scale.replicas);
      else unmanaged = true;
    }
    return { expected: [...sizes.values()].reduce((sum, one) => sum + one, 0), unmanaged };
  }
  function expectation(pdb: PDB, list: readonly P[]): { expected: number; desired: number; unmanaged: boolean } {
    const { maxUnavailable, minAvailable } = pdb.spec ?? {};
    if (maxUnavailable !== undefined) {
      const { expected, unmanaged } = expectedScale(list);
      return { expected, desired: Math.max(0, expected - scaledValue(maxUnavailable, expected, "up")), unmanaged };
    }
    if (minAvailable === undefined) return { expected: 0, desired: 0, unmanaged: false };
    if (!String(minAvailable).endsWith("%"))
      return { expected: list.length, desired: Number(minAvailable), unmanaged: false };
    const { expected, unmanaged } = expectedScale(list);
    return { expected, desired: scaledValue(minAvailable, expected, "up"), unmanaged };
  }

  return createController(deps, {
    name: "disruption",
    watch({ on, needs, enqueue }) {
      for (const informer of Object.values(scalable)) needs(informer as never);
      const budgetsOf = (pod: P) =>
        budgets.list(pod.metadata.namespace).filter(({ spec }) => matchesSelector(spec?.selector, pod.metadata.labels));
      const changed = (pod: P) => {
        for (const pdb of budgetsOf(pod)) enqueue(keyOf(pdb));
      };
      on(budgets, { add: (pdb) => enqueue(keyOf(pdb)), update: (pdb) => enqueue(keyOf(pdb)) });
      on(pods, {
        add: changed,
        update(pod, before) {
          if (!deepEqual(pod.metadata.labels, before.metadata.labels)) changed(before);
          changed(pod);
        },
        delete: changed,
      });
      const resized = ({ metadata }: { metadata: { namespace?: string } }) => {
        for (const pdb of budgets.list(metadata.namespace)) enqueue(keyOf(pdb));
      };
      for (const informer of Object.values(scalable)) {
        on(informer as typeof scalable.Deployment, {
          update: (now, before) => void (now.spec.replicas !== before.spec.replicas && resized(now)),
        });
      }
    },
    async reconcile(key) {
      const pdb = fromCache(budgets, key);
      if (!pdb) return;
      const now = clock.now();
      const list = pods
        .byIndex("namespace", pdb.metadata.namespace ?? "")
        .filter((pod) => matchesSelector(pdb.spec?.selector, pod.metadata.labels) && !isPodTerminal(pod));
      if (list.length === 0) recorder.event(pdb, "Normal", "NoPods", "No matching pods found");
      const { expected, desired } = expectation(pdb, list);
      const disrupted = new Map(Object.entries(pdb.status?.disruptedPods ?? {}));
      const live = list.filter(({ metadata }) => !metadata.deletionTimestamp);
      for (const [name, time] of disrupted) {
        const there = live.some(({ metadata }) => metadata.name === name);
        if (!there || timeOf(time) + DELETION_TIMEOUT < now) disrupted.delete(name);
      }
      const healthy = live.filter((pod) => isPodReady(pod) && !disrupted.has(pod.metadata.name)).length;
      const status = statusOf(pdb, { expected, desired, healthy }, Object.fromEntries(disrupted), now);
      if (!deepEqual(status, pdb.status)) await writeStatus(client, resources.podDisruptionBudgets, pdb, status);
      const waits = [...disrupted.values()].map((time) => timeOf(time) + DELETION_TIMEOUT - now);
      return { requeueAfterMs: waits.length ? Math.max(1, Math.min(...waits)) : undefined };
    },
  });
}

function statusOf(
  pdb: PDB,
  { expected, desired, healthy }: { expected: number; desired: number; healthy: number },
  disruptedPods: Record<string, string>,
  now: number,
): PodDisruptionBudgetStatus {
  const allowed = expected <= 0 ? 0 : Math.max(0, healthy - desired);
  const generation = pdb.metadata.generation ?? 0;
  const condition: Condition = {
    type: "DisruptionAllowed",
    status: allowed > 0 ? "True" : "False",
    reason: allowed > 0 ? "SufficientPods" : "InsufficientPods",
    message: "",
    lastTransitionTime: formatTime(now),
    observedGeneration: generation,
  };
  const before = pdb.status?.conditions as Condition[] | undefined;
  const conditions = withCondition(before, condition).map((one) =>
    one.type === condition.type ? { ...one, observedGeneration: generation } : one,
  );
  return {
    ...(generation ? { observedGeneration: generation } : {}),
    ...(Object.keys(disruptedPods).length ? { disruptedPods } : {}),
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: expected,
    conditions,
  };
}
