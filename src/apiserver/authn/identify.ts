import { unauthorized, type UserInfo } from "#kinds";
import type { Authorizer } from "../ports.ts";
import type { Credentials } from "../listen/mod.ts";
import { impersonate } from "./impersonation.ts";
import { ANONYMOUS } from "./users.ts";

/** Who holds a bearer token; undefined = not a token of this kind. @throws Error for a bad one */
export interface TokenAuthenticator {
  authenticate(token: string): UserInfo | undefined;
}

export interface IdentifyDeps {
  readonly tokens: readonly TokenAuthenticator[];
  readonly authorizer: Authorizer;
}

/**
 * Who sends a request: client certificate, then bearer token, then what the transport vouches for, else
 * `system:anonymous`; then impersonation. A client certificate's common name is the user, its organizations are the groups.
 * @throws StatusError 401 for bad credentials, 403 for impersonation that is not allowed
 * @see https://kubernetes.io/docs/reference/access-authn-authz/authentication/
 */
export function createIdentify({
  tokens,
  authorizer,
}: IdentifyDeps): (credentials: Credentials) => Promise<UserInfo> | UserInfo {
  const byCertificate = new WeakMap<object, UserInfo>();
  const byPeer = (peer: Credentials["peer"]): UserInfo | undefined => {
    const certificate = peer.clientCertificate;
    if (!certificate) return undefined;
    let user = byCertificate.get(certificate);
    if (!user) {
      if (!certificate.commonName) throw unauthorized();
      const { commonName, organizations, fingerprint } = certificate;
      user = {
        username: commonName,
        groups: [...organizations, "system:authenticated"],
        ...(fingerprint
          ? { extra: { "authentication.kubernetes.io/credential-id": [`X509SHA256=${fingerprint}`] } }
          : {}),
      };
      byCertificate.set(certificate, user);
    }
    return user;
  };
  return (credentials) => {
    const { headers, peer } = credentials;
    const user = byPeer(peer) ?? byToken(headers.authorization, tokens) ?? otherwise(peer);
    if (headers["impersonate-user"] === undefined && !asksToImpersonate(headers)) return user;
    return impersonate(user, credentials, authorizer);
  };
}

function otherwise(peer: Credentials["peer"]): UserInfo {
  if (peer.badCertificate) throw unauthorized();
  return peer.user ?? ANONYMOUS;
}

function byToken(header: string | undefined, tokens: readonly TokenAuthenticator[]): UserInfo | undefined {
  if (header === undefined) return undefined;
  const [scheme = "", token = ""] = header.trim().split(/\s+/, 2);
  if (scheme.toLowerCase() !== "bearer" || !token) return undefined;
  for (const authenticator of tokens) {
    const user = verified(authenticator, token);
    if (user) return user;
  }
  throw unauthorized();
}

/** Why a token is bad is not told to who holds it. */
function verified(authenticator: TokenAuthenticator, token: string): UserInfo | undefined {
  try {
    return authenticator.authenticate(token);
  } catch (cause) {
    throw Object.assign(unauthorized(), { cause });
  }
}

function asksToImpersonate(headers: Credentials["headers"]): boolean {
  for (const name in headers) if (name.startsWith("impersonate-")) return true;
  return false;
}
