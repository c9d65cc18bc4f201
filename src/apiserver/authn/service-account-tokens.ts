import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import type { Clock, Random } from "#base";
import {
  type ApiObject,
  badRequest,
  conflict,
  fieldError,
  invalid,
  notFound,
  type Resource,
  resources,
  type UserInfo,
} from "#kinds";
import type { Reader, VirtualResource } from "../ports.ts";
import { timeOf } from "../verbs/create.ts";
import type { TokenAuthenticator } from "./identify.ts";
import { serviceAccountGroups, serviceAccountUsername } from "./users.ts";

export const ISSUER = "https://kubernetes.default.svc.cluster.local";

/** Tokens for audiences of the API server that are asked for with the hour and seven seconds of projected volumes live this long. */
const EXTENDED = 365 * 24 * 3600;
const DEFAULT_SECONDS = 3600;
const MIN_SECONDS = 600;
const MAX_SECONDS = 2 ** 32;
const CACHED = 1000;

/** Claims of a ServiceAccount token. */
interface Claims {
  aud: string[];
  exp: number;
  iat: number;
  iss: string;
  jti: string;
  nbf: number;
  sub: string;
  "kubernetes.io": {
    namespace: string;
    serviceaccount: Named;
    pod?: Named;
    secret?: Named;
    node?: Named;
    warnafter?: number;
  };
}
const LEGACY_ISSUER = "kubernetes/serviceaccount";
/** Claims of a token that a Secret holds. */
type LegacyClaims = { readonly iss: typeof LEGACY_ISSUER } & Readonly<Record<string, string>>;

interface Named {
  name: string;
  uid: string;
}

interface TokenRequest extends ApiObject {
  spec: {
    audiences?: string[];
    expirationSeconds?: number;
    boundObjectRef?: { kind?: string; apiVersion?: string; name?: string; uid?: string };
  };
}

export interface ServiceAccountTokens {
  /** `serviceaccounts/token`. */
  readonly tokenRequests: VirtualResource;
  readonly authenticator: TokenAuthenticator & {
    /** Verified claims and user; undefined = not one of ours. @throws Error for a bad one */
    review(token: string, audiences: readonly string[]): { user: UserInfo; audiences: readonly string[] } | undefined;
  };
  readonly issuer: string;
  /** A token for a Secret of type `kubernetes.io/service-account-token`: without an end, good while that Secret holds it. */
  legacyToken(account: { namespace: string; name: string; uid: string; secret: string }): string;
  /** The public key as JWKS, for `/openid/v1/jwks`. */
  readonly jwks: { keys: object[] };
}

/**
 * Issues and checks ServiceAccount tokens: JWTs (ES256), bound to objects that must still be there.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/
 */
