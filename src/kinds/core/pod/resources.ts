import type { DeepReadonly } from "#base";
import type { Container, Pod, PodSpec } from "../../generated/types.ts";
import { addQuantity, compareQuantity } from "../../quantity.ts";

/** Amounts by resource name, canonical quantities. */
export type ResourceList = Record<string, string>;
type Kind = "requests" | "limits";
type Spec = DeepReadonly<Pick<PodSpec, "containers" | "initContainers" | "overhead" | "resources">>;

/** True for an init container that runs beside the others (a native sidecar, KEP-753). */
export function isSidecar(container: DeepReadonly<Container>): boolean {
  return container.restartPolicy === "Always";
}

/**
 * What a pod asks of its node: the larger of what its containers and sidecars take together and what the init phase takes at
 * its peak, pod-level requests (KEP-2837) in their place where set, plus the overhead of its RuntimeClass.
 */
export function podRequests(pod: DeepReadonly<Pod>): ResourceList {
  return podTotal(pod.spec, "requests");
}

/** Like `podRequests`, for limits. A resource that some container leaves unlimited has the sum of the others. */
export function podLimits(pod: DeepReadonly<Pod>): ResourceList {
  return podTotal(pod.spec, "limits");
}

function podTotal(spec: Spec, kind: Kind): ResourceList {
  const total = containersTotal(spec, kind);
  for (const [name, amount] of Object.entries(spec.resources?.[kind] ?? {})) {
    if (isPodLevelResource(name)) total[name] = amount;
  }
  for (const [name, amount] of Object.entries(spec.overhead ?? {})) {
    if (kind === "requests" || total[name] !== undefined) total[name] = addQuantity(total[name] ?? "0", amount);
  }
  return total;
}

/** Without pod-level resources and overhead. */
export function containersTotal(spec: Spec, kind: Kind): ResourceList {
  const running: ResourceList = {};
  for (const container of spec.containers ?? []) addAll(running, container.resources?.[kind]);
  const sidecars: ResourceList = {};
  const initPeak: ResourceList = {};
  for (const container of spec.initContainers ?? []) {
    const own = { ...container.resources?.[kind] };
    if (isSidecar(container)) {
      addAll(sidecars, own);
      addAll(running, own);
      maxAll(initPeak, sidecars);
    } else {
      addAll(own, sidecars);
      maxAll(initPeak, own);
    }
  }
  maxAll(running, initPeak);
  return running;
}

function addAll(total: ResourceList, more: Readonly<ResourceList> | undefined): void {
  for (const [name, amount] of Object.entries(more ?? {})) total[name] = addQuantity(total[name] ?? "0", amount);
}

function maxAll(total: ResourceList, other: Readonly<ResourceList>): void {
  for (const [name, amount] of Object.entries(other)) {
    const current = total[name];
    if (current === undefined || compareQuantity(current, amount) < 0) total[name] = amount;
  }
}

/** Resources that may be given for a whole pod. */
export function isPodLevelResource(name: string): boolean {
  return name === "cpu" || name === "memory" || name.startsWith("hugepages-");
}

export type QOSClass = "Guaranteed" | "Burstable" | "BestEffort";

/** https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/ */
export function qosClass(pod: DeepReadonly<Pod>): QOSClass {
  const { spec } = pod;
  const holders = spec.resources ? [spec] : [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  const requests: ResourceList = {};
  const limits: ResourceList = {};
  let guaranteed = true;
  for (const { resources } of holders) {
    addAll(requests, computeOnly(resources?.requests));
    const own = computeOnly(resources?.limits);
    addAll(limits, own);
    if (own.cpu === undefined || own.memory === undefined) guaranteed = false;
  }
  if (Object.keys(requests).length === 0 && Object.keys(limits).length === 0) return "BestEffort";
  const names = Object.keys(requests);
  const equal = names.every(
    (name) => limits[name] !== undefined && compareQuantity(limits[name], requests[name] ?? "0") === 0,
  );
  return guaranteed && equal && names.length === Object.keys(limits).length ? "Guaranteed" : "Burstable";
}

/** Only amounts above zero of CPU and memory count for the class. */
function computeOnly(list: DeepReadonly<ResourceList> | undefined): ResourceList {
  const entries = Object.entries(list ?? {}).filter(
    ([name, amount]) => (name === "cpu" || name === "memory") && compareQuantity(amount, "0") > 0,
  );
  return Object.fromEntries(entries);
}
