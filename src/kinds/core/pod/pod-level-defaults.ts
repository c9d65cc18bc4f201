import type { Pod } from "../../generated/types.ts";
import { containersTotal, isPodLevelResource } from "./resources.ts";

/**
 * Pod-level resources that are given in part (KEP-2837): limits of huge pages come from the containers; requests come from
 * the containers, else from the pod's limits.
 */
export function setPodLevelDefaults(pod: Pod): void {
  const { resources } = pod.spec;
  if (!resources) return;
  const hasAny = Object.keys(resources.limits ?? {}).length + Object.keys(resources.requests ?? {}).length > 0;
  if (hasAny) {
    const limits = { ...resources.limits };
    for (const [name, amount] of Object.entries(containersTotal(pod.spec, "limits"))) {
      if (name.startsWith("hugepages-") && resources.requests?.[name] === undefined) limits[name] ??= amount;
    }
    if (Object.keys(limits).length > 0) resources.limits = limits;
  }
  if (Object.keys(resources.limits ?? {}).length === 0) return;
  const requests = { ...resources.requests };
  for (const [name, amount] of Object.entries(containersTotal(pod.spec, "requests"))) {
    if (name === "cpu" || name === "memory") requests[name] ??= amount;
  }
  for (const [name, amount] of Object.entries(resources.limits ?? {})) {
    if (isPodLevelResource(name)) requests[name] ??= amount;
  }
  if (Object.keys(requests).length > 0) resources.requests = requests;
}
