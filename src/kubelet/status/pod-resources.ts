import type { PodStatus } from "#kinds";
import { podAmounts } from "../container-config/pod-resources.ts";
import type { ReadonlyPod } from "../ports.ts";

/** `status.allocatedResources` and `status.resources`: what the pod as a whole has. KEP-5419 */
export function podResourcesStatus(pod: ReadonlyPod): Pick<PodStatus, "allocatedResources" | "resources"> {
  const requests = quantities(pod, "requests");
  const limits = quantities(pod, "limits");
  return {
    ...(requests ? { allocatedResources: requests } : {}),
    resources: { ...(limits ? { limits } : {}), ...(requests ? { requests } : {}) },
  };
}

function quantities(pod: ReadonlyPod, list: "requests" | "limits"): Record<string, string> | undefined {
  const amounts = podAmounts(pod, list);
  if (amounts.size === 0) return undefined;
  return Object.fromEntries([...amounts].map(([name, amount]) => [name, written(pod, list, name, amount)]));
}

/** A sum as a canonical quantity; where one container alone makes it, as it was written there. */
function written(pod: ReadonlyPod, list: "requests" | "limits", name: string, amount: number): string {
  const parts = [
    ...(pod.spec?.containers ?? []),
    ...(pod.spec?.initContainers ?? []),
    { resources: pod.spec?.resources },
  ].flatMap((part) => part.resources?.[list]?.[name] ?? []);
  const [only] = parts;
  if (only !== undefined && parts.length === 1 && !pod.spec?.overhead) return only;
  if (name === "cpu") return amount % 1000 === 0 ? String(amount / 1000) : `${amount}m`;
  const binary = parts.some((part) => part.endsWith("i"));
  if (!binary) return decimal(amount);
  const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
  let value = amount;
  let unit = 0;
  while (value !== 0 && value % 1024 === 0 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value}${units[unit]}`;
}

function decimal(amount: number): string {
  const units = ["", "k", "M", "G", "T", "P", "E"];
  let value = amount;
  let unit = 0;
  while (value !== 0 && value % 1000 === 0 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value}${units[unit]}`;
}
