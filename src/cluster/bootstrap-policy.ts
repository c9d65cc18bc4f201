import { deepEqual, type DeepReadonly } from "#base";
import { AUTOUPDATE, bootstrapPolicy, type Reader, uncovered } from "#apiserver";
import type { Client } from "#client";
import {
  type ClusterRole,
  type ClusterRoleBinding,
  isStatus,
  type Resource,
  type Role,
  type RoleBinding,
  resources,
  type Subject,
} from "#kinds";

/**
 * Makes the roles and bindings that every cluster has and gives back to those that are there what they lack; what was added
 * to them stays, and one whose annotation `rbac.authorization.kubernetes.io/autoupdate` is not "true" is left alone.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#auto-reconciliation
 */
export async function reconcilePolicy(client: Client, reader: Reader): Promise<void> {
  const policy = bootstrapPolicy();
  await Promise.all([
    ...policy.clusterRoles.map((role) => reconcile(resources.clusterRoles, role, mendRole)),
    ...policy.clusterRoleBindings.map((one) => reconcile(resources.clusterRoleBindings, one, mendBinding)),
    ...policy.roles.map((role) => reconcile(resources.roles, role, mendRole)),
    ...policy.roleBindings.map((one) => reconcile(resources.roleBindings, one, mendBinding)),
  ]);

  async function reconcile<T extends Role | ClusterRole | RoleBinding | ClusterRoleBinding>(
    resource: Resource<T>,
    wanted: T,
    mend: (found: DeepReadonly<T>, wanted: T) => T,
  ): Promise<void> {
    const { name, namespace } = wanted.metadata;
    const at = namespace ? { namespace } : {};
    const found = reader.get(resource, namespace, name) as DeepReadonly<T> | undefined;
    if (!found) {
      await client.create(resource, wanted, at).catch((error: unknown) => {
        if (!isStatus(error, "AlreadyExists")) throw error;
      });
      return;
    }
    if (found.metadata.annotations?.[AUTOUPDATE] !== "true") return;
    const mended = mend(found, wanted);
    if (refersElsewhere(found, wanted)) {
      await client.delete(resource, name, at);
      await client.create(resource, wanted, at);
    } else if (!deepEqual(mended, found)) await client.update(resource, mended, at);
  }
}

/** What a binding refers to can't be changed. */
function refersElsewhere(found: object, wanted: object): boolean {
  return "roleRef" in found && "roleRef" in wanted && !deepEqual(found.roleRef, wanted.roleRef);
}

function withMetadata<T extends ClusterRole | ClusterRoleBinding | Role | RoleBinding>(
  found: DeepReadonly<T>,
  wanted: T,
): T {
  const { labels, annotations } = wanted.metadata;
  const metadata = {
    ...found.metadata,
    labels: { ...found.metadata.labels, ...labels },
    annotations: { ...found.metadata.annotations, ...annotations },
  };
  return { ...found, metadata } as T;
}

export function mendRole<T extends ClusterRole | Role>(found: DeepReadonly<T>, wanted: T): T {
  const mended: ClusterRole | Role = withMetadata(found, wanted);
  if ("aggregationRule" in wanted && wanted.aggregationRule) {
    const there = (found as DeepReadonly<ClusterRole>).aggregationRule?.clusterRoleSelectors ?? [];
    const lacking = (wanted.aggregationRule.clusterRoleSelectors ?? []).filter(
      (selector) => !there.some((one) => deepEqual(one, selector)),
    );
    if (lacking.length === 0) return mended as T;
    return { ...mended, aggregationRule: { clusterRoleSelectors: [...there, ...lacking] } } as T;
  }
  if (deepEqual(found.rules, wanted.rules)) return mended as T;
  const lacking = uncovered(found.rules ?? [], wanted.rules ?? []);
  return lacking.length > 0 ? ({ ...mended, rules: [...(found.rules ?? []), ...lacking] } as T) : (mended as T);
}

export function mendBinding<T extends ClusterRoleBinding | RoleBinding>(found: DeepReadonly<T>, wanted: T): T {
  const mended = withMetadata(found, wanted);
  const there = (found.subjects ?? []) as readonly DeepReadonly<Subject>[];
  const lacking = (wanted.subjects ?? []).filter((subject) => !there.some((one) => deepEqual(one, subject)));
  return lacking.length > 0 ? { ...mended, subjects: [...there, ...lacking] } : mended;
}
