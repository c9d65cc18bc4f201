import { deepEqual, type DeepReadonly } from "#base";
import { type ClusterRole, forbidden, notFound, type PolicyRule, type RoleBinding, type UserInfo } from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin, AuthorizationAttributes, Authorizer } from "../ports.ts";
import type { RbacAuthorizer } from "./rbac.ts";
import { uncovered } from "./rules.ts";

const GROUP = "rbac.authorization.k8s.io";
const EVERYTHING: readonly PolicyRule[] = [
  { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
  { nonResourceURLs: ["*"], verbs: ["*"] },
];

/**
 * Nobody gives rights that they do not have: writing a role needs all of its rules or the verb `escalate`, writing a binding
 * all of its role's rules or the verb `bind`. Last in the mutating phase, so that it sees what will be written.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
 */
export function createEscalationCheck(deps: {
  rbac: Pick<RbacAuthorizer, "rulesOf" | "rulesOfRole">;
  authorizer: Authorizer;
}): AdmissionPlugin {
  return {
    name: "RBACEscalation",
    handles: ({ kind, operation, subresource, user }) =>
      kind.group === GROUP &&
      (operation === "CREATE" || operation === "UPDATE") &&
      !subresource &&
      !user.groups.includes("system:masters"),
    async admit(attributes) {
      const { object, old, kind } = attributes;
      if (!object || (old && onlyGarbageCollection(object, old))) return;
      if (kind.resource === "roles" || kind.resource === "clusterroles") await checkRole(attributes);
      else await checkBinding(attributes);
    },
  };

  async function checkRole(attributes: AdmissionAttributes): Promise<void> {
    const { kind, object, old, namespace, name, user } = attributes;
    if (await may(attributes, "escalate", kind.resource, name)) return;
    const role = object as unknown as ClusterRole;
    const held = deps.rbac.rulesOf(user, namespace);
    const lacking = uncovered(held.rules, role.rules ?? []);
    if (lacking.length > 0) throw forbidden(kind, name, escalationText(user, lacking, held.errors));
    const aggregates = role.aggregationRule ?? (old as unknown as ClusterRole | undefined)?.aggregationRule;
    if (aggregates && uncovered(held.rules, EVERYTHING).length > 0)
      throw forbidden(kind, name, "must have cluster-admin privileges to use the aggregationRule");
  }

  async function checkBinding(attributes: AdmissionAttributes): Promise<void> {
    const { kind, object, namespace, name, user } = attributes;
    const { roleRef } = object as unknown as RoleBinding;
    const resource = roleRef.kind === "ClusterRole" ? "clusterroles" : "roles";
    if (await may(attributes, "bind", resource, roleRef.name)) return;
    const rules = deps.rbac.rulesOfRole(roleRef.kind, namespace, roleRef.name);
    if (!rules) throw notFound(kind, roleRef.name);
    const held = deps.rbac.rulesOf(user, namespace);
    const lacking = uncovered(held.rules, rules);
    if (lacking.length > 0) throw forbidden(kind, name, escalationText(user, lacking, held.errors));
  }

  async function may(
    { user, namespace }: AdmissionAttributes,
    verb: string,
    resource: string,
    name: string,
  ): Promise<boolean> {
    const asked: AuthorizationAttributes = {
      user,
      verb,
      group: GROUP,
      version: "v1",
      resource,
      subresource: "",
      namespace,
      name,
      isResourceRequest: true,
      path: "",
    };
    return (await deps.authorizer.authorize(asked)).allowed;
  }
}

/** The garbage collector and finalizers must be able to work on every role. */
function onlyGarbageCollection(
  object: NonNullable<AdmissionAttributes["object"]>,
  old: NonNullable<AdmissionAttributes["object"]>,
): boolean {
  const rest = ({ metadata, ...fields }: typeof object) => {
    const { ownerReferences: _o, finalizers: _f, managedFields: _m, resourceVersion: _r, ...others } = metadata;
    return { ...fields, metadata: others };
  };
  const unchanged = deepEqual(object.metadata.ownerReferences, old.metadata.ownerReferences);
  const same = deepEqual(object.metadata.finalizers, old.metadata.finalizers);
  return !(unchanged && same) && deepEqual(rest(object), rest(old));
}

function escalationText(user: UserInfo, lacking: readonly PolicyRule[], errors: readonly string[]): string {
  const groups = `[${user.groups.map((group) => JSON.stringify(group)).join(" ")}]`;
  const rules = merged(lacking).map(ruleText).sort().join("\n");
  const unresolved = errors.length > 0 ? `; resolution errors: [${errors.join(" ")}]` : "";
  return `user ${JSON.stringify(user.username)} (groups=${groups}) is attempting to grant RBAC permissions not currently held:\n${rules}${unresolved}`;
}

/** Pieces about the same resource as one rule with all their verbs. */
function merged(pieces: readonly PolicyRule[]): PolicyRule[] {
  const byTarget = new Map<string, PolicyRule>();
  for (const { verbs, ...target } of pieces) {
    const key = JSON.stringify(target);
    const known = byTarget.get(key);
    if (known && !target.nonResourceURLs) known.verbs.push(...verbs.filter((verb) => !known.verbs.includes(verb)));
    else byTarget.set(target.nonResourceURLs ? `${key} ${verbs.join()}` : key, { ...target, verbs: [...verbs] });
  }
  return [...byTarget.values()];
}

/** `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}` */
function ruleText(rule: DeepReadonly<PolicyRule>): string {
  const parts = [
    ["APIGroups", rule.apiGroups],
    ["Resources", rule.resources],
    ["NonResourceURLs", rule.nonResourceURLs],
    ["ResourceNames", rule.resourceNames],
    ["Verbs", rule.verbs],
  ] as const;
  const shown = parts.flatMap(([name, words]) =>
    words && words.length > 0 ? [`${name}:[${words.map((word) => JSON.stringify(word)).join(" ")}]`] : [],
  );
  return `{${shown.join(", ")}}`;
}
