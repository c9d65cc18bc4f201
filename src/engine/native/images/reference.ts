import { EngineError } from "../../errors.ts";

/**
 * A parsed image reference in Docker's normal form: `busybox` is `docker.io/library/busybox:latest`.
 * Grammar: https://pkg.go.dev/github.com/distribution/reference
 */
export interface Reference {
  /** `docker.io` */
  readonly domain: string;
  /** `library/busybox` */
  readonly path: string;
  /** `docker.io/library/busybox` */
  readonly name: string;
  /** Absent where only a digest was given. */
  readonly tag?: string;
  /** `sha256:…` */
  readonly digest?: string;
}

/**
 * Parses what a manifest's `image:` may hold.
 * @throws EngineError `invalid-reference`, in the words that the kubelet shows for `InvalidImageName`
 */
export function parseReference(text: string): Reference {
  const refuse = (why: string): never => {
    const quoted = JSON.stringify(text);
    const message = `Failed to apply default image tag ${quoted}: couldn't parse image name ${quoted}: ${why}`;
    throw new EngineError("invalid-reference", message);
  };
  if (text.length > MAX_LENGTH) return refuse("invalid reference format");
  if (/^[a-f0-9]{64}$/.test(text)) {
    return refuse(`invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`);
  }
  const [domain, rest] = splitDomain(text);
  const remote = rest.split(":", 1)[0] ?? "";
  if (remote !== remote.toLowerCase()) {
    return refuse(`invalid reference format: repository name (${remote}) must be lowercase`);
  }
  const found = REFERENCE.exec(`${domain}/${rest}`);
  if (!found?.[1]) return refuse("invalid reference format");
  const [, name, tag, digest] = found;
  if (name.length - domain.length - 1 > 255) return refuse("repository name must not be more than 255 characters");
  if (digest !== undefined && !/^sha256:[a-f0-9]{64}$|^sha512:[a-f0-9]{128}$/.test(digest)) {
    return refuse(digest.startsWith("sha") ? "invalid checksum digest length" : "unsupported digest algorithm");
  }
  const effective = tag ?? (digest === undefined ? "latest" : undefined);
  return {
    domain,
    path: name.slice(domain.length + 1),
    name,
    ...(effective === undefined ? {} : { tag: effective }),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** The normal form as text; with a digest the tag is left out, as it decides nothing then. */
export function formatReference(reference: Reference): string {
  return reference.digest ? `${reference.name}@${reference.digest}` : `${reference.name}:${reference.tag}`;
}

/** `sha256:…`, or a prefix of at least 12 hexadecimal digits of it: what a person copies from a list. */
export function parseImageId(text: string): string | undefined {
  const hex = text.startsWith("sha256:") ? text.slice(7) : text;
  return /^[a-f0-9]{12,64}$/.test(hex) && (text.startsWith("sha256:") || hex.length === 64 || hex.length === 12)
    ? hex
    : undefined;
}

const MAX_LENGTH = 1024;

const DOMAIN_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const DOMAIN = `(?:${DOMAIN_PART}(?:\\.${DOMAIN_PART})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const PATH_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const TAG = "\\w[\\w.-]{0,127}";
const DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
const REFERENCE = new RegExp(`^(${DOMAIN}/${PATH_PART}(?:/${PATH_PART})*)(?::(${TAG}))?(?:@(${DIGEST}))?$`);

/** The first part names a registry only if it looks like a host: a dot, a port, `localhost`, or upper case. */
function splitDomain(text: string): [domain: string, rest: string] {
  const slash = text.indexOf("/");
  const first = text.slice(0, Math.max(0, slash));
  const isHost = first === "localhost" || /[.:]/.test(first) || first !== first.toLowerCase();
  if (slash < 0 || !isHost) return [DEFAULT_DOMAIN, slash < 0 ? `library/${text}` : text];
  const rest = text.slice(slash + 1);
  if (first !== DEFAULT_DOMAIN && first !== "index.docker.io") return [first, rest];
  return [DEFAULT_DOMAIN, rest.includes("/") ? rest : `library/${rest}`];
}

const DEFAULT_DOMAIN = "docker.io";
