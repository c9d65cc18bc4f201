import type { DeepReadonly } from "#base";
import type { KindInfo, RuleWithOperations } from "#kinds";
import type { AdmissionAttributes } from "../../ports.ts";

export type Rule = DeepReadonly<RuleWithOperations>;

/** What rules look at: the same for every call of one operation on one resource. */
export interface Place {
  readonly kind: KindInfo;
  readonly subresource: string;
  readonly operation: AdmissionAttributes["operation"];
}

const has = (items: readonly string[] | undefined, wanted: string): boolean =>
  items?.some((item) => item === "*" || item === wanted) ?? false;

/** https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules */
export function ruleMatches(rule: Rule, { kind, subresource, operation }: Place): boolean {
  // a Namespace counts as no part of itself
  if (rule.scope === "Namespaced" && !kind.namespaced) return false;
  if (rule.scope === "Cluster" && kind.namespaced) return false;
  if (!has(rule.operations, operation) || !has(rule.apiGroups, kind.group) || !has(rule.apiVersions, kind.version))
    return false;
  return (rule.resources ?? []).some((text) => {
    const slash = text.indexOf("/");
    const resource = slash < 0 ? text : text.slice(0, slash);
    const sub = slash < 0 ? "" : text.slice(slash + 1);
    return (resource === "*" || resource === kind.resource) && (sub === "*" || sub === subresource);
  });
}

const CONFIGURATION = new Set([
  "mutatingwebhookconfigurations",
  "validatingwebhookconfigurations",
  "validatingadmissionpolicies",
  "validatingadmissionpolicybindings",
  "mutatingadmissionpolicies",
  "mutatingadmissionpolicybindings",
]);

/** Objects that configure admission never meet it, so that a broken one can be mended. */
export const isExempt = ({ group, resource }: KindInfo): boolean =>
  group === "admissionregistration.k8s.io" && CONFIGURATION.has(resource);
