import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { CodedError } from "#base";

/** Where an instance keeps its things and how it is reached. A data directory is an instance. */
export interface InstanceConfig {
  /** `SLIM_DATA`: database, PKI, kubeconfig, pods' volumes. Default /var/lib/slim. */
  readonly dataDir: string;
  /** `SLIM_RUN_DIR`: sockets, pid file, what does not outlive a boot. Default /run/slim for the default data directory, else `<data>/run`. */
  readonly runDir: string;
  /** `SLIM_IMAGES_DIR`: blobs and layers; may be shared between no two running instances. Default `<data>/images`. */
  readonly imagesDir: string;
  /** `SLIM_KUBE_API=off`: no TCP listener, the socket only. */
  readonly kubeApi: boolean;
  /** `SLIM_KUBE_API_ADDR`: `host:port`; port 0 takes a free one. Default 127.0.0.1:6443. */
  readonly kubeApiAddress: { readonly host: string; readonly port: number };
  /** `SLIM_TCP_ADDR`: `host:port` for programs on other hosts, who show a token or a client certificate. Default: none. */
  readonly hostAddress?: { readonly host: string; readonly port: number };
  /** `SLIM_KUBE_SOCKET`: unix socket for local clients. Default `<run>/kube.sock`. */
  readonly kubeSocket: string;
  /** `SLIM_REGISTRY_MIRROR`: `http(s)://host[:port]` asked instead of every registry. */
  readonly registryMirror?: string;
  /** `SLIM_PAUSE_BIN`: static program of the pause container. */
  readonly pauseBinary?: string;
  /** `SLIM_RUNTIME`: `crun` or `runc`; default: the first that works. */
  readonly runtime?: string;
  /** `SLIM_CNI_CONF_DIR`: CNI configurations that replace the built-in pod network. */
  readonly cniConfDir?: string;
  /** `SLIM_NODE_NAME`. Default: the host's name. */
  readonly nodeName?: string;
  /** `SLIM_NODES`: how many nodes the process holds. Default 1. */
  readonly nodes: number;
  /** `SLIM_LOG_LEVEL`. */
  readonly logLevel: "debug" | "info" | "warn" | "error";
}

/** Flags by their variable: `SLIM_KUBE_API_ADDR` is `--kube-api-addr`. */
export const CONFIG_VARIABLES: Readonly<Record<string, string>> = {
  SLIM_DATA: "directory of the instance (default /var/lib/slim)",
  SLIM_RUN_DIR: "directory of sockets and other things that do not outlive a boot",
  SLIM_IMAGES_DIR: "directory of the image store",
  SLIM_KUBE_API: "'off' serves the unix socket only",
  SLIM_KUBE_API_ADDR: "host:port of the API over TLS (default 127.0.0.1:6443; port 0: any)",
  SLIM_TCP_ADDR: "host:port for programs on other hosts, by the token that `slim token` prints (default: off)",
  SLIM_KUBE_SOCKET: "unix socket of the API for local clients",
  SLIM_REGISTRY_MIRROR: "http(s)://host[:port] that is asked instead of every registry",
  SLIM_PAUSE_BIN: "static program for pause containers (default catatonit)",
  SLIM_RUNTIME: "OCI runtime: crun or runc (default: the first that works)",
  SLIM_CNI_CONF_DIR: "directory of CNI configurations that replace the built-in pod network",
  SLIM_NODE_NAME: "name of the node (default: the host's name)",
  SLIM_NODES: "number of nodes that the process holds (default 1)",
  SLIM_LOG_LEVEL: "debug, info, warn or error (default info)",
};

export function flagOf(variable: string): string {
  return `--${variable
    .replace(/^SLIM_/, "")
    .toLowerCase()
    .replaceAll("_", "-")}`;
}

/** Reads the configuration of an instance. @throws CodedError `invalid-config` naming the variable */
export function readConfig(env: Readonly<Record<string, string | undefined>>): InstanceConfig {
  const value = (name: string) => env[name] || undefined;
  const dataDir = resolve(value("SLIM_DATA") ?? DEFAULT_DATA);
  const runDir = resolve(value("SLIM_RUN_DIR") ?? (dataDir === DEFAULT_DATA ? "/run/slim" : join(dataDir, "run")));
  const kubeApiAddress = addressOf("SLIM_KUBE_API_ADDR", value("SLIM_KUBE_API_ADDR") ?? "127.0.0.1:6443");
  const tcp = value("SLIM_TCP_ADDR");
  const level = value("SLIM_LOG_LEVEL") ?? "info";
  if (!["debug", "info", "warn", "error"].includes(level))
    throw bad("SLIM_LOG_LEVEL", level, "debug, info, warn or error");
  const kubeApi = value("SLIM_KUBE_API") ?? "on";
  if (!["on", "off"].includes(kubeApi)) throw bad("SLIM_KUBE_API", kubeApi, "on or off");
  const nodes = Number(value("SLIM_NODES") ?? 1);
  if (!Number.isInteger(nodes) || nodes < 0 || nodes > 100)
    throw bad("SLIM_NODES", String(env.SLIM_NODES), "a number from 0 to 100");
  const optional = {
    registryMirror: value("SLIM_REGISTRY_MIRROR"),
    pauseBinary: value("SLIM_PAUSE_BIN"),
    runtime: value("SLIM_RUNTIME"),
    cniConfDir: value("SLIM_CNI_CONF_DIR"),
    nodeName: value("SLIM_NODE_NAME"),
    // what is not bound to an address is bound to this host
    hostAddress:
      tcp === undefined ? undefined : addressOf("SLIM_TCP_ADDR", tcp.includes(":") ? tcp : `127.0.0.1:${tcp}`),
  };
  return {
    dataDir,
    runDir,
    imagesDir: resolve(value("SLIM_IMAGES_DIR") ?? join(dataDir, "images")),
    kubeApi: kubeApi === "on",
    kubeApiAddress,
    kubeSocket: value("SLIM_KUBE_SOCKET") ?? join(runDir, "kube.sock"),
    nodes,
    logLevel: level as InstanceConfig["logLevel"],
    ...(Object.fromEntries(Object.entries(optional).filter(([, v]) => v !== undefined)) as Partial<InstanceConfig>),
  };
}

function addressOf(variable: string, text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text);
  if (!match || Number(match[3]) > 65535) throw bad(variable, text, "host:port");
  return { host: match[1] ?? match[2] ?? "", port: Number(match[3]) };
}

const DEFAULT_DATA = "/var/lib/slim";

/** Short name of an instance for interfaces, tables and cgroups: 6 hexadecimal digits of the data directory's path. */
export function instanceIdOf(dataDir: string): string {
  return createHash("sha256").update(resolve(dataDir)).digest("hex").slice(0, 6);
}

function bad(variable: string, got: string, wanted: string): CodedError {
  return new CodedError("invalid-config", `${variable} is "${got}", but must be ${wanted}`, {
    hint: `Set ${variable} or ${flagOf(variable)}.`,
  });
}
