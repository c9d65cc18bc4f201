import type { DeepReadonly } from "#base";
import type { NodeSelector, NodeSelectorRequirement } from "#kinds";

/** Whether a node is among those that a selector names: any of its terms, each with all of its requirements. */
export function nodeMatches(
  selector: DeepReadonly<NodeSelector>,
  node: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
): boolean {
  return selector.nodeSelectorTerms.some(({ matchExpressions = [], matchFields = [] }) => {
    // A term without requirements selects nothing.
    if (matchExpressions.length + matchFields.length === 0) return false;
    return (
      matchExpressions.every((requirement) => holds(requirement, node.labels[requirement.key])) &&
      matchFields.every((requirement) => requirement.key === "metadata.name" && holds(requirement, node.name))
    );
  });
}

function holds({ operator, values = [] }: DeepReadonly<NodeSelectorRequirement>, value: string | undefined): boolean {
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
      return Number(value) > Number(values[0]);
    case "Lt":
      return Number(value) < Number(values[0]);
    default:
      return false;
  }
}
