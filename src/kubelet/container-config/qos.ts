import type { DeepReadonly } from "#base";
import type { Pod } from "#kinds";
import { milliValue } from "./quantity.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

/**
 * The quality of service class of a pod, by the cpu and memory of its containers (init containers included, ephemeral ones
 * not), or of the pod's own `spec.resources` where that is given.
 *
 * Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
 */
export function qosClassOf(pod: DeepReadonly<Pod>): QosClass {
  const spec = pod.spec;
  const parts = spec?.resources
    ? [spec.resources]
    : [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])].map((container) => container.resources ?? {});
  const sum = { requests: new Map<string, number>(), limits: new Map<string, number>() };
  let limited = true;
  for (const part of parts) {
    add(sum.requests, part.requests);
    const found = add(sum.limits, part.limits);
    // A pod without a single pod-level limit is left to the comparison below, as Kubernetes does.
    if (found < 2 && !(spec?.resources && Object.keys(part.limits ?? {}).length === 0)) limited = false;
  }
  if (sum.requests.size === 0 && sum.limits.size === 0) return "BestEffort";
  const equal =
    sum.requests.size === sum.limits.size && [...sum.requests].every(([name, value]) => sum.limits.get(name) === value);
  return limited && equal ? "Guaranteed" : "Burstable";
}

/** Adds what counts and gives how many of the two resources were there. */
function add(sum: Map<string, number>, list: Readonly<Record<string, string>> | undefined): number {
  let found = 0;
  for (const name of ["cpu", "memory"]) {
    const value = milliValue(list?.[name]);
    if (value <= 0) continue;
    found++;
    sum.set(name, (sum.get(name) ?? 0) + value);
  }
  return found;
}
