import { type DeepReadonly, deepEqual, messageOf } from "#base";
import {
  isPodReady,
  isStatus,
  matchesSelector,
  type Pod,
  podCondition,
  resources,
  type StatefulSetStatus,
} from "#kinds";
import { type Controller, type ControllerDeps, createController, type ReconcileResult } from "../runtime/controller.ts";
import { type Revision, RevisionCollision, syncRevisions, templateOf, trimRevisions } from "../runtime/history.ts";
import { copyOf, fromCache, ignoreNotFound, keyOf, timeOf, writeStatus } from "../runtime/objects.ts";
import { claim, controllerKey, indexByController } from "../runtime/ownership.ts";
import {
  claimOwners,
  claimsOf,
  isRunningAndAvailable,
  missingLabels,
  ordinalOf,
  type P,
  podOf,
  replicasOf,
  revisionOf,
  type S,
} from "./identity.ts";
import { type Counts, countPods, planSet, type SetStep, type SetView } from "./plan.ts";

/** Pods with a name, a place in the order and storage of their own. https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/ */
export function createStatefulSetController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const sets = deps.informers.for(resources.statefulSets);
  const pods = deps.informers.for(resources.pods);
  const claims = deps.informers.for(resources.persistentVolumeClaims);
  const revisions = deps.informers.for(resources.controllerRevisions);
  const recorder = deps.recorder("statefulset-controller");
  indexByController(pods);
  indexByController(revisions);

  function record(verb: "Create" | "Delete" | "Update", set: S, pod: string, error?: unknown): void {
    const what = `${verb} Pod ${pod} in StatefulSet ${set.metadata.name}`;
    if (error === undefined) recorder.event(set, "Normal", `Successful${verb}`, `${what} successful`);
    else recorder.event(set, "Warning", `Failed${verb}`, `${what} failed error: ${messageOf(error)}`);
  }

  /** Creates the claims of an ordinal that are missing. */
  async function ensureClaims(set: S, ordinal: number, pod: string): Promise<void> {
    for (const wanted of claimsOf(set, ordinal)) {
      const { name, namespace } = wanted.metadata;
      const found = claims.get(namespace, name);
      if (found?.metadata.deletionTimestamp) throw new Error(`pvc ${name} is to be deleted`);
      if (found) continue;
      const owners = claimOwners(set, wanted, undefined, ordinal);
      if (owners.length) wanted.metadata.ownerReferences = owners;
      try {
        await client.create(resources.persistentVolumeClaims, wanted);
      } catch (error) {
        if (isStatus(error, "AlreadyExists")) continue;
        const what = `Create Claim ${name} for Pod ${pod} in StatefulSet ${set.metadata.name} failed error: ${messageOf(error)}`;
        recorder.event(set, "Warning", "FailedCreate", what);
        throw error;
      }
      const what = `Create Claim ${name} Pod ${pod} in StatefulSet ${set.metadata.name} success`;
      recorder.event(set, "Normal", "SuccessfulCreate", what);
    }
  }
  async function create(set: S, ordinal: number, revision: Revision): Promise<DeepReadonly<Pod> | undefined> {
    const pod = podOf(set, ordinal, templateOf(revision), revision.metadata.name);
    const { name } = pod.metadata;
    try {
      await ensureClaims(set, ordinal, name);
      const made = await client.create(resources.pods, pod);
      record("Create", set, name);
      return made;
    } catch (error) {
      if (isStatus(error, "AlreadyExists")) return undefined;
      record("Create", set, name, error);
      throw error;
    }
  }
  async function remove(set: S, pod: P): Promise<void> {
    const { name, namespace } = pod.metadata;
    try {
      await ignoreNotFound(client.delete(resources.pods, name, { namespace }));
    } catch (error) {
      record("Delete", set, name, error);
      throw error;
    }
    record("Delete", set, name);
  }

  /** Identity labels and the owners of claims, which may have to change while pods live. */
  async function repair(set: S, list: readonly P[]): Promise<void> {
    for (const pod of list) {
      const ordinal = ordinalOf(set, pod);
      if (ordinal === undefined) continue;
      const labels = missingLabels(set, pod);
      const { namespace } = pod.metadata;
      if (labels)
        await ignoreNotFound(
          client.patch(
            resources.pods,
            pod.metadata.name,
            { type: "merge", body: { metadata: { labels } } },
            { namespace },
          ),
        );
      for (const wanted of claimsOf(set, ordinal)) {
        const found = claims.get(namespace, wanted.metadata.name);
        if (!found) {
          if (pod.status?.phase === "Pending" && !pod.metadata.deletionTimestamp)
            await ensureClaims(set, ordinal, pod.metadata.name);
          continue;
        }
        const ownerReferences = claimOwners(set, found, pod, ordinal);
        if (deepEqual(ownerReferences, found.metadata.ownerReferences ?? [])) continue;
        const copy = copyOf(resources.persistentVolumeClaims, found);
        await ignoreNotFound(
          client.update(resources.persistentVolumeClaims, { ...copy, metadata: { ...copy.metadata, ownerReferences } }),
        );
      }
    }
  }

  async function run(
    set: S,
    steps: readonly SetStep[],
    current: Revision,
    update: Revision,
  ): Promise<{ made: P[]; error: unknown }> {
    const made: P[] = [];
    const results = await Promise.allSettled(
      steps.map(async (step) => {
        if (step.kind === "delete") return remove(set, step.pod);
        const pod = await create(set, step.ordinal, step.revision === "current" ? current : update);
        if (pod) made.push(pod);
      }),
    );
    return { made, error: results.find((result) => result.status === "rejected")?.reason };
  }

  return createController(deps, {
    name: "statefulset",
    watch({ on, needs, enqueue }) {
      const ownerOf = (pod: P) => controllerKey(pod, resources.statefulSets as never);
      needs(revisions);
      needs(claims);
      on(sets, {
        add: (set) => enqueue(keyOf(set)),
        update: (set) => enqueue(keyOf(set)),
        delete: (set) => enqueue(keyOf(set)),
      });
      const changed = (pod: P) => {
        const key = ownerOf(pod);
        if (key) return enqueue(key);
        if (pod.metadata.ownerReferences?.some(({ controller }) => controller)) return;
        for (const set of sets.list(pod.metadata.namespace)) {
          if (matchesSelector(set.spec.selector, pod.metadata.labels)) enqueue(keyOf(set));
        }
      };
      on(pods, {
        add: changed,
        update(pod, previous) {
          const before = ownerOf(previous);
          if (before && before !== ownerOf(pod)) enqueue(before);
          changed(pod);
        },
        delete: (pod) => void (ownerOf(pod) && enqueue(ownerOf(pod)!)),
      });
    },
    async reconcile(key): Promise<ReconcileResult> {
      const set = fromCache(sets, key);
      if (!set) return;
      const { current: update, others } = await revisionsOf(set);
      const current = others.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update;
      const claimed = await claim(client, {
        informer: pods,
        resource: resources.pods,
        owner: set,
        ownerResource: resources.statefulSets,
        matches: (pod: DeepReadonly<Pod>) =>
          matchesSelector(set.spec.selector, pod.metadata.labels) && ordinalOf(set, pod) !== undefined,
      });
      const view: SetView = {
        set,
        pods: claimed,
        currentRevision: current.metadata.name,
        updateRevision: update.metadata.name,
        now: clock.now(),
      };
      if (!set.metadata.deletionTimestamp) await repair(set, claimed);
      const { made, error } = await run(set, planSet(view), current, update);
      await saveStatus(set, { ...view, pods: [...claimed, ...made] });
      const live = new Set([...claimed.map(revisionOf), current.metadata.name, update.metadata.name]);
      await trimRevisions(client, others, (one) => live.has(one.metadata.name), set.spec.revisionHistoryLimit ?? 10);
      if (error !== undefined) throw error;
      return { requeueAfterMs: availabilityWait(view) };
    },
  });

  async function saveStatus(set: S, view: SetView): Promise<void> {
    const counts = countPods(view);
    const status = statusOf(set, counts, view);
    if (!deepEqual(status, set.status)) await writeStatus(client, resources.statefulSets, set, status);
  }
  async function revisionsOf(set: S): ReturnType<typeof syncRevisions> {
    const collisionCount = set.status?.collisionCount ?? 0;
    try {
      return await syncRevisions(client, revisions, set, resources.statefulSets as never, {
        collisionCount,
        labels: { ...set.spec.template.metadata?.labels },
        ...(set.metadata.annotations ? { annotations: { ...set.metadata.annotations } } : {}),
      });
    } catch (error) {
      if (!(error instanceof RevisionCollision)) throw error;
      const grown = { ...(set.status as StatefulSetStatus), collisionCount: collisionCount + 1 };
      await writeStatus(client, resources.statefulSets, set, grown);
      throw error;
    }
  }
}

