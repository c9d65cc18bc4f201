import { quantityMilliValue, quantityValue } from "#kinds";
import type { Container, Pod } from "./types.ts";

/** Amounts by resource name; cpu in millicores, everything else in its unit. Names with a zero amount may be absent. */
export type Resources = Map<string, number>;

type Amounts = Readonly<Record<string, string>> | undefined;

export function readResources(amounts: Amounts): Resources {
  const result: Resources = new Map();
  for (const name in amounts) {
    result.set(name, name === "cpu" ? quantityMilliValue(amounts[name]) : quantityValue(amounts[name]));
  }
  return result;
}

export function addResources(to: Resources, more: Resources, sign: 1 | -1 = 1): void {
  for (const [name, amount] of more) to.set(name, (to.get(name) ?? 0) + sign * amount);
}

function raiseTo(to: Resources, other: Resources): void {
  for (const [name, amount] of other) if (amount > (to.get(name) ?? 0)) to.set(name, amount);
}

/**
 * What a pod asks of a node: the larger of its containers' sum and what its init containers need at their time (sidecars
 * that started before count with both), replaced by pod-level requests where given, plus the overhead.
 * https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
 */
export function podRequests(pod: Pod, requestsOf: (container: Container) => Resources = containerRequests): Resources {
  const total: Resources = new Map();
  for (const container of pod.spec.containers) addResources(total, requestsOf(container));
  const sidecars: Resources = new Map();
  const initPeak: Resources = new Map();
  for (const container of pod.spec.initContainers ?? []) {
    const requests = requestsOf(container);
    const atItsTime = new Map(sidecars);
    addResources(atItsTime, requests);
    if (container.restartPolicy === "Always") {
      addResources(total, requests);
      addResources(sidecars, requests);
    }
    raiseTo(initPeak, atItsTime);
  }
  raiseTo(total, initPeak);
  for (const [name, amount] of readResources(pod.spec.resources?.requests)) total.set(name, amount);
  addResources(total, readResources(pod.spec.overhead));
  return total;
}

const containerRequests = (container: Container): Resources => readResources(container.resources?.requests);

/** For scoring, containers without a request count with these (100m, 200Mi), so that best-effort pods spread too. */
const DEFAULT_CPU = 100;
const DEFAULT_MEMORY = 200 * 1024 * 1024;

export function nonZeroRequests(pod: Pod): { cpu: number; memory: number } {
  const requests = podRequests(pod, (container) => {
    const given = containerRequests(container);
    if (!given.has("cpu")) given.set("cpu", DEFAULT_CPU);
    if (!given.has("memory")) given.set("memory", DEFAULT_MEMORY);
    return given;
  });
  return { cpu: requests.get("cpu") ?? 0, memory: requests.get("memory") ?? 0 };
}
