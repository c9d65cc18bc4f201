import { matchesNodeAffinity, matchesSelector, untoleratedTaint } from "#kinds";
import type { ClusterState } from "../cluster-state.ts";
import type { NodeInfo } from "../node-info.ts";
import type { PodInfo } from "../pod-info.ts";
import { type LabelSelector, type Pod, type Refusal, refuse, type TopologySpreadConstraint } from "../types.ts";

const REASON = "node(s) didn't match pod topology spread constraints";

export interface SpreadCounts {
  readonly constraint: TopologySpreadConstraint;
  readonly selector: LabelSelector | undefined;
  /** Matching pods by topology value, over the nodes that count; values without pods are there with 0. */
  readonly byValue: ReadonlyMap<string, number>;
}

/**
 * Hard spread constraints (`DoNotSchedule`).
 * https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
 */
export function prepareTopologySpread(info: PodInfo, state: ClusterState): (node: NodeInfo) => Refusal | undefined {
  const hard = (info.pod.spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === "DoNotSchedule",
  );
  if (hard.length === 0) return () => undefined;
  const counted = countSpread(info.pod, hard, state.ready());
  const limits = counted.map(({ constraint, selector, byValue }) => {
    const least = byValue.size < (constraint.minDomains ?? 1) ? 0 : Math.min(...byValue.values());
    const self = matchesSelector(selector, info.pod.metadata.labels) ? 1 : 0;
    return { constraint, byValue, most: constraint.maxSkew + least - self };
  });
  return (node) => {
    for (const { constraint, byValue, most } of limits) {
      const value = node.labels[constraint.topologyKey];
      if (value === undefined) return refuse(`${REASON} (missing required label)`, true);
      if ((byValue.get(value) ?? 0) > most) return refuse(REASON);
    }
    return undefined;
  };
}

/** Counts the pods of the same namespace that each constraint selects, over the nodes that its policies let count. */
export function countSpread(
  pod: Pod,
  constraints: readonly TopologySpreadConstraint[],
  nodes: readonly NodeInfo[],
): SpreadCounts[] {
  const eligible = nodes.filter((node) =>
    constraints.every(({ topologyKey }) => node.labels[topologyKey] !== undefined),
  );
  return constraints.map((constraint) => {
    const selector = effectiveSelector(pod, constraint);
    const byValue = new Map<string, number>();
    for (const node of eligible) {
      if (!counts(pod, constraint, node)) continue;
      const value = node.labels[constraint.topologyKey]!;
      byValue.set(value, (byValue.get(value) ?? 0) + matching(pod, selector, node));
    }
    return { constraint, selector, byValue };
  });
}

function counts(pod: Pod, constraint: TopologySpreadConstraint, { node }: NodeInfo): boolean {
  if (!node) return false;
  if (constraint.nodeAffinityPolicy !== "Ignore" && !matchesNodeAffinity(pod, node)) return false;
  return !(
    constraint.nodeTaintsPolicy === "Honor" && untoleratedTaint(pod, node.spec.taints, ["NoSchedule", "NoExecute"])
  );
}

function matching(pod: Pod, selector: LabelSelector | undefined, node: NodeInfo): number {
  let number = 0;
  for (const { pod: other } of node.pods.values()) {
    if (other.metadata.namespace !== pod.metadata.namespace || other.metadata.deletionTimestamp) continue;
    if (matchesSelector(selector, other.metadata.labels)) number++;
  }
  return number;
}

function effectiveSelector(pod: Pod, constraint: TopologySpreadConstraint): LabelSelector | undefined {
  const { labelSelector, matchLabelKeys = [] } = constraint;
  if (!labelSelector || matchLabelKeys.length === 0) return labelSelector;
  const own = matchLabelKeys.flatMap((key) => {
    const value = pod.metadata.labels?.[key];
    return value === undefined ? [] : [{ key, operator: "In", values: [value] }];
  });
  return { ...labelSelector, matchExpressions: [...(labelSelector.matchExpressions ?? []), ...own] };
}
