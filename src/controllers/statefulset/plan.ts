import { scaledValue } from "../runtime/objects.ts";
import {
  inRange,
  isRunningAndAvailable,
  isRunningAndReady,
  isTerminating,
  ordinalOf,
  type P,
  replicasOf,
  revisionOf,
  type S,
  startOf,
} from "./identity.ts";

export interface SetView {
  readonly set: S;
  readonly pods: readonly P[];
  readonly currentRevision: string;
  readonly updateRevision: string;
  readonly now: number;
}

export type SetStep =
  | { readonly kind: "create"; readonly ordinal: number; readonly revision: "current" | "update" }
  | { readonly kind: "delete"; readonly pod: P };

/**
 * The next steps of a StatefulSet: missing pods are created in order, surplus ones deleted in reverse, each waiting for
 * those before (unless podManagementPolicy is Parallel); then pods of an old revision are replaced from the highest ordinal
 * down to the partition. https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#deployment-and-scaling-guarantees
 */
export function planSet(view: SetView): SetStep[] {
  const { set, now } = view;
  if (set.metadata.deletionTimestamp) return [];
  const ordered = set.spec.podManagementPolicy !== "Parallel";
  const byOrdinal = new Map<number, P>();
  const condemned: { pod: P; ordinal: number }[] = [];
  for (const pod of view.pods) {
    const ordinal = ordinalOf(set, pod);
    if (ordinal === undefined) continue;
    if (inRange(set, ordinal)) byOrdinal.set(ordinal, pod);
    else condemned.push({ pod, ordinal });
  }
  condemned.sort((a, b) => b.ordinal - a.ordinal);
  const steps: SetStep[] = [];
  let blocked = false;
  for (let ordinal = startOf(set); ordinal < startOf(set) + replicasOf(set); ordinal++) {
    const pod = byOrdinal.get(ordinal);
    if (!pod) {
      steps.push({ kind: "create", ordinal, revision: newRevision(view, ordinal) });
      blocked = true;
    } else if (pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded") {
      if (!isTerminating(pod)) steps.push({ kind: "delete", pod });
      blocked = true;
    } else if (ordered && (isTerminating(pod) || !isRunningAndAvailable(set, pod, now))) return steps;
    if (blocked && ordered) return steps;
  }
  if (steps.some(({ kind }) => kind === "delete")) return steps;
  const firstUnhealthy = [...byOrdinal.values(), ...condemned.map(({ pod }) => pod).reverse()].find(
    (pod) => !isRunningAndAvailable(set, pod, now) || isTerminating(pod),
  );
  for (const { pod } of condemned) {
    if (isTerminating(pod)) {
      if (ordered) return steps;
      continue;
    }
    if (ordered && !isRunningAndAvailable(set, pod, now) && pod !== firstUnhealthy) return steps;
    steps.push({ kind: "delete", pod });
    if (ordered) return steps;
  }
  if (steps.length > 0 || set.spec.updateStrategy?.type === "OnDelete") return steps;
  return planUpdate(view, byOrdinal);
}

/** A new pod below the partition, or while fewer than all are current, is of the current revision. */
function newRevision({ set, currentRevision, updateRevision }: SetView, ordinal: number): "current" | "update" {
  if (currentRevision === updateRevision) return "update";
  const rolling = set.spec.updateStrategy?.rollingUpdate;
  const isRolling = set.spec.updateStrategy?.type !== "OnDelete";
  const current = set.status?.currentReplicas ?? 0;
  if (isRolling && rolling === undefined && ordinal < startOf(set) + current) return "current";
  if (isRolling && rolling && ordinal < startOf(set) + (rolling.partition ?? 0)) return "current";
  return "update";
}

/**
 * Without maxUnavailable one pod at a time, the highest first, each waiting for those above it to be available; a broken pod
 * below does not stop it. With it, as many as may be unavailable.
 */
function planUpdate({ set, updateRevision, now }: SetView, byOrdinal: ReadonlyMap<number, P>): SetStep[] {
  const { partition = 0, maxUnavailable } = set.spec.updateStrategy?.rollingUpdate ?? {};
  const isDown = (pod: P) => isTerminating(pod) || !isRunningAndAvailable(set, pod, now);
  const last = startOf(set) + replicasOf(set) - 1;
  const ordinals = Array.from({ length: replicasOf(set) }, (_, i) => last - i).filter(
    (one) => one >= startOf(set) + partition,
  );
  const isOld = (pod: P) => revisionOf(pod) !== updateRevision && !isTerminating(pod);
  if (maxUnavailable === undefined) {
    for (const ordinal of ordinals) {
      const pod = byOrdinal.get(ordinal);
      if (pod && isOld(pod)) return [{ kind: "delete", pod }];
      if (!pod || isDown(pod)) return [];
    }
    return [];
  }
  const limit = Math.max(1, scaledValue(maxUnavailable, replicasOf(set), "up"));
  const room = limit - [...byOrdinal.values()].filter(isDown).length;
  const old = ordinals.flatMap((ordinal) => byOrdinal.get(ordinal) ?? []).filter(isOld);
  return old.slice(0, Math.max(0, room)).map((pod) => ({ kind: "delete", pod }));
}

export interface Counts {
  replicas: number;
  readyReplicas: number;
  availableReplicas: number;
  currentReplicas: number;
  updatedReplicas: number;
}

export function countPods({ set, pods, currentRevision, updateRevision, now }: SetView): Counts {
  const settled = pods.filter((pod) => !isTerminating(pod));
  return {
    replicas: pods.length,
    readyReplicas: pods.filter(isRunningAndReady).length,
    availableReplicas: pods.filter((pod) => isRunningAndAvailable(set, pod, now)).length,
    currentReplicas: settled.filter((pod) => revisionOf(pod) === currentRevision).length,
    updatedReplicas: settled.filter((pod) => revisionOf(pod) === updateRevision).length,
  };
}
