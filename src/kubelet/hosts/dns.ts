import type { DeepReadonly } from "#base";
import type { Pod, PodDNSConfig } from "#kinds";

/** Contents of a resolv.conf. Options as written there: `ndots:5`. */
export interface DnsConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

export interface DnsSettings {
  /** Addresses of the cluster's DNS servers; empty where there is none. */
  readonly clusterDNS: readonly string[];
  /** `cluster.local` */
  readonly clusterDomain: string;
  /** The host's own settings. */
  readonly host: DnsConfig;
}

/** A pod's DNS settings, and the messages of the events that tell what was left out (reason `DNSConfigForming`, `MissingClusterDNS`). */
export interface PodDns extends DnsConfig {
  readonly warnings: readonly { reason: string; message: string }[];
}

const MAX_SERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;
const MAX_DOMAIN = 253;

/**
 * DNS settings of a pod by its `dnsPolicy` and `dnsConfig`.
 *
 * Source: https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#pod-s-dns-policy
 */
export function podDns(pod: DeepReadonly<Pod>, settings: DnsSettings): PodDns {
  const warnings: { reason: string; message: string }[] = [];
  const policy = effectivePolicy(pod);
  let config: DnsConfig;
  if (policy === "None") config = { servers: [], searches: [], options: [] };
  else if (policy === "ClusterFirst" && settings.clusterDNS.length > 0) config = clusterDns(pod, settings);
  else {
    if (policy === "ClusterFirst") warnings.push(missingClusterDns(pod));
    config = settings.host;
  }
  const merged = pod.spec?.dnsConfig ? merge(config, pod.spec.dnsConfig) : config;
  return { ...withinLimits(merged, warnings), warnings };
}

function effectivePolicy(pod: DeepReadonly<Pod>): "None" | "ClusterFirst" | "Default" {
  switch (pod.spec?.dnsPolicy) {
    case "None":
      return "None";
    case "Default":
      return "Default";
    case "ClusterFirstWithHostNet":
      return "ClusterFirst";
    default:
      return pod.spec?.hostNetwork ? "Default" : "ClusterFirst";
  }
}

function clusterDns(pod: DeepReadonly<Pod>, { clusterDNS, clusterDomain, host }: DnsSettings): DnsConfig {
  const own = clusterDomain
    ? [`${pod.metadata?.namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain]
    : [];
  return { servers: clusterDNS, searches: unique([...own, ...host.searches]), options: ["ndots:5"] };
}

function missingClusterDns(pod: DeepReadonly<Pod>): { reason: string; message: string } {
  const { name, namespace, uid } = pod.metadata ?? {};
  return {
    reason: "MissingClusterDNS",
    message:
      `pod: "${name}_${namespace}(${uid})". kubelet does not have ClusterDNS IP configured and cannot create Pod using ` +
      `"ClusterFirst" policy. Falling back to "Default" policy.`,
  };
}

/** The pod's own settings after the policy's; an option given twice has the pod's value. */
function merge(base: DnsConfig, own: DeepReadonly<PodDNSConfig>): DnsConfig {
  const options = new Map<string, string>();
  for (const option of base.options) {
    const [name = "", ...value] = option.split(":");
    options.set(name, value.join(":"));
  }
  for (const { name = "", value } of own.options ?? []) options.set(name, value ?? "");
  return {
    servers: unique([...base.servers, ...(own.nameservers ?? [])]),
    searches: unique([...base.searches, ...(own.searches ?? [])]),
    options: [...options].map(([name, value]) => (value ? `${name}:${value}` : name)),
  };
}

function withinLimits(config: DnsConfig, warnings: { reason: string; message: string }[]): DnsConfig {
  const servers = config.servers.slice(0, MAX_SERVERS);
  if (servers.length < config.servers.length) {
    warnings.push({
      reason: "DNSConfigForming",
      message: `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${servers.join(" ")}`,
    });
  }
  const searches = config.searches.slice(0, MAX_SEARCHES).filter((domain) => domain.length <= MAX_DOMAIN);
  while (searches.join(" ").length > MAX_SEARCH_CHARACTERS) searches.pop();
  if (searches.length < config.searches.length) {
    warnings.push({
      reason: "DNSConfigForming",
      message: `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.join(" ")}`,
    });
  }
  return { servers, searches, options: config.options };
}

/** Reads a resolv.conf: servers add up, the last search line counts, options override each other by name. */
export function parseResolvConf(text: string): DnsConfig {
  const servers: string[] = [];
  let searches: string[] = [];
  const options = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [keyword, ...fields] = line.trim().split(/\s+/);
    if (keyword === "nameserver" && fields[0]) servers.push(fields[0]);
    else if (keyword === "search") {
      searches = fields.filter((domain) => domain !== ".").map((domain) => domain.replace(/\.$/, ""));
    } else if (keyword === "options") {
      for (const option of fields) options.set(option.split(":")[0] ?? option, option);
    }
  }
  return { servers, searches, options: [...options.values()] };
}

const unique = (list: readonly string[]) => [...new Set(list)];
