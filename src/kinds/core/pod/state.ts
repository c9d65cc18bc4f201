import type { DeepReadonly } from "#base";
import type { Pod, PodCondition } from "../../generated/types.ts";

/** A pod's condition of a type, if it has it. */
export function podCondition(pod: DeepReadonly<Pod>, type: string): DeepReadonly<PodCondition> | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

/** The Ready condition is True. */
export function isPodReady(pod: DeepReadonly<Pod>): boolean {
  return podCondition(pod, "Ready")?.status === "True";
}

/** Ready for at least `minReadySeconds` at `now` (milliseconds). */
export function isPodAvailable(pod: DeepReadonly<Pod>, minReadySeconds: number, now: number): boolean {
  const ready = podCondition(pod, "Ready");
  if (ready?.status !== "True") return false;
  if (minReadySeconds === 0) return true;
  return !!ready.lastTransitionTime && Date.parse(ready.lastTransitionTime) + minReadySeconds * 1000 <= now;
}

/** Succeeded or Failed: its containers will not run again. */
export function isPodTerminal(pod: DeepReadonly<Pod>): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

/** Neither terminal nor being deleted. */
export function isPodActive(pod: DeepReadonly<Pod>): boolean {
  return !isPodTerminal(pod) && !pod.metadata.deletionTimestamp;
}

/** Being deleted. */
export function isTerminating(object: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}
