import type { DeepReadonly } from "#base";
import { podLimits, podRequests, qosClass } from "./core/pod/resources.ts";
import type * as types from "./generated/types.ts";
import type { Resource } from "./object.ts";
import { addQuantity } from "./quantity.ts";

export type Usage = Record<string, string>;
type Pod = DeepReadonly<types.Pod>;
type Quota = DeepReadonly<types.ResourceQuota>;

/**
 * What an object uses of quotas, by the names that `spec.hard` may hold.
 * https://kubernetes.io/docs/concepts/policy/resource-quotas/
 */
export function quotaUsage(resource: Pick<Resource, "group" | "resource">, object: unknown, now: number): Usage {
  const usage: Usage = { [countName(resource)]: "1" };
  if (resource.group !== "") return usage;
  switch (resource.resource) {
    case "pods":
      return { ...usage, ...podUsage(object as Pod, now) };
    case "services":
      return { ...usage, services: "1", ...serviceUsage(object as DeepReadonly<types.Service>) };
    case "persistentvolumeclaims":
      return {
        ...usage,
        persistentvolumeclaims: "1",
        ...claimUsage(object as DeepReadonly<types.PersistentVolumeClaim>),
      };
    case "configmaps":
    case "secrets":
    case "replicationcontrollers":
    case "resourcequotas":
      return { ...usage, [resource.resource]: "1" };
    default:
      return usage;
  }
}

/** `count/deployments.apps` */
export const countName = ({ group, resource }: Pick<Resource, "group" | "resource">): string =>
  `count/${resource}${group ? `.${group}` : ""}`;

const POD_NAMES = new Set(["pods", "cpu", "memory", "ephemeral-storage"]);
const COUNTED_BY_NAME = new Set(["configmaps", "secrets", "replicationcontrollers", "resourcequotas"]);

/** Whether objects of a resource may use up what a name of `spec.hard` limits. */
export function quotaCounts(resource: Pick<Resource, "group" | "resource">, name: string): boolean {
  if (name === countName(resource)) return true;
  if (resource.group !== "") return false;
  switch (resource.resource) {
    case "pods":
      return (
        POD_NAMES.has(name) ||
        /^(requests\.|limits\.)(cpu|memory|ephemeral-storage)$/.test(name) ||
        /^(requests\.)?hugepages-/.test(name) ||
        isExtendedRequest(name)
      );
    case "services":
      return name === "services" || name === "services.nodeports" || name === "services.loadbalancers";
    case "persistentvolumeclaims":
      return /^(.+\.storageclass\.storage\.k8s\.io\/)?(persistentvolumeclaims|requests\.storage)$/.test(name);
    default:
      return name === resource.resource && COUNTED_BY_NAME.has(name);
  }
}

/** `requests.example.com/gpu` */
const isExtendedRequest = (name: string) =>
  name.startsWith("requests.") &&
  name.includes("/") &&
  !/^requests\.([^/]*\.)?kubernetes\.io\//.test(name) &&
  !name.includes(".storageclass.storage.k8s.io/");

function podUsage(pod: Pod, now: number): Usage {
  const { phase } = pod.status ?? {};
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
  const overdue =
    deletionTimestamp !== undefined && now > Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
  if (phase === "Succeeded" || phase === "Failed" || overdue) return {};
  const usage: Usage = { pods: "1" };
  for (const [name, amount] of Object.entries(podRequests(pod))) {
    if (["cpu", "memory", "ephemeral-storage"].includes(name) || name.startsWith("hugepages-")) usage[name] = amount;
    usage[`requests.${name}`] = amount;
  }
  for (const [name, amount] of Object.entries(podLimits(pod))) {
    if (["cpu", "memory", "ephemeral-storage"].includes(name)) usage[`limits.${name}`] = amount;
  }
  return usage;
}

function serviceUsage({ spec }: DeepReadonly<types.Service>): Usage {
  const ports = spec?.ports ?? [];
  const usage: Usage = { "services.loadbalancers": "0", "services.nodeports": "0" };
  if (spec?.type === "NodePort") usage["services.nodeports"] = String(ports.length);
  if (spec?.type !== "LoadBalancer") return usage;
  const allocated = spec.allocateLoadBalancerNodePorts !== false;
  const counted = allocated ? ports.length : ports.filter(({ nodePort }) => nodePort).length;
  return { "services.loadbalancers": "1", "services.nodeports": String(counted) };
}

function claimUsage({ spec }: DeepReadonly<types.PersistentVolumeClaim>): Usage {
  const storage = spec?.resources?.requests?.storage;
  const own = spec?.storageClassName ? `${spec.storageClassName}.storageclass.storage.k8s.io/` : undefined;
  return {
    ...(own ? { [`${own}persistentvolumeclaims`]: "1" } : {}),
    ...(storage ? { "requests.storage": storage, ...(own ? { [`${own}requests.storage`]: storage } : {}) } : {}),
  };
}

/** Whether an object counts in a quota that is limited by scopes. Only pods can meet scopes. */
export function quotaMatches(quota: Quota, resource: Pick<Resource, "group" | "resource">, object: unknown): boolean {
  const terms = [
    ...(quota.spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: "Exists", values: undefined })),
    ...(quota.spec?.scopeSelector?.matchExpressions ?? []),
  ];
  if (terms.length === 0) return true;
  if (resource.group !== "" || resource.resource !== "pods") return false;
  return terms.every(({ scopeName, operator, values }) => inScope(object as Pod, scopeName, operator, values));
}

function inScope(pod: Pod, scope: string, operator: string, values: readonly string[] | undefined): boolean {
  switch (scope) {
    case "Terminating":
      return (pod.spec.activeDeadlineSeconds ?? -1) >= 0;
    case "NotTerminating":
      return pod.spec.activeDeadlineSeconds === undefined;
    case "BestEffort":
      return qosClass(pod) === "BestEffort";
    case "NotBestEffort":
      return qosClass(pod) !== "BestEffort";
    case "PriorityClass":
      return selects(pod.spec.priorityClassName ?? "", operator, values);
    case "CrossNamespacePodAffinity":
      return usesOtherNamespaces(pod);
    default:
      return false;
  }
}

function selects(value: string, operator: string, values: readonly string[] | undefined): boolean {
  if (operator === "Exists") return value !== "";
  if (operator === "DoesNotExist") return value === "";
  return operator === "In" ? (values ?? []).includes(value) : !(values ?? []).includes(value);
}

function usesOtherNamespaces({ spec: { affinity } }: Pod): boolean {
  const terms = [affinity?.podAffinity, affinity?.podAntiAffinity].flatMap((one) => [
    ...(one?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(one?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ]);
  return terms.some(
    ({ namespaces, namespaceSelector }) => (namespaces?.length ?? 0) > 0 || namespaceSelector !== undefined,
  );
}

/** The sums of usages, name by name. */
export function addUsage(total: Usage, more: Readonly<Usage>): Usage {
  const sum = { ...total };
  for (const [name, amount] of Object.entries(more))
    sum[name] = sum[name] === undefined ? amount : addQuantity(sum[name], amount);
  return sum;
}
