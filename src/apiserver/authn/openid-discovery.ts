import type { Route } from "../server.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";

/**
 * Tells others how to check ServiceAccount tokens.
 * @see https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#serviceaccount-token-issuer-discovery
 */
export function createOpenIDDiscovery(
  tokens: Pick<ServiceAccountTokens, "issuer" | "jwks">,
  { serverAddress }: { serverAddress(): string },
): Route {
  const answer = (object: object, contentType: string) => ({
    code: 200,
    headers: { "cache-control": "public, max-age=3600" },
    body: { kind: "bytes" as const, bytes: Buffer.from(JSON.stringify(object)), contentType },
  });
  return {
    handle({ path, method }) {
      if (method !== "GET" && method !== "HEAD") return undefined;
      if (path === "/openid/v1/jwks") return answer(tokens.jwks, "application/jwk-set+json");
      if (path !== "/.well-known/openid-configuration") return undefined;
      return answer(
        {
          issuer: tokens.issuer,
          jwks_uri: `https://${serverAddress()}/openid/v1/jwks`,
          response_types_supported: ["id_token"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["ES256"],
        },
        "application/json",
      );
    },
  };
}
