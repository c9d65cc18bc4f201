import { deepClone, deepEqual } from "#base";
import type { Container, LabelSelector, Pod, PodAffinityTerm } from "../../generated/types.ts";
import { qosClass } from "./resources.ts";
import { syncServiceAccount } from "./defaults.ts";

/** What a new pod starts with: Pending, its QoS class, and labels merged into affinity and spread selectors. */
export function prepareForCreate(pod: Pod): void {
  syncServiceAccount(pod.spec);
  pod.status = { phase: "Pending", qosClass: qosClass(pod) };
  if ((pod.spec.schedulingGates ?? []).length > 0) {
    pod.status.conditions = [
      {
        type: "PodScheduled",
        status: "False",
        lastProbeTime: null as unknown as string,
        lastTransitionTime: pod.metadata.creationTimestamp ?? (null as unknown as string),
        reason: "SchedulingGated",
        message: "Scheduling is blocked due to non-empty scheduling gates",
      },
    ];
  }
  mergeLabelKeys(pod);
  dropDisabledFields(pod.spec);
}

/** `stopSignal` needs the feature ContainerStopSignals, which is off by default in v1.36. */
export function dropDisabledFields(spec: Pod["spec"]): void {
  for (const container of [
    ...(spec.initContainers ?? []),
    ...(spec.containers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ]) {
    if (container.lifecycle?.stopSignal === undefined) continue;
    delete container.lifecycle.stopSignal;
    if (Object.keys(container.lifecycle).length === 0) delete container.lifecycle;
  }
  // a negative grace period has always meant the shortest
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1;
}

/** `matchLabelKeys` become expressions of the selectors (KEP-3633, KEP-3243). */
function mergeLabelKeys(pod: Pod): void {
  const labels = pod.metadata.labels ?? {};
  for (const affinity of [pod.spec.affinity?.podAffinity, pod.spec.affinity?.podAntiAffinity]) {
    for (const term of affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) mergeTerm(term, labels);
    for (const { podAffinityTerm } of affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
      mergeTerm(podAffinityTerm, labels);
    }
  }
  for (const constraint of pod.spec.topologySpreadConstraints ?? []) {
    mergeKeys(constraint.labelSelector, constraint.matchLabelKeys, "In", labels);
  }
}

function mergeTerm(term: PodAffinityTerm, labels: Readonly<Record<string, string>>): void {
  mergeKeys(term.labelSelector, term.matchLabelKeys, "In", labels);
  mergeKeys(term.labelSelector, term.mismatchLabelKeys, "NotIn", labels);
}

function mergeKeys(
  selector: LabelSelector | undefined,
  keys: readonly string[] | undefined,
  operator: string,
  labels: Readonly<Record<string, string>>,
): void {
  if (!selector) return;
  for (const key of keys ?? []) {
    const value = labels[key];
    if (value === undefined) continue;
    selector.matchExpressions ??= [];
    selector.matchExpressions.push({ key, operator, values: [value] });
  }
}

/** Keeps what each of a pod's endpoints may not change, and bumps the generation when the spec did change. */
export function prepareForUpdate(pod: Pod, old: Pod, subresource: string): void {
  if (subresource === "status") {
    prepareStatus(pod, old);
    return;
  }
  if (subresource === "ephemeralcontainers") {
    const { ephemeralContainers } = pod.spec;
    keepAllButSpec(pod, old);
    pod.spec = deepClone(old.spec);
    if (ephemeralContainers) pod.spec.ephemeralContainers = ephemeralContainers;
    else delete pod.spec.ephemeralContainers;
  } else if (subresource === "resize") {
    keepAllButResources(pod, old);
  }
  if (!deepEqual(pod.spec, old.spec)) pod.metadata.generation = (old.metadata.generation ?? 0) + 1;
}

function prepareStatus(pod: Pod, old: Pod): void {
  if (old.metadata.ownerReferences) pod.metadata.ownerReferences = deepClone(old.metadata.ownerReferences);
  else delete pod.metadata.ownerReferences;
  const status = pod.status ?? {};
  pod.status = status;
  status.qosClass ||= old.status?.qosClass as string;
  if (status.qosClass === undefined) delete status.qosClass;
  if (!status.observedGeneration && old.status?.observedGeneration) {
    status.observedGeneration = old.status.observedGeneration;
  }
  for (const condition of status.conditions ?? []) {
    const before = old.status?.conditions?.find(({ type }) => type === condition.type)?.observedGeneration;
    if (!condition.observedGeneration && before) condition.observedGeneration = before;
  }
  syncAddresses(status);
}

/** `podIP` and `hostIP` mirror the first of the lists. */
function syncAddresses(status: NonNullable<Pod["status"]>): void {
  if (status.podIP && (status.podIPs ?? []).length === 0) status.podIPs = [{ ip: status.podIP }];
  const first = status.podIPs?.[0]?.ip;
  if (first) status.podIP = first;
}

/** Metadata but managed fields, and the status, as they were. */
function keepAllButSpec(pod: Pod, old: Pod): void {
  const { managedFields, resourceVersion } = pod.metadata;
  pod.metadata = deepClone(old.metadata);
  if (managedFields) pod.metadata.managedFields = managedFields;
  if (resourceVersion) pod.metadata.resourceVersion = resourceVersion;
  if (old.status) pod.status = deepClone(old.status);
}

/** Containers that were added, removed, renamed or moved are left for validation to refuse. */
function keepAllButResources(pod: Pod, old: Pod): void {
  const same = (now: readonly Container[] | undefined, before: readonly Container[] | undefined) =>
    (now ?? []).length === (before ?? []).length;
  if (!same(pod.spec.containers, old.spec.containers) || !same(pod.spec.initContainers, old.spec.initContainers))
    return;
  const { resources, containers, initContainers } = pod.spec;
  pod.spec = deepClone(old.spec);
  if (resources) pod.spec.resources = resources;
  pod.spec.containers = mergeResources(containers, old.spec.containers);
  if (initContainers) pod.spec.initContainers = mergeResources(initContainers, old.spec.initContainers ?? []);
  keepAllButSpec(pod, old);
}

function mergeResources(now: Container[], before: readonly Container[]): Container[] {
  if (now.some((container, i) => container.name !== before[i]?.name)) return now;
  return now.map((container, i) => {
    const merged = deepClone(before[i]!);
    if (container.resources) merged.resources = container.resources;
    if (container.resizePolicy) merged.resizePolicy = container.resizePolicy;
    return merged;
  });
}

/** Unscheduled and finished pods go at once; others get what was asked for, else what their spec says. */
export function gracePeriodSeconds(pod: Pod, requested: number | undefined): number {
  const { phase } = pod.status ?? {};
  if (!pod.spec.nodeName || phase === "Failed" || phase === "Succeeded") return 0;
  const period = requested ?? pod.spec.terminationGracePeriodSeconds ?? 0;
  return period < 0 ? 1 : period;
}

/** Fields that pods can be selected by. */
export function selectableFields(pod: Pod): Record<string, string> {
  return {
    "spec.nodeName": pod.spec.nodeName ?? "",
    "spec.restartPolicy": pod.spec.restartPolicy ?? "",
    "spec.schedulerName": pod.spec.schedulerName ?? "",
    "spec.serviceAccountName": pod.spec.serviceAccountName ?? "",
    "spec.hostNetwork": String(pod.spec.hostNetwork ?? false),
    "status.phase": pod.status?.phase ?? "",
    "status.podIP": pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? "",
    "status.nominatedNodeName": pod.status?.nominatedNodeName ?? "",
  };
}