function statusOf(set: S, counts: Counts, view: SetView): StatefulSetStatus {
  let { currentReplicas } = counts;
  let { currentRevision } = view;
  const rolling = set.spec.updateStrategy?.type !== "OnDelete";
  // A rolling update is over when all pods are of the new revision and available: it becomes the current one.
  const all = replicasOf(set);
  if (
    rolling &&
    counts.updatedReplicas === counts.replicas &&
    counts.readyReplicas === counts.replicas &&
    counts.updatedReplicas === all
  ) {
    currentReplicas = counts.updatedReplicas;
    currentRevision = view.updateRevision;
  }
  const { replicas, readyReplicas, availableReplicas, updatedReplicas } = counts;
  const optional = { readyReplicas, currentReplicas, updatedReplicas };
  const { conditions } = set.status ?? {};
  return {
    ...(set.metadata.generation ? { observedGeneration: set.metadata.generation } : {}),
    replicas,
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== 0)),
    availableReplicas,
    currentRevision,
    updateRevision: view.updateRevision,
    collisionCount: set.status?.collisionCount ?? 0,
    ...(conditions ? { conditions: conditions as NonNullable<StatefulSetStatus["conditions"]> } : {}),
  };
}

function availabilityWait({ set, pods, now }: SetView): number | undefined {
  const minReady = set.spec.minReadySeconds ?? 0;
  if (minReady === 0) return undefined;
  const waits = pods.flatMap((pod) => {
    if (!isPodReady(pod) || isRunningAndAvailable(set, pod, now)) return [];
    return [Math.max(1, timeOf(podCondition(pod, "Ready")?.lastTransitionTime) + minReady * 1000 - now)];
  });
  return waits.length ? Math.min(...waits) : undefined;
}
