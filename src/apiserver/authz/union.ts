import type { Authorizer } from "../ports.ts";

/** Asks one after the other until one allows; the reasons of those that did not stand one a line, as the original joins them. */
export function createUnionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  return {
    authorize(attributes) {
      const reasons: string[] = [];
      for (const [index, authorizer] of authorizers.entries()) {
        const decision = authorizer.authorize(attributes);
        if (decision instanceof Promise) return later(decision, authorizers.slice(index + 1), attributes, reasons);
        if (decision.allowed) return decision;
        if (decision.reason) reasons.push(decision.reason);
      }
      return { allowed: false, reason: reasons.join("\n") };
    },
  };
}

async function later(
  first: Promise<{ allowed: boolean; reason: string }>,
  rest: readonly Authorizer[],
  attributes: Parameters<Authorizer["authorize"]>[0],
  reasons: string[],
): Promise<{ allowed: boolean; reason: string }> {
  const decision = await first;
  if (decision.allowed) return decision;
  if (decision.reason) reasons.push(decision.reason);
  const other = await createUnionAuthorizer(rest).authorize(attributes);
  return other.allowed ? other : { allowed: false, reason: [...reasons, other.reason].filter(Boolean).join("\n") };
}
