import type { UserInfo } from "#kinds";

export const ANONYMOUS: UserInfo = { username: "system:anonymous", groups: ["system:unauthenticated"] };

/** Who holds the admin certificate, and whoever can open the local socket. */
export const ADMIN: UserInfo = { username: "kubernetes-admin", groups: ["system:masters", "system:authenticated"] };

/** The process itself: controllers and scheduler inside it. */
export const LOOPBACK: UserInfo = { username: "system:apiserver", groups: ["system:authenticated", "system:masters"] };

/** The node agent of `name`. */
export const nodeUser = (name: string): UserInfo => ({
  username: `system:node:${name}`,
  groups: ["system:nodes", "system:authenticated"],
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
