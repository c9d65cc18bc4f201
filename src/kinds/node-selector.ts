import type { DeepReadonly } from "#base";
import type * as types from "./generated/types.ts";
import { matchesLabels } from "./selector.ts";

type Node = DeepReadonly<types.Node>;
type NodeSelector = DeepReadonly<types.NodeSelector>;
type NodeSelectorTerm = DeepReadonly<types.NodeSelectorTerm>;
type Pod = { readonly spec: DeepReadonly<types.PodSpec> };
type Taint = DeepReadonly<types.Taint>;
type Toleration = DeepReadonly<types.Toleration>;

type Requirement = { readonly key: string; readonly operator: string; readonly values?: readonly string[] };

/** Whether a node satisfies any of the terms; a term with neither expressions nor fields matches nothing. */
export function matchesNodeSelector(selector: NodeSelector, node: Node): boolean {
  return selector.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

export function matchesTerm(term: NodeSelectorTerm, node: Node): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  const labels = node.metadata.labels ?? {};
  const fields: Record<string, string> = { "metadata.name": node.metadata.name };
  return matchExpressions.every((one) => meets(one, labels)) && matchFields.every((one) => meets(one, fields));
}

function meets({ key, operator, values = [] }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = labels[key];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
    case "Lt": {
      if (value === undefined || !/^-?\d+$/.test(value)) return false;
      return operator === "Gt" ? BigInt(value) > BigInt(values[0] ?? 0) : BigInt(value) < BigInt(values[0] ?? 0);
    }
    default:
      return false;
  }
}

/** nodeSelector and required node affinity. */
export function matchesNodeAffinity(pod: Pod, node: Node): boolean {
  if (pod.spec.nodeSelector && !matchesLabels(pod.spec.nodeSelector, node.metadata.labels)) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return !required || matchesNodeSelector(required, node);
}

/** https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/ */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  switch (toleration.operator || "Equal") {
    case "Exists":
      return true;
    case "Equal":
      return (toleration.value ?? "") === (taint.value ?? "");
    default:
      return false;
  }
}

/** The first taint with one of the effects that nothing tolerates. */
export function untoleratedTaint(
  pod: Pod,
  taints: readonly Taint[] | undefined,
  effects: readonly string[],
): Taint | undefined {
  return taints?.find(
    (taint) => effects.includes(taint.effect) && !(pod.spec.tolerations ?? []).some((one) => tolerates(one, taint)),
  );
}
