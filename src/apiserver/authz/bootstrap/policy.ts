import type { ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding, Role, RoleRef, Subject } from "#kinds";
import { COMPONENT_ROLES } from "./component-roles.ts";
import { CONTROLLER_ROLES } from "./controller-roles.ts";
import { NAMESPACED_ROLES } from "./namespaced-roles.ts";
import { USER_ROLES } from "./user-roles.ts";

const GROUP = "rbac.authorization.k8s.io";
/** An object with this annotation at "true" is brought back to what it should hold at every start. */
export const AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate";
const AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-";
/** Labels of roles that others gather; `view` is part of `edit` is part of `admin`. */
const PART_OF: Readonly<Record<string, string>> = {
  edit: "admin",
  view: "edit",
  "system:aggregate-to-admin": "admin",
  "system:aggregate-to-edit": "edit",
  "system:aggregate-to-view": "view",
};

const metadata = (name: string, namespace?: string, labels: Record<string, string> = {}) => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
  annotations: { [AUTOUPDATE]: "true" },
  labels: { "kubernetes.io/bootstrapping": "rbac-defaults", ...labels },
});
const partOf = (name: string) => (PART_OF[name] ? { [`${AGGREGATE}${PART_OF[name]}`]: "true" } : {});

function clusterRole(name: string, rules: readonly PolicyRule[]): ClusterRole {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: "ClusterRole",
    metadata: metadata(name, undefined, partOf(name)),
    rules: [...rules],
  };
}

/** Its rules are the aggregation controller's to fill. */
function aggregated(name: string): ClusterRole {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: "ClusterRole",
    metadata: metadata(name, undefined, partOf(name)),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [`${AGGREGATE}${name}`]: "true" } }] },
  };
}

const group = (name: string): Subject => ({ apiGroup: GROUP, kind: "Group", name });
const user = (name: string): Subject => ({ apiGroup: GROUP, kind: "User", name });
const account = (name: string): Subject => ({ kind: "ServiceAccount", name, namespace: "kube-system" });
const roleRef = (kind: "ClusterRole" | "Role", name: string): RoleRef => ({ apiGroup: GROUP, kind, name });

const SUBJECTS: Readonly<Record<string, readonly Subject[]>> = {
  "cluster-admin": [group("system:masters")],
  "system:basic-user": [group("system:authenticated")],
  "system:discovery": [group("system:authenticated")],
  "system:kube-controller-manager": [user("system:kube-controller-manager")],
  "system:kube-dns": [account("kube-dns")],
  "system:kube-scheduler": [user("system:kube-scheduler")],
  "system:monitoring": [group("system:monitoring")],
  // nodes have their rights from the node authorizer
  "system:node": [],
  "system:node-proxier": [user("system:kube-proxy")],
  "system:public-info-viewer": [group("system:authenticated"), group("system:unauthenticated")],
  "system:service-account-issuer-discovery": [group("system:serviceaccounts")],
  "system:volume-scheduler": [user("system:kube-scheduler")],
};

function clusterRoleBinding(name: string, subjects: readonly Subject[]): ClusterRoleBinding {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: "ClusterRoleBinding",
    metadata: metadata(name),
    roleRef: roleRef("ClusterRole", name),
    ...(subjects.length > 0 ? { subjects: [...subjects] } : {}),
  };
}

function roleBinding(namespace: string, name: string, role: string, subjects: readonly Subject[]): RoleBinding {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: "RoleBinding",
    metadata: metadata(name, namespace),
    roleRef: roleRef("Role", role),
    subjects: [...subjects],
  };
}

const CONTROLLER = "system:controller:";

/** The roles and bindings that every cluster has. */
export interface BootstrapPolicy {
  readonly clusterRoles: readonly ClusterRole[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
  readonly roles: readonly Role[];
  readonly roleBindings: readonly RoleBinding[];
}

/** As kube-apiserver v1.36 makes them at its start. */
export function bootstrapPolicy(): BootstrapPolicy {
  const controllers = Object.entries(CONTROLLER_ROLES);
  const leader = (component: string) => [user(`system:${component}`), account(component)];
  return {
    clusterRoles: [
      ...["admin", "edit", "view"].map(aggregated),
      ...Object.entries({ ...USER_ROLES, ...COMPONENT_ROLES }).map(([name, rules]) => clusterRole(name, rules)),
      ...controllers.map(([name, rules]) => clusterRole(CONTROLLER + name, rules)),
    ],
    clusterRoleBindings: [
      ...Object.entries(SUBJECTS).map(([name, subjects]) => clusterRoleBinding(name, subjects)),
      ...controllers.map(([name]) => clusterRoleBinding(CONTROLLER + name, [account(name)])),
    ],
    roles: Object.entries(NAMESPACED_ROLES).map(([key, rules]) => {
      const [namespace = "", name = ""] = key.split("/");
      return { apiVersion: `${GROUP}/v1`, kind: "Role", metadata: metadata(name, namespace), rules: [...rules] };
    }),
    roleBindings: [
      roleBinding("kube-public", `${CONTROLLER}bootstrap-signer`, `${CONTROLLER}bootstrap-signer`, [
        account("bootstrap-signer"),
      ]),
      ...["bootstrap-signer", "cloud-provider", "token-cleaner"].map((name) =>
        roleBinding("kube-system", CONTROLLER + name, CONTROLLER + name, [account(name)]),
      ),
      roleBinding(
        "kube-system",
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        [user("system:kube-controller-manager"), user("system:kube-scheduler")],
      ),
      roleBinding(
        "kube-system",
        "system::leader-locking-kube-controller-manager",
        "system::leader-locking-kube-controller-manager",
        [...leader("kube-controller-manager"), account("leader-election-controller")],
      ),
      roleBinding(
        "kube-system",
        "system::leader-locking-kube-scheduler",
        "system::leader-locking-kube-scheduler",
        leader("kube-scheduler"),
      ),
    ],
  };
}
