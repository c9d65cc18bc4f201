import type { Authorizer } from "../ports.ts";

/** Members of `system:masters` may do everything, whatever roles say. */
export function createMastersAuthorizer(): Authorizer {
  return { authorize: ({ user }) => (user.groups.includes("system:masters") ? ALLOWED : NO_OPINION) };
}

const ALLOWED = { allowed: true, reason: "" };
const NO_OPINION = { allowed: false, reason: "" };
