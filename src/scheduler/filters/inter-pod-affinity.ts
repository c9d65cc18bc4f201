import { matchesSelector } from "#kinds";
import type { ClusterState } from "../cluster-state.ts";
import type { NodeInfo } from "../node-info.ts";
import type { PodInfo, Term } from "../pod-info.ts";
import { type Pod, type Refusal, refuse } from "../types.ts";

/** Labels of a namespace, for namespaceSelector. */
export type NamespaceLabels = (namespace: string) => Readonly<Record<string, string>> | undefined;

export function termMatches(term: Term, pod: Pod, namespaceLabels: NamespaceLabels): boolean {
  const namespace = pod.metadata.namespace ?? "";
  const inside =
    term.namespaces.includes(namespace) ||
    (term.namespaceSelector !== undefined && matchesSelector(term.namespaceSelector, namespaceLabels(namespace)));
  return inside && matchesSelector(term.selector, pod.metadata.labels);
}

/** Numbers of matching pods by the value of a topology label. */
type Counts = Map<string, number>;

const count = (counts: Counts, value: string | undefined) => {
  if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
};

/**
 * Required pod affinity and anti-affinity, the incoming pod's own and that of pods already there. Walks over pods only
 * where terms exist that could match.
 * https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
 */
export function prepareInterPodAffinity(
  info: PodInfo,
  state: ClusterState,
  namespaceLabels: NamespaceLabels,
): (node: NodeInfo) => Refusal | undefined {
  const existing = existingAntiAffinity(info, state, namespaceLabels);
  const { requiredAffinity, requiredAntiAffinity } = info;
  const affinity: Counts[] = requiredAffinity.map(() => new Map());
  const anti: Counts[] = requiredAntiAffinity.map(() => new Map());
  if (requiredAffinity.length || requiredAntiAffinity.length) {
    for (const node of state.ready()) {
      for (const other of node.pods.values()) {
        if (
          requiredAffinity.length &&
          requiredAffinity.every((term) => termMatches(term, other.pod, namespaceLabels))
        ) {
          for (const [i, term] of requiredAffinity.entries()) count(affinity[i]!, node.labels[term.topologyKey]);
        }
        requiredAntiAffinity.forEach((term, i) => {
          if (termMatches(term, other.pod, namespaceLabels)) count(anti[i]!, node.labels[term.topologyKey]);
        });
      }
    }
  }
  // The first pod of a group that wants to be together may go anywhere, when it would match itself.
  const first =
    affinity.every((counts) => counts.size === 0) &&
    requiredAffinity.every((term) => termMatches(term, info.pod, namespaceLabels));
  return (node) => {
    for (const [i, term] of requiredAffinity.entries()) {
      const value = node.labels[term.topologyKey];
      if (value === undefined || !(first || affinity[i]!.has(value))) {
        return refuse("node(s) didn't match pod affinity rules", true);
      }
    }
    for (const [i, term] of requiredAntiAffinity.entries()) {
      const value = node.labels[term.topologyKey];
      if (value !== undefined && anti[i]!.has(value)) return refuse("node(s) didn't match pod anti-affinity rules");
    }
    for (const [key, values] of existing) {
      const value = node.labels[key];
      if (value !== undefined && values.has(value))
        return refuse("node(s) didn't satisfy existing pods anti-affinity rules");
    }
    return undefined;
  };
}

function existingAntiAffinity(
  info: PodInfo,
  state: ClusterState,
  namespaceLabels: NamespaceLabels,
): Map<string, Set<string>> {
  const result = new Map<string, Set<string>>();
  if (!state.hasAntiAffinity) return result;
  for (const node of state.ready()) {
    for (const other of node.withAntiAffinity.values()) {
      for (const term of other.requiredAntiAffinity) {
        const value = node.labels[term.topologyKey];
        if (value === undefined || !termMatches(term, info.pod, namespaceLabels)) continue;
        const values = result.get(term.topologyKey) ?? new Set();
        values.add(value);
        result.set(term.topologyKey, values);
      }
    }
  }
  return result;
}
