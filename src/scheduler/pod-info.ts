import { nonZeroRequests, podRequests, type Resources } from "./pod-resources.ts";
import type { LabelSelector, Pod, PodAffinityTerm } from "./types.ts";
import { keyOf } from "./types.ts";

/** A pod with what scheduling needs of it, worked out once. */
export interface PodInfo {
  readonly pod: Pod;
  readonly key: string;
  readonly uid: string;
  readonly requests: Resources;
  readonly nonZero: { readonly cpu: number; readonly memory: number };
  readonly hostPorts: readonly HostPort[];
  readonly priority: number;
  readonly requiredAffinity: readonly Term[];
  readonly requiredAntiAffinity: readonly Term[];
  readonly preferredAffinity: readonly { weight: number; term: Term }[];
  readonly preferredAntiAffinity: readonly { weight: number; term: Term }[];
  /** Uid of the controller, for spreading the pods of one owner. */
  readonly owner: string | undefined;
}

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

/** A pod affinity term with its defaults filled in and matchLabelKeys folded into the selector. */
export interface Term {
  readonly topologyKey: string;
  readonly selector: LabelSelector | undefined;
  /** Empty with an absent namespaceSelector never occurs: the pod's own namespace is filled in. */
  readonly namespaces: readonly string[];
  readonly namespaceSelector: LabelSelector | undefined;
}

export function createPodInfo(pod: Pod): PodInfo {
  const affinity = pod.spec.affinity?.podAffinity;
  const anti = pod.spec.affinity?.podAntiAffinity;
  const terms = (list: readonly PodAffinityTerm[] | undefined) => (list ?? []).map((term) => termOf(pod, term));
  const weighted = (list: readonly { weight: number; podAffinityTerm: PodAffinityTerm }[] | undefined) =>
    (list ?? []).map(({ weight, podAffinityTerm }) => ({ weight, term: termOf(pod, podAffinityTerm) }));
  return {
    pod,
    key: keyOf(pod),
    uid: pod.metadata.uid ?? keyOf(pod),
    requests: podRequests(pod),
    nonZero: nonZeroRequests(pod),
    hostPorts: hostPortsOf(pod),
    priority: pod.spec.priority ?? 0,
    requiredAffinity: terms(affinity?.requiredDuringSchedulingIgnoredDuringExecution),
    requiredAntiAffinity: terms(anti?.requiredDuringSchedulingIgnoredDuringExecution),
    preferredAffinity: weighted(affinity?.preferredDuringSchedulingIgnoredDuringExecution),
    preferredAntiAffinity: weighted(anti?.preferredDuringSchedulingIgnoredDuringExecution),
    owner: pod.metadata.ownerReferences?.find((owner) => owner.controller)?.uid,
  };
}

function hostPortsOf(pod: Pod): HostPort[] {
  const sidecars = (pod.spec.initContainers ?? []).filter((container) => container.restartPolicy === "Always");
  return [...pod.spec.containers, ...sidecars].flatMap((container) =>
    (container.ports ?? []).flatMap(({ hostPort, hostIP, protocol }) =>
      hostPort ? [{ ip: hostIP || "0.0.0.0", protocol: protocol ?? "TCP", port: hostPort }] : [],
    ),
  );
}

function termOf(pod: Pod, term: PodAffinityTerm): Term {
  const own = term.namespaces?.length || term.namespaceSelector ? [] : [pod.metadata.namespace ?? ""];
  const labels = pod.metadata.labels ?? {};
  const keys = (list: readonly string[] | undefined, operator: "In" | "NotIn") =>
    (list ?? []).flatMap((key) => {
      const value = labels[key];
      return value === undefined ? [] : [{ key, operator, values: [value] }];
    });
  // The API server folds these into the selector when the pod is created; a term that has them already gains nothing.
  const more = [...keys(term.matchLabelKeys, "In"), ...keys(term.mismatchLabelKeys, "NotIn")];
  const selector = term.labelSelector && {
    ...term.labelSelector,
    matchExpressions: [...(term.labelSelector.matchExpressions ?? []), ...more],
  };
  return {
    topologyKey: term.topologyKey,
    selector,
    namespaces: [...(term.namespaces ?? []), ...own],
    namespaceSelector: term.namespaceSelector,
  };
}
