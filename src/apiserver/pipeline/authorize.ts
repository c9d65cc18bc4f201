import type { UserInfo } from "#kinds";
import { forbiddenRequest } from "../authz/mod.ts";
import type { AuthorizationAttributes, Authorizer, RequestInfo } from "../ports.ts";

export function attributesOf(user: UserInfo, info: RequestInfo): AuthorizationAttributes {
  const { verb, group, version, resource, subresource, namespace, name, isResourceRequest, path } = info;
  return { user, verb, group, version, resource, subresource, namespace, name, isResourceRequest, path };
}

/** @throws StatusError 403 */
export function authorize(authorizer: Authorizer, user: UserInfo, info: RequestInfo): Promise<void> | undefined {
  const attributes = attributesOf(user, info);
  const decision = authorizer.authorize(attributes);
  if (decision instanceof Promise) {
    return decision.then((later) => {
      if (!later.allowed) throw forbiddenRequest(attributes, later.reason);
    });
  }
  if (!decision.allowed) throw forbiddenRequest(attributes, decision.reason);
  return undefined;
}
