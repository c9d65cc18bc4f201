import { CodedError } from "#base";
import { hostTarget, type Kubeconfig, type KubeconfigTarget, parseKubeconfig, targetOf } from "#client";
import type { Environment } from "./environment.ts";
import type { Flags } from "./flags.ts";

/** Where requests go, and as whom. */
export interface Target extends Omit<KubeconfigTarget, "insecure"> {
  readonly insecure: boolean;
  /** SHA-256 of the certificate authority (hexadecimal), where it is known by its print only. */
  readonly caHash?: string;
}

/** Files of `KUBECONFIG`, which the platform's own character separates; else the one that `--kubeconfig` names. */
export function kubeconfigPaths(
  flags: Flags,
  environment: Environment,
): { paths: readonly string[]; explicit: boolean } {
  const flag = flags.string("kubeconfig");
  if (flag) return { paths: [flag], explicit: true };
  const { KUBECONFIG } = environment.env;
  if (KUBECONFIG) {
    const paths = KUBECONFIG.split(environment.path.delimiter).filter(Boolean);
    return { paths, explicit: false };
  }
  return { paths: [environment.path.join(environment.home, ".kube", "config")], explicit: false };
}

/** The first that tells wins, as client-go merges. @throws CodedError when a file that was named is not there */
export function loadKubeconfig(flags: Flags, environment: Environment): Kubeconfig {
  const { paths, explicit } = kubeconfigPaths(flags, environment);
  const merged: Kubeconfig = { contexts: [], clusters: [], users: [] };
  for (const path of paths) {
    if (!environment.files.exists(path)) {
      if (explicit) throw new CodedError("no-kubeconfig", `stat ${path}: no such file or directory`);
      continue;
    }
    const config = absolute(parseKubeconfig(environment.files.read(path), path), environment, path);
    if (!merged["current-context"] && config["current-context"]) merged["current-context"] = config["current-context"];
    for (const key of ["contexts", "clusters", "users"] as const) {
      const into = merged[key] as { name: string }[];
      for (const item of config[key] ?? []) if (!into.some(({ name }) => name === item.name)) into.push(item);
    }
  }
  return merged;
}

/** Files that a config names lie beside it. */
function absolute(config: Kubeconfig, { path }: Environment, file: string): Kubeconfig {
  const directory = path.dirname(file);
  const fix = (from: Record<string, unknown>) => {
    const fixed = { ...from };
    for (const key of ["certificate-authority", "client-certificate", "client-key", "tokenFile"]) {
      const value = fixed[key];
      if (typeof value === "string" && value && !path.isAbsolute(value)) fixed[key] = path.join(directory, value);
    }
    return fixed;
  };
  return {
    ...config,
    clusters: (config.clusters ?? []).map(({ name, cluster }) => ({ name, cluster: fix(cluster) })),
    users: (config.users ?? []).map(({ name, user }) => ({ name, user: fix(user) })),
  };
}

/** The socket on which `slimd` listens by default; on Windows a named pipe. */
export function defaultSocket(platform: NodeJS.Platform): string {
  return platform === "win32" ? "\\\\.\\pipe\\slim-kube" : "/run/slim/kube.sock";
}

/**
 * Finds the server: `--server`, `--kubeconfig`, `KUBECONFIG`, `SLIM_KUBE_SOCKET`, `SLIM_KUBE_HOST`, the default socket where there is
 * one, then `~/.kube/config`. @throws CodedError
 */
export function findTarget(flags: Flags, environment: Environment): Target {
  const target = baseTarget(flags, environment);
  const file = (name: string) => (flags.string(name) ? environment.files.read(flags.string(name)) : undefined);
  const [ca, cert, key] = [file("certificate-authority"), file("client-certificate"), file("client-key")];
  return {
    ...target,
    ...(flags.string("namespace") ? { namespace: flags.string("namespace") } : {}),
    ...(flags.string("server") ? { server: withScheme(flags.string("server")) } : {}),
    ...(flags.string("token") ? { token: flags.string("token") } : {}),
    ...(flags.string("tls-server-name") ? { serverName: flags.string("tls-server-name") } : {}),
    ...(flags.bool("insecure-skip-tls-verify") ? { insecure: true } : {}),
    ...(ca ? { ca } : {}),
    ...(cert ? { cert } : {}),
    ...(key ? { key } : {}),
  };
}

function baseTarget(flags: Flags, environment: Environment): Target {
  const { env, files, platform } = environment;
  const plain = (server: string): Target => ({ server, namespace: "default", insecure: false });
  const named = flags.string("kubeconfig") || env.KUBECONFIG;
  if (!named) {
    if (env.SLIM_KUBE_SOCKET) return plain(`unix:${env.SLIM_KUBE_SOCKET}`);
    if (env.SLIM_KUBE_HOST)
      return { ...hostTarget(env, (path) => files.read(path), env.SLIM_KUBE_HOST), namespace: "default" };
    const socket = defaultSocket(platform);
    // whether a named pipe is there can't be asked without opening it
    if (files.exists(socket) && !flags.string("context")) return plain(`unix:${socket}`);
  }
  const config = loadKubeconfig(flags, environment);
  const context = flags.string("context");
  if (!context && !config["current-context"] && (config.contexts ?? []).length === 0) {
    if (platform === "win32" && !named) return plain(`unix:${defaultSocket(platform)}`);
    // what kubectl does without any configuration
    return plain("http://localhost:8080");
  }
  return targetOf(overridden(config, flags), (path) => files.read(path), context || undefined);
}

/** `--cluster` and `--user` replace those of the context. */
function overridden(config: Kubeconfig, flags: Flags): Kubeconfig {
  const cluster = flags.string("cluster");
  const user = flags.specOf("user")?.type === "string" ? flags.string("user") : "";
  if (!cluster && !user) return config;
  const contexts = (config.contexts ?? []).map(({ name, context }) => ({
    name,
    context: { ...context, ...(cluster ? { cluster } : {}), ...(user ? { user } : {}) },
  }));
  return { ...config, contexts };
}

const withScheme = (server: string) => (/^(https?:\/\/|unix:)/.test(server) ? server : `http://${server}`);
