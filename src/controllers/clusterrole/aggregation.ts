import { type DeepReadonly, deepEqual } from "#base";
import { type ClusterRole, matchesSelector, type PolicyRule, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache } from "../runtime/objects.ts";

type Role = DeepReadonly<ClusterRole>;

/** Fills aggregated ClusterRoles from those that they select. https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles */
export function createClusterRoleAggregation(deps: ControllerDeps): Controller {
  const roles = deps.informers.for(resources.clusterRoles);
  return createController(deps, {
    name: "clusterrole-aggregation",
    watch({ on, enqueue }) {
      const all = () => {
        for (const role of roles.list()) if (role.aggregationRule) enqueue(role.metadata.name);
      };
      on(roles, { add: all, update: all, delete: all });
    },
    async reconcile(name) {
      const role = fromCache(roles, name);
      if (!role?.aggregationRule) return;
      const rules = aggregate(role, roles.list());
      if (deepEqual(rules, role.rules ?? [])) return;
      await deps.client.update(resources.clusterRoles, {
        ...copyOf(resources.clusterRoles, role),
        rules: rules as PolicyRule[],
      });
    },
  });
}

/** The rules of all selected roles, by name, each once. */
export function aggregate(role: Role, all: readonly Role[]): DeepReadonly<PolicyRule>[] {
  const result: DeepReadonly<PolicyRule>[] = [];
  for (const selector of role.aggregationRule?.clusterRoleSelectors ?? []) {
    const selected = all.filter(
      ({ metadata }) => metadata.name !== role.metadata.name && matchesSelector(selector, metadata.labels),
    );
    for (const { rules } of selected.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
      for (const rule of rules ?? []) if (!result.some((one) => deepEqual(one, rule))) result.push(rule);
    }
  }
  return result;
}
