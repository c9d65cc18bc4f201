import { CodedError } from "#base";
import { fetchAuthority } from "./authority.ts";
import type { HttpTransportOptions } from "./http-transport.ts";

/** A server that is reached over TCP, and how it is known again. */
export interface HostTarget {
  readonly server: string;
  readonly insecure: boolean;
  readonly serverName?: string;
  readonly token?: string;
  readonly ca?: string;
  /** SHA-256 of the certificate authority (hexadecimal), where it is known by its print only. */
  readonly caHash?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * `tcp://host[:port]`, TLS on it. Who asks is told by `SLIM_KUBE_TOKEN` (which holds the print of the authority), or by the files
 * `SLIM_KUBE_CA`, `SLIM_KUBE_CERT` and `SLIM_KUBE_KEY`. @throws CodedError
 */
export function hostTarget(
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
  host: string,
): HostTarget {
  const match = /^(?:tcp|https):\/\/(\[[^\]]+\]|[^:/]+)(?::(\d{1,5}))?\/?$/.exec(host);
  if (!match) throw new CodedError("invalid-host", `SLIM_KUBE_HOST is "${host}", but must be tcp://host:port`);
  const read = (path: string | undefined) => (path ? readFile(path) : undefined);
  const token = env.SLIM_KUBE_TOKEN;
  const ca = read(env.SLIM_KUBE_CA);
  const caHash = token === undefined ? undefined : /^slim1\.([0-9a-f]{64})\./.exec(token)?.[1];
  const cert = read(env.SLIM_KUBE_CERT);
  const key = read(env.SLIM_KUBE_KEY);
  if (!ca && !caHash)
    throw new CodedError("no-authority", `nothing tells whom to trust at ${host}`, {
      hint: "Set SLIM_KUBE_TOKEN to what `slim token` printed, or SLIM_KUBE_CA to the file of the certificate authority.",
    });
  return {
    server: `https://${match[1]}:${match[2] ?? "6443"}`,
    insecure: false,
    // the certificate is made out to the names of the API, whatever the host is called from outside
    serverName: "kubernetes",
    ...(token ? { token } : {}),
    ...(ca ? { ca } : {}),
    ...(!ca && caHash ? { caHash } : {}),
    ...(cert ? { cert } : {}),
    ...(key ? { key } : {}),
  };
}

/** Options of a transport to it; the authority is fetched where only its print is known. @throws CodedError */
export async function trusted({ caHash, ...target }: HostTarget): Promise<HttpTransportOptions> {
  return caHash ? { ...target, ca: await fetchAuthority(target.server, caHash) } : target;
}
