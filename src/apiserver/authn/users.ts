import type { UserInfo } from "#kinds";

export const ANONYMOUS: UserInfo = { username: "system:anonymous", groups: ["system:unauthenticated"] };

/** Who holds the admin certificate, and whoever can open the local socket. */
export const ADMIN: UserInfo = { username: "kubernetes-admin", groups: ["system:masters", "system:authenticated"] };

/** The API server itself, making what every cluster has. */
export const LOOPBACK: UserInfo = { username: "system:apiserver", groups: ["system:authenticated", "system:masters"] };

/** The node agent of `name`. */
export const nodeUser = (name: string): UserInfo => ({
  username: `system:node:${name}`,
  groups: ["system:nodes", "system:authenticated"],
});

/** `system:kube-scheduler`, `system:kube-controller-manager`, … */
export const componentUser = (name: string): UserInfo => ({
  username: `system:${name}`,
  groups: ["system:authenticated"],
});

const SERVICE_ACCOUNT = "system:serviceaccount:";

/** Namespace and name of a ServiceAccount's user name; undefined for other users. */
export function splitServiceAccount(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT)) return undefined;
  const [namespace, name, ...rest] = username.slice(SERVICE_ACCOUNT.length).split(":");
  return namespace && name && rest.length === 0 ? { namespace, name } : undefined;
}

export const serviceAccountUsername = (namespace: string, name: string): string =>
  `${SERVICE_ACCOUNT}${namespace}:${name}`;

export const serviceAccountGroups = (namespace: string): string[] => [
  "system:serviceaccounts",
  `system:serviceaccounts:${namespace}`,
];

/** A ServiceAccount as its token would show it, for parts inside the process that need no token. */
export const serviceAccountUser = (namespace: string, name: string): UserInfo => ({
  username: serviceAccountUsername(namespace, name),
  groups: [...serviceAccountGroups(namespace), "system:authenticated"],
});
