import type { Clock, DeepReadonly } from "#base";
import type { Client } from "#client";
import { messageOf } from "#base";
import type { Pod, Resource, TokenRequest } from "#kinds";

/** Service account tokens bound to pods, asked for once and renewed in time. */
export interface TokenManager {
  /**
   * A valid token. When a new one cannot be had, the old one serves until it expires.
   *
   * @throws Error `failed to fetch token: …`, `token … expired and refresh failed: …`
   */
  token(
    pod: DeepReadonly<Pod>,
    request: { audience?: string; expirationSeconds?: number },
  ): Promise<ServiceAccountToken>;
  /** Forgets the tokens of a pod. */
  forget(podUid: string): void;
}

export interface ServiceAccountToken {
  readonly token: string;
  /** When a new one is due: after 80 % of its life or 24 hours. Milliseconds since the epoch. */
  readonly renewAt: number;
}

const DAY = 24 * 3600_000;
const DEFAULT_SECONDS = 3600;
/** The `token` subresource takes and gives another kind than its parent. */
const TOKENS: Resource<TokenRequest> = {
  group: "",
  version: "v1",
  resource: "serviceaccounts",
  kind: "TokenRequest",
  namespaced: true,
};

export function createTokenManager(deps: { client: Client; clock: Clock }): TokenManager {
  const { client, clock } = deps;
  const known = new Map<string, ServiceAccountToken & { expiresAt: number; podUid: string }>();
  return {
    async token(pod, { audience, expirationSeconds = DEFAULT_SECONDS }) {
      const { uid = "", namespace = "" } = pod.metadata;
      const account = pod.spec.serviceAccountName || "default";
      const key = JSON.stringify([uid, account, audience ?? "", expirationSeconds]);
      const held = known.get(key);
      if (held && clock.now() < held.renewAt) return held;
      try {
        const fresh = await request(client, pod, account, audience, expirationSeconds);
        known.set(key, { ...fresh, podUid: uid });
        return fresh;
      } catch (error) {
        if (!held) throw new Error(`failed to fetch token: ${messageOf(error)}`, { cause: error });
        if (clock.now() < held.expiresAt) return { ...held, renewAt: clock.now() + 10_000 };
        throw new Error(`token of ${namespace}/${account} expired and refresh failed: ${messageOf(error)}`, {
          cause: error,
        });
      }
    },
    forget(podUid) {
      for (const [key, entry] of known) if (entry.podUid === podUid) known.delete(key);
    },
  };
}

async function request(
  client: Client,
  pod: DeepReadonly<Pod>,
  account: string,
  audience: string | undefined,
  expirationSeconds: number,
): Promise<ServiceAccountToken & { expiresAt: number }> {
  const { name = "", uid = "", namespace = "" } = pod.metadata;
  const answer = await client.create<TokenRequest>(
    TOKENS,
    {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      metadata: { name: account, namespace },
      spec: {
        ...(audience ? { audiences: [audience] } : {}),
        expirationSeconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
      },
    },
    { namespace, name: account, subresource: "token" },
  );
  const { token, expirationTimestamp } = answer.status ?? {};
  if (!token || !expirationTimestamp) throw new Error("the API server's answer holds no token");
  const expiresAt = Date.parse(expirationTimestamp);
  const life = (answer.spec.expirationSeconds ?? expirationSeconds) * 1000;
  return { token, expiresAt, renewAt: Math.min(expiresAt - life * 0.2, expiresAt - life + DAY) };
}
