import type { Clock } from "#base";
import { type ApiObject, badRequest, type TokenReview, type UserInfo } from "#kinds";
import type { ServiceAccountTokens } from "../authn/service-account-tokens.ts";
import type { VirtualResource } from "../ports.ts";
import { timeOf } from "../verbs/create.ts";

/**
 * Who somebody is: the caller, or the holder of a token.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/authentication/#self-subject-review
 */
export function createIdentityReviews(deps: {
  clock: Clock;
  tokens: Pick<ServiceAccountTokens, "authenticator">;
}): ReadonlyMap<string, VirtualResource> {
  return new Map<string, VirtualResource>([
    [
      "authentication.k8s.io/selfsubjectreviews",
      {
        create: ({ kind, apiVersion }, { user }) => ({
          kind,
          apiVersion,
          metadata: { creationTimestamp: timeOf(deps.clock.now()) } as ApiObject["metadata"],
          status: { userInfo: shown(user) },
        }),
      },
    ],
    [
      "authentication.k8s.io/tokenreviews",
      {
        create(object) {
          const review = object as unknown as TokenReview;
          const { token, audiences = [] } = review.spec ?? {};
          if (!token) throw badRequest("token is required for TokenReview in authentication");
          return { ...object, status: statusOf(token, audiences) };
        },
      },
    ],
  ]);

  function statusOf(token: string, audiences: readonly string[]): object {
    try {
      const found = deps.tokens.authenticator.review(token, audiences);
      if (found) return { authenticated: true, user: shown(found.user), audiences: found.audiences };
      return { user: {}, error: "invalid bearer token" };
    } catch (error) {
      const why = (error as Error).message;
      return { user: {}, error: `[invalid bearer token, ${why}]` };
    }
  }
}

function shown({ username, uid, groups, extra }: UserInfo): object {
  return {
    username,
    ...(uid ? { uid } : {}),
    ...(groups.length > 0 ? { groups } : {}),
    ...(extra && Object.keys(extra).length > 0 ? { extra } : {}),
  };
}
