import type { Authorizer } from "../ports.ts";

/** Members of `system:masters` may do everything; asks `next` for all others. */
export function createMastersAuthorizer(next?: Authorizer): Authorizer {
  return {
    authorize(attributes) {
      if (attributes.user.groups.includes("system:masters")) return ALLOWED;
      return next ? next.authorize(attributes) : DENIED;
    },
  };
}

const ALLOWED = { allowed: true, reason: "" };
const DENIED = { allowed: false, reason: "" };
