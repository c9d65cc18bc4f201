import { parse } from "yaml";
import { CodedError } from "#base";

/** The parts of a kubeconfig (client-go's `clientcmd` v1 Config) that are used here. */
export interface Kubeconfig {
  "current-context"?: string;
  contexts?: { name: string; context: { cluster: string; user: string; namespace?: string } }[];
  clusters?: { name: string; cluster: Record<string, unknown> }[];
  users?: { name: string; user: Record<string, unknown> }[];
}

/** Where to send requests, and as whom. PEM texts, not paths. */
export interface KubeconfigTarget {
  server: string;
  namespace: string;
  ca?: string;
  cert?: string;
  key?: string;
  token?: string;
  insecure: boolean;
  serverName?: string;
}

/** @throws CodedError `invalid-kubeconfig` naming the file and what is wrong with it */
export function parseKubeconfig(text: string, path: string): Kubeconfig {
  let value: unknown;
  try {
    value = parse(text);
  } catch (cause) {
    throw new CodedError("invalid-kubeconfig", `error loading config file "${path}": ${(cause as Error).message}`, {
      cause,
    });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new CodedError("invalid-kubeconfig", `error loading config file "${path}": it holds no Config object`);
  return value as Kubeconfig;
}

/**
 * The target of a context (default: the current one). `readFile` reads the files that the config names, relative to the
 * config's own directory.
 */
export function targetOf(
  config: Kubeconfig,
  readFile: (path: string) => string,
  contextName?: string,
): KubeconfigTarget {
  const name = contextName ?? config["current-context"] ?? "";
  const context = config.contexts?.find((entry) => entry.name === name)?.context;
  if (!context) throw new CodedError("invalid-kubeconfig", `context "${name}" does not exist`);
  const cluster = config.clusters?.find((entry) => entry.name === context.cluster)?.cluster;
  if (!cluster) throw new CodedError("invalid-kubeconfig", `cluster "${context.cluster}" does not exist`);
  const user = config.users?.find((entry) => entry.name === context.user)?.user ?? {};
  const pem = (from: Record<string, unknown>, key: string) => {
    const data = from[`${key}-data`];
    if (typeof data === "string" && data) return Buffer.from(data, "base64").toString("utf8");
    const path = from[key];
    return typeof path === "string" && path ? readFile(path) : undefined;
  };
  const ca = pem(cluster, "certificate-authority");
  const cert = pem(user, "client-certificate");
  const key = pem(user, "client-key");
  const tokenFile = user.tokenFile;
  const token =
    typeof user.token === "string"
      ? user.token
      : typeof tokenFile === "string"
        ? readFile(tokenFile).trim()
        : undefined;
  const serverName = cluster["tls-server-name"];
  return {
    server: String(cluster.server ?? ""),
    namespace: context.namespace ?? "default",
    ...(ca ? { ca } : {}),
    ...(cert ? { cert } : {}),
    ...(key ? { key } : {}),
    ...(token ? { token } : {}),
    ...(typeof serverName === "string" ? { serverName } : {}),
    insecure: cluster["insecure-skip-tls-verify"] === true,
  };
}
