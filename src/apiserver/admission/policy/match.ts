import type { DeepReadonly } from "#base";
import type { MatchResources } from "#kinds";
import type { AdmissionAttributes, Reader } from "../../ports.ts";
import { type Place, type Rule, ruleMatches } from "../match/rules.ts";
import { selectorsMatch } from "../match/selectors.ts";

export type Constraints = DeepReadonly<MatchResources>;
type NamedRule = Rule & { readonly resourceNames?: readonly string[] };

/** What of `matchConstraints` is the same for every call at a place. */
export function coversPlace({ resourceRules, excludeResourceRules }: Constraints, place: Place): boolean {
  if (excludeResourceRules?.some((rule) => !named(rule) && ruleMatches(rule, place))) return false;
  return resourceRules?.some((rule) => ruleMatches(rule, place)) ?? false;
}

/** The rest: names, selectors. Constraints without rules (of a binding) take whatever its policy takes. */
export function matchesCall(
  constraints: Constraints | undefined,
  place: Place,
  attributes: AdmissionAttributes,
  reader: Reader,
): boolean {
  if (!constraints) return true;
  const { resourceRules = [], excludeResourceRules = [] } = constraints;
  const matches = (rule: NamedRule) =>
    ruleMatches(rule, place) && (!named(rule) || rule.resourceNames!.includes(attributes.name));
  if (excludeResourceRules.some(matches)) return false;
  if (resourceRules.length > 0 && !resourceRules.some(matches)) return false;
  return selectorsMatch(constraints, attributes, reader);
}

const named = ({ resourceNames }: NamedRule) => (resourceNames?.length ?? 0) > 0;
