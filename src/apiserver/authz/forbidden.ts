import { failure, forbidden, type StatusError } from "#kinds";
import type { AuthorizationAttributes } from "../ports.ts";

/** The 403 of a request that is not authorized, in the original's words. */
export function forbiddenRequest(attributes: AuthorizationAttributes, reason: string): StatusError {
  const why = reason ? `${sentence(attributes)}: ${reason}` : sentence(attributes);
  if (!attributes.isResourceRequest) return failure(403, "Forbidden", `forbidden: ${why}`, {});
  return forbidden({ group: attributes.group, resource: attributes.resource }, attributes.name, why);
}

function sentence(attributes: AuthorizationAttributes): string {
  const { user, verb, path, group, resource, subresource, namespace } = attributes;
  const text = !attributes.isResourceRequest
    ? `User ${quote(user.username)} cannot ${verb} path ${quote(path)}`
    : `User ${quote(user.username)} cannot ${verb} resource ${quote(subresource ? `${resource}/${subresource}` : resource)} in API group ${quote(group)} ${
        namespace ? `in the namespace ${quote(namespace)}` : "at the cluster scope"
      }`;
  return text.replace(/[&<>]/g, (char) => ESCAPES[char]!);
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const quote = (text: string) => JSON.stringify(text);
