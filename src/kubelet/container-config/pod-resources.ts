import type { DeepReadonly } from "#base";
import type { Container, Pod } from "#kinds";
import { milliValue, wholeValue } from "./quantity.ts";

/** Amounts by resource name: cpu in thousandths, everything else whole. */
export type Amounts = ReadonlyMap<string, number>;

type Quantities = Readonly<Record<string, string>> | undefined;

/**
 * What a pod asks for or is limited to as a whole: its containers and sidecars together, or more where an init container
 * needs more; the pod's own `spec.resources` replace the sum; `spec.overhead` comes on top (of limits only where there is
 * a limit).
 *
 * Source: https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers, KEP-753, KEP-2837
 */
export function podAmounts(pod: DeepReadonly<Pod>, list: "requests" | "limits"): Amounts {
  const result = containerAmounts(pod, list);
  for (const [name, quantity] of Object.entries(pod.spec?.resources?.[list] ?? {})) {
    if (isPodLevel(name)) result.set(name, amount(name, quantity));
  }
  for (const [name, quantity] of Object.entries(pod.spec?.overhead ?? {})) {
    if (list === "requests" || result.get(name)) result.set(name, (result.get(name) ?? 0) + amount(name, quantity));
  }
  return result;
}

/** The sum over the containers alone. */
export function containerAmounts(pod: DeepReadonly<Pod>, list: "requests" | "limits"): Map<string, number> {
  const running = new Map<string, number>();
  for (const container of pod.spec?.containers ?? []) addTo(running, container.resources?.[list]);
  const sidecars = new Map<string, number>();
  const starting = new Map<string, number>();
  for (const container of pod.spec?.initContainers ?? []) {
    if (isSidecar(container)) {
      addTo(running, container.resources?.[list]);
      addTo(sidecars, container.resources?.[list]);
      raise(starting, sidecars);
    } else {
      const together = new Map(sidecars);
      addTo(together, container.resources?.[list]);
      raise(starting, together);
    }
  }
  raise(running, starting);
  return running;
}

/** A restartable init container. */
export const isSidecar = (container: DeepReadonly<Container>): boolean => container.restartPolicy === "Always";

/** Resources that may be given for the pod as a whole. */
const isPodLevel = (name: string) => name === "cpu" || name === "memory" || name.startsWith("hugepages-");

export const amount = (name: string, quantity: string | undefined): number =>
  name === "cpu" ? milliValue(quantity) : wholeValue(quantity);

function addTo(sum: Map<string, number>, list: Quantities): void {
  for (const [name, quantity] of Object.entries(list ?? {}))
    sum.set(name, (sum.get(name) ?? 0) + amount(name, quantity));
}

function raise(sum: Map<string, number>, least: ReadonlyMap<string, number>): void {
  for (const [name, value] of least) sum.set(name, Math.max(sum.get(name) ?? 0, value));
}
