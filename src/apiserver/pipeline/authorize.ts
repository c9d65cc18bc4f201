import type { UserInfo } from "#kinds";
import { forbiddenRequest, selectedValue } from "../authz/mod.ts";
import type { AuthorizationAttributes, Authorizer, RequestInfo } from "../ports.ts";

const COLLECTION_VERBS = new Set(["list", "watch", "deletecollection"]);

export function attributesOf(user: UserInfo, info: RequestInfo): AuthorizationAttributes {
  const { verb, group, version, resource, subresource, namespace, isResourceRequest, path, fieldSelector } = info;
  // who may see one object may also list and watch just that one
  const name =
    info.name || (fieldSelector && COLLECTION_VERBS.has(verb) && selectedValue(fieldSelector, "metadata.name")) || "";
  const attributes = { user, verb, group, version, resource, subresource, namespace, name, isResourceRequest, path };
  return fieldSelector ? { ...attributes, fieldSelector } : attributes;
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
