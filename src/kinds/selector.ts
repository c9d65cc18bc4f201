import type { DeepReadonly } from "#base";
import type { LabelSelector } from "./generated/types.ts";

type Labels = Readonly<Record<string, string>> | undefined;

/**
 * Whether labels satisfy a meta/v1 LabelSelector. An absent selector matches nothing, an empty one everything.
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
 */
export function matchesSelector(selector: DeepReadonly<LabelSelector> | undefined, labels: Labels): boolean {
  if (!selector) return false;
  if (!matchesLabels(selector.matchLabels, labels)) return false;
  return (selector.matchExpressions ?? []).every((term) => {
    const value = labels && Object.hasOwn(labels, term.key) ? labels[term.key] : undefined;
    switch (term.operator) {
      case "In":
        return value !== undefined && (term.values ?? []).includes(value);
      case "NotIn":
        return value === undefined || !(term.values ?? []).includes(value);
      case "Exists":
        return value !== undefined;
      case "DoesNotExist":
        return value === undefined;
      default:
        return false;
    }
  });
}

/** Whether labels hold every pair of `wanted` (a Service's or ReplicationController's selector); absent = everything. */
export function matchesLabels(wanted: Labels, labels: Labels): boolean {
  for (const key in wanted) if (labels?.[key] !== wanted[key]) return false;
  return true;
}

/** True when a selector selects everything or is absent: no labels and no expressions. */
export function isEmptySelector(selector: DeepReadonly<LabelSelector> | undefined): boolean {
  return Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0;
}

/** The selector in the text form of list queries and Scale.status.selector: `a=b,c in (d,e),!f`. */
export function formatSelector(selector: DeepReadonly<LabelSelector>): string {
  const pairs = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => ({ key, text: `${key}=${value}` }));
  const terms = (selector.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    const list = [...values].sort().join(",");
    if (operator === "In") return { key, text: `${key} in (${list})` };
    if (operator === "NotIn") return { key, text: `${key} notin (${list})` };
    return { key, text: operator === "Exists" ? key : `!${key}` };
  });
  return [...pairs, ...terms]
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ text }) => text)
    .join(",");
}
