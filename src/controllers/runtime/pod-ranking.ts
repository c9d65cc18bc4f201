import type { DeepReadonly } from "#base";
import { isPodReady, type Pod, podCondition } from "#kinds";
import { timeOf } from "./objects.ts";

type P = DeepReadonly<Pod>;
const DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";
const PHASES = ["Pending", "Unknown", "Running"];

/**
 * Orders pods by how little their deletion costs: unassigned, pending, not ready, of low deletion cost, on a node with more
 * of their like, young and often restarted ones first. `colocated` gives the related ready pods on a pod's node.
 * https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#scaling-a-replicaset
 */
export function rankForDeletion(pods: readonly P[], colocated: (pod: P) => number, now: number): P[] {
  return [...pods].sort(
    (a, b) =>
      Number(Boolean(a.spec.nodeName)) - Number(Boolean(b.spec.nodeName)) ||
      phaseOf(a) - phaseOf(b) ||
      Number(isPodReady(a)) - Number(isPodReady(b)) ||
      costOf(a) - costOf(b) ||
      colocated(b) - colocated(a) ||
      (isPodReady(a) && isPodReady(b) ? byAge(readySince(a), readySince(b), a, b, now) : 0) ||
      restartsOf(b) - restartsOf(a) ||
      byAge(timeOf(a.metadata.creationTimestamp), timeOf(b.metadata.creationTimestamp), a, b, now),
  );
}

const phaseOf = (pod: P): number => PHASES.indexOf(pod.status?.phase ?? "Pending");
const costOf = (pod: P): number => Number(pod.metadata.annotations?.[DELETION_COST] ?? 0) || 0;
const readySince = (pod: P): number => timeOf(podCondition(pod, "Ready")?.lastTransitionTime);
const restartsOf = (pod: P): number =>
  Math.max(0, ...(pod.status?.containerStatuses ?? []).map(({ restartCount }) => restartCount ?? 0));

/** Younger first, in steps of powers of two of the age, so that the choice within a step is arbitrary but stable (by uid). */
function byAge(a: number, b: number, first: P, second: P, now: number): number {
  if (a === b) return 0;
  const rank = (time: number) => Math.floor(Math.log2(Math.max(1, (now - time) / 1000)));
  return rank(a) - rank(b) || ((first.metadata.uid ?? "") < (second.metadata.uid ?? "") ? -1 : 1);
}
