import { badRequest, type UserInfo } from "#kinds";
import { forbiddenRequest } from "../authz/forbidden.ts";
import type { Credentials } from "../listen/mod.ts";
import type { AuthorizationAttributes, Authorizer } from "../ports.ts";
import { serviceAccountGroups, splitServiceAccount } from "./users.ts";

const EXTRA = "impersonate-extra-";

/** One thing that is asked to be impersonated; each needs its own permission. */
type Wanted = Pick<AuthorizationAttributes, "group" | "version" | "resource" | "subresource" | "namespace" | "name">;

/**
 * The user that the `Impersonate-*` headers name, when `user` may impersonate all of it.
 * @throws StatusError 400 without a user name, 403 when it is not allowed
 * @see https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
 */
export async function impersonate(user: UserInfo, credentials: Credentials, authorizer: Authorizer): Promise<UserInfo> {
  const { headers, values } = credentials;
  const username = headers["impersonate-user"] ?? "";
  const groups = values("impersonate-group");
  const uid = headers["impersonate-uid"] ?? "";
  const extra = extraOf(credentials);
  if (!username) {
    const asked = [...groups, ...Object.values(extra).flat(), uid].filter(Boolean);
    throw badRequest(`requested [${asked.join(" ")}] without impersonating a user name`);
  }
  for (const wanted of wantedOf(username, groups, extra, uid)) {
    const attributes: AuthorizationAttributes = {
      user,
      verb: "impersonate",
      isResourceRequest: true,
      path: "",
      ...wanted,
    };
    const { allowed, reason } = await authorizer.authorize(attributes);
    if (!allowed) throw forbiddenRequest(attributes, reason);
  }
  return {
    username,
    ...(uid ? { uid } : {}),
    groups: groupsOf(username, groups),
    ...(Object.keys(extra).length ? { extra } : {}),
  };
}

function wantedOf(
  username: string,
  groups: readonly string[],
  extra: Record<string, readonly string[]>,
  uid: string,
): Wanted[] {
  const core = { group: "", version: "v1", subresource: "", namespace: "" };
  const authentication = { group: "authentication.k8s.io", version: "v1", subresource: "", namespace: "" };
  const account = splitServiceAccount(username);
  return [
    account ? { ...core, resource: "serviceaccounts", ...account } : { ...core, resource: "users", name: username },
    ...groups.map((name) => ({ ...core, resource: "groups", name })),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((name) => ({ ...authentication, resource: "userextras", subresource: key, name })),
    ),
    ...(uid ? [{ ...authentication, resource: "uids", name: uid }] : []),
  ];
}

function extraOf({ headers, values }: Credentials): Record<string, readonly string[]> {
  const extra: Record<string, readonly string[]> = {};
  for (const name in headers) if (name.startsWith(EXTRA)) extra[unescaped(name.slice(EXTRA.length))] = values(name);
  return extra;
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    // A malformed key is taken as it stands, as the original does.
    return key;
  }
}

/** A ServiceAccount has its groups when none are named; everyone is authenticated but for `system:anonymous`. */
function groupsOf(username: string, asked: readonly string[]): string[] {
  const account = splitServiceAccount(username);
  const groups = asked.length === 0 && account ? serviceAccountGroups(account.namespace) : [...asked];
  if (username === "system:anonymous")
    return groups.includes("system:unauthenticated") ? groups : [...groups, "system:unauthenticated"];
  const known = groups.includes("system:authenticated") || groups.includes("system:unauthenticated");
  return known ? groups : [...groups, "system:authenticated"];
}
