import type { DeepReadonly } from "#base";
import type { Container, Pod, ResourceFieldSelector } from "#kinds";
import { isZero, milliValue, wholeValue } from "../container-config/quantity.ts";

type Quantities = Readonly<Record<string, string>>;

/**
 * The value of a downward API `resourceFieldRef`, divided by its divisor and rounded up. A limit that the container does
 * not have is the pod's limit, or else what the node can allocate.
 *
 * Source: https://kubernetes.io/docs/concepts/workloads/pods/downward-api/#downwardapi-resourceFieldRef
 *
 * @throws Error `unsupported container resource : …`
 */
export function resourceField(
  selector: DeepReadonly<ResourceFieldSelector>,
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
  allocatable: Quantities,
): string {
  const match = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(selector.resource);
  if (!match) throw new Error(`unsupported container resource : ${selector.resource}`);
  const [, list, name = ""] = match;
  const own = (list === "limits" ? container.resources?.limits : container.resources?.requests)?.[name];
  const quantity = list === "limits" && isZero(own) ? defaultLimit(name, pod, allocatable) : own;
  const divisor = isZero(selector.divisor) ? "1" : (selector.divisor as string);
  const value =
    name === "cpu" ? milliValue(quantity) / milliValue(divisor) : wholeValue(quantity) / wholeValue(divisor);
  return String(Math.ceil(value));
}

function defaultLimit(name: string, pod: DeepReadonly<Pod>, allocatable: Quantities): string | undefined {
  if (name.startsWith("hugepages-")) return undefined;
  const podLimit = pod.spec?.resources?.limits?.[name];
  return name !== "ephemeral-storage" && !isZero(podLimit) ? podLimit : allocatable[name];
}

/** @throws Error `container x not found` */
export function containerNamed(pod: DeepReadonly<Pod>, name: string): DeepReadonly<Container> {
  const all = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  const container = all.find((candidate) => candidate.name === name);
  if (!container) throw new Error(`container ${name} not found`);
  return container;
}