export function createServiceAccountTokens(
  deps: { reader: Reader; clock: Clock; random: Random },
  options: { key: string; issuer?: string; audiences?: readonly string[] },
): ServiceAccountTokens {
  const issuer = options.issuer ?? ISSUER;
  const own = options.audiences ?? [issuer];
  const privateKey = createPrivateKey(options.key);
  const publicKey = createPublicKey(privateKey);
  const jwk = publicKey.export({ format: "jwk" });
  const kid = createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("base64url");
  const verified = new Map<string, Claims | LegacyClaims>();

  const check = (token: string, audiences: readonly string[]) => {
    let claims = verified.get(token);
    if (!claims) {
      claims = verifyToken(token, publicKey, issuer);
      if (!claims) return undefined;
      if (verified.size >= CACHED) verified.clear();
      verified.set(token, claims);
    }
    const now = deps.clock.now() / 1000;
    if (isLegacy(claims)) {
      const shared = own.filter((audience) => audiences.includes(audience));
      return shared.length > 0 ? { user: legacyUser(claims, token, deps.reader), audiences: shared } : undefined;
    }
    if (claims.exp < now || claims.nbf > now + 60) throw new Error("token is expired or not yet valid");
    const shared = claims.aud.filter((audience) => audiences.includes(audience));
    if (shared.length === 0)
      throw new Error(
        `token audiences ${JSON.stringify(claims.aud)} is invalid for the target audiences ${JSON.stringify(audiences)}`,
      );
    return { user: userOf(claims, deps.reader), audiences: shared };
  };

  return {
    issuer,
    legacyToken: ({ namespace, name, uid, secret }) =>
      signToken(
        {
          iss: LEGACY_ISSUER,
          [`${LEGACY_ISSUER}/namespace`]: namespace,
          [`${LEGACY_ISSUER}/secret.name`]: secret,
          [`${LEGACY_ISSUER}/service-account.name`]: name,
          [`${LEGACY_ISSUER}/service-account.uid`]: uid,
          sub: serviceAccountUsername(namespace, name),
        },
        privateKey,
        kid,
      ),
    jwks: { keys: [{ ...jwk, use: "sig", alg: "ES256", kid }] },
    authenticator: {
      authenticate: (token) => check(token, own)?.user,
      review: (token, audiences) => check(token, audiences.length > 0 ? audiences : own),
    },
    tokenRequests: {
      create(object, { namespace, name, parent }) {
        const request = object as TokenRequest;
        const spec = request.spec ?? {};
        const audiences = spec.audiences?.length ? spec.audiences : [...own];
        const asked = spec.expirationSeconds ?? DEFAULT_SECONDS;
        const errors = [];
        if (asked < MIN_SECONDS)
          errors.push(
            fieldError.invalid("spec.expirationSeconds", asked, "may not specify a duration less than 10 minutes"),
          );
        if (asked > MAX_SECONDS)
          errors.push(
            fieldError.invalid("spec.expirationSeconds", asked, "may not specify a duration larger than 2^32 seconds"),
          );
        if (errors.length > 0) throw invalid({ group: "authentication.k8s.io", kind: "TokenRequest" }, "", errors);
        const bound = spec.boundObjectRef ? boundTo(spec.boundObjectRef, namespace, name, deps.reader) : {};
        const iat = Math.floor(deps.clock.now() / 1000);
        // clients older than rotation keep a projected token for long: it outlives its told end, and use after that is known by `warnafter`
        const extended =
          asked === 3607 && bound.pod !== undefined && audiences.every((audience) => own.includes(audience));
        const claims: Claims = {
          aud: [...audiences],
          exp: iat + (extended ? EXTENDED : asked),
          iat,
          iss: issuer,
          jti: deps.random.uuid(),
          "kubernetes.io": {
            namespace,
            serviceaccount: { name, uid: parent?.metadata.uid ?? "" },
            ...bound,
            ...(extended ? { warnafter: iat + asked } : {}),
          },
          nbf: iat,
          sub: serviceAccountUsername(namespace, name),
        };
        const token = signToken(claims, privateKey, kid);
        return {
          kind: "TokenRequest",
          apiVersion: "authentication.k8s.io/v1",
          metadata: { name, namespace, creationTimestamp: timeOf(deps.clock.now()) },
          spec: { ...spec, audiences, expirationSeconds: asked },
          status: { token, expirationTimestamp: timeOf((iat + asked) * 1000) },
        };
      },
    },
  };
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

function signToken(claims: object, key: KeyObject, kid: string): string {
  const head = `${part({ alg: "ES256", kid })}.${part(claims)}`;
  return `${head}.${sign("sha256", Buffer.from(head), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

/** Undefined for tokens of another issuer. @throws Error */
function verifyToken(token: string, key: KeyObject, issuer: string): Claims | LegacyClaims | undefined {
  const [head = "", body = "", signature = "", ...rest] = token.split(".");
  if (!signature || rest.length > 0) return undefined;
  let header: { alg?: string };
  let claims: Claims | LegacyClaims;
  try {
    header = JSON.parse(Buffer.from(head, "base64url").toString("utf8"));
    claims = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
  if ((claims.iss !== issuer && !isLegacy(claims)) || header.alg !== "ES256") return undefined;
  const good = verify(
    "sha256",
    Buffer.from(`${head}.${body}`),
    { key, dsaEncoding: "ieee-p1363" },
    Buffer.from(signature, "base64url"),
  );
  if (!good) throw new Error("invalid signature");
  return claims;
}

/** @throws StatusError 404, 409, 400 */
function boundTo(
  ref: NonNullable<TokenRequest["spec"]["boundObjectRef"]>,
  namespace: string,
  account: string,
  reader: Reader,
): { pod?: Named; secret?: Named; node?: Named } {
  const place = PLACES[`${ref.apiVersion ?? ""}/${ref.kind ?? ""}`];
  if (!place)
    throw badRequest(`cannot bind token for serviceaccount ${JSON.stringify(account)} to object of kind "${ref.kind}"`);
  const name = ref.name ?? "";
  const object = reader.get(place.resource as Resource, place.resource.namespaced ? namespace : undefined, name);
  if (!object) throw notFound(place.resource, name);
  const uid = object.metadata.uid ?? "";
  if (ref.uid && ref.uid !== uid) {
    throw conflict(
      place.resource,
      name,
      `the UID in the bound object reference (${ref.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  const pod = object as { spec?: { nodeName?: string; serviceAccountName?: string } };
  if (place.claim !== "pod") return { [place.claim]: { name, uid } };
  if (pod.spec?.serviceAccountName !== account)
    throw badRequest(
      `cannot bind token for serviceaccount ${JSON.stringify(account)} to pod running with different serviceaccount name.`,
    );
  const node = pod.spec.nodeName ? reader.get(resources.nodes, undefined, pod.spec.nodeName) : undefined;
  return {
    pod: { name, uid },
    ...(node ? { node: { name: node.metadata.name ?? "", uid: node.metadata.uid ?? "" } } : {}),
  };
}

const PLACES: Readonly<Record<string, { resource: Resource<never>; claim: "pod" | "secret" | "node" }>> = {
  "v1/Pod": { resource: resources.pods as Resource<never>, claim: "pod" },
  "v1/Secret": { resource: resources.secrets as Resource<never>, claim: "secret" },
  "v1/Node": { resource: resources.nodes as Resource<never>, claim: "node" },
};

/** The user, if the account and what the token is bound to are still there. @throws Error */
function userOf(claims: Claims, reader: Reader): UserInfo {
  const own = claims["kubernetes.io"];
  const { namespace, serviceaccount, pod, secret, node } = own;
  const alive = (resource: Resource<never>, at: string | undefined, ref: Named) =>
    reader.get(resource as Resource, at, ref.name)?.metadata.uid === ref.uid;
  if (!alive(resources.serviceAccounts as Resource<never>, namespace, serviceaccount))
    throw new Error("the service account is gone");
  if (pod && !alive(resources.pods as Resource<never>, namespace, pod))
    throw new Error("the pod that the token is bound to is gone");
  if (secret && !alive(resources.secrets as Resource<never>, namespace, secret))
    throw new Error("the secret that the token is bound to is gone");
  if (node && !pod && !alive(resources.nodes as Resource<never>, undefined, node))
    throw new Error("the node that the token is bound to is gone");
  const extra: Record<string, readonly string[]> = {
    "authentication.kubernetes.io/credential-id": [`JTI=${claims.jti}`],
  };
  if (pod)
    Object.assign(extra, {
      "authentication.kubernetes.io/pod-name": [pod.name],
      "authentication.kubernetes.io/pod-uid": [pod.uid],
    });
  if (node)
    Object.assign(extra, {
      "authentication.kubernetes.io/node-name": [node.name],
      "authentication.kubernetes.io/node-uid": [node.uid],
    });
  return {
    username: serviceAccountUsername(namespace, serviceaccount.name),
    uid: serviceaccount.uid,
    groups: [...serviceAccountGroups(namespace), "system:authenticated"],
    extra,
  };
}

const isLegacy = (claims: Claims | LegacyClaims): claims is LegacyClaims => claims.iss === LEGACY_ISSUER;

/** @throws Error when the account is gone, or the Secret does not hold this token (any more) */
function legacyUser(claims: LegacyClaims, token: string, reader: Reader): UserInfo {
  const claim = (name: string) => claims[`${LEGACY_ISSUER}/${name}`] ?? "";
  const [namespace, name, uid] = [claim("namespace"), claim("service-account.name"), claim("service-account.uid")];
  const secret = reader.get(resources.secrets, namespace, claim("secret.name"));
  if (!secret || secret.metadata.deletionTimestamp) throw new Error("service account token has been invalidated");
  if (Buffer.from(secret.data?.token ?? "", "base64").toString("latin1") !== token)
    throw new Error("service account token does not match server's copy");
  if (reader.get(resources.serviceAccounts, namespace, name)?.metadata.uid !== uid)
    throw new Error("the service account is gone");
  return {
    username: serviceAccountUsername(namespace, name),
    uid,
    groups: [...serviceAccountGroups(namespace), "system:authenticated"],
  };
}
