import type { DeepReadonly } from "#base";
import type { PullOptions } from "#engine";
import type { Secret } from "#kinds";

export type Auth = NonNullable<PullOptions["auths"]>[number];

interface Entry {
  readonly key: string;
  readonly auth: Auth;
}

/**
 * Credentials in pull secrets for an image, most specific registry path first. What cannot be read is left out.
 *
 * Source: https://kubernetes.io/docs/concepts/containers/images/#config-json
 */
export function credentialsFor(image: string, secrets: readonly DeepReadonly<Secret>[]): Auth[] {
  const entries = secrets.flatMap(entriesOf);
  const path = fullPath(image);
  return entries
    .filter(({ key }) => matches(key, path))
    .sort((a, b) => b.key.length - a.key.length)
    .map(({ auth }) => auth);
}

function entriesOf(secret: DeepReadonly<Secret>): Entry[] {
  const modern = secret.data?.[".dockerconfigjson"];
  const legacy = secret.data?.[".dockercfg"];
  try {
    if (modern) return toEntries((JSON.parse(decode(modern)) as { auths?: Record<string, RawAuth> }).auths ?? {});
    if (legacy) return toEntries(JSON.parse(decode(legacy)) as Record<string, RawAuth>);
  } catch {
    // The pull goes on without it and says what the registry says.
  }
  return [];
}

interface RawAuth {
  username?: string;
  password?: string;
  auth?: string;
  identitytoken?: string;
  registrytoken?: string;
}

function toEntries(auths: Record<string, RawAuth>): Entry[] {
  return Object.entries(auths).map(([key, raw]) => {
    const [user, ...rest] = raw.auth ? decode(raw.auth).split(":") : [];
    const username = raw.username ?? user;
    const password = raw.password ?? (rest.length > 0 ? rest.join(":") : undefined);
    return {
      key: normalize(key),
      auth: {
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
        ...(raw.identitytoken ? { identityToken: raw.identitytoken } : {}),
        ...(raw.registrytoken ? { registryToken: raw.registrytoken } : {}),
      },
    };
  });
}

const decode = (base64: string) => Buffer.from(base64, "base64").toString("utf8");

/** `https://index.docker.io/v1/` → `docker.io` */
function normalize(key: string): string {
  const bare = key.replace(/^https?:\/\//, "").replace(/\/(v1|v2)?\/?$/, "");
  return bare.replace(/^(index|registry-1)\.docker\.io/, "docker.io");
}

/** Registry and repository, without tag and digest. */
function fullPath(image: string): string {
  const name = (image.split("@")[0] ?? "").replace(/:[^/:]*$/, "");
  const [first = "", ...rest] = name.split("/");
  if (rest.length > 0 && /[.:]|^localhost$/.test(first)) return normalize(name);
  return `docker.io/${rest.length === 0 ? "library/" : ""}${name}`;
}

/** The hosts match part by part (`*` in a part stands for anything), the path is a prefix. */
function matches(key: string, path: string): boolean {
  const [keyHost = "", ...keyPath] = key.split("/");
  const [host = "", ...rest] = path.split("/");
  const [keyName = "", keyPort] = keyHost.split(":");
  const [name = "", port] = host.split(":");
  if (keyPort !== port) return false;
  const wanted = keyName.split(".");
  const parts = name.split(".");
  if (wanted.length !== parts.length) return false;
  const glob = (pattern: string, text: string) =>
    new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`).test(text);
  return (
    wanted.every((part, i) => glob(part, parts[i] ?? "")) && keyPath.every((part, i) => part === "" || part === rest[i])
  );
}
