import type { DeepReadonly } from "#base";
import type { HostAlias } from "#kinds";

const HEADER = "# Kubernetes-managed hosts file.\n";
const HEADER_HOST_NETWORK = "# Kubernetes-managed hosts file (host network).\n";

/**
 * The /etc/hosts of a pod that has a network of its own.
 *
 * Source: https://kubernetes.io/docs/tasks/network/customize-hosts-file-for-pods/
 */
export function podHostsFile(options: {
  readonly podIPs: readonly string[];
  readonly hostname: string;
  /** `<subdomain>.<namespace>.svc.<cluster domain>`; empty without a subdomain. */
  readonly domain: string;
  readonly aliases: readonly DeepReadonly<HostAlias>[];
}): string {
  const { podIPs, hostname, domain, aliases } = options;
  const names = domain ? `${hostname}.${domain}\t${hostname}` : hostname;
  return [
    HEADER,
    "127.0.0.1\tlocalhost\n",
    "::1\tlocalhost ip6-localhost ip6-loopback\n",
    "fe00::0\tip6-localnet\n",
    "fe00::0\tip6-mcastprefix\n",
    "fe00::1\tip6-allnodes\n",
    "fe00::2\tip6-allrouters\n",
    ...podIPs.map((ip) => `${ip}\t${names}\n`),
    aliasLines(aliases),
  ].join("");
}

/** The /etc/hosts of a pod in the host's network: the host's own and the pod's aliases. */
export function hostNetworkHostsFile(hostFile: string, aliases: readonly DeepReadonly<HostAlias>[]): string {
  return HEADER_HOST_NETWORK + hostFile + aliasLines(aliases);
}

function aliasLines(aliases: readonly DeepReadonly<HostAlias>[]): string {
  if (aliases.length === 0) return "";
  const lines = aliases.map(({ ip, hostnames }) => `${ip}\t${(hostnames ?? []).join("\t")}\n`);
  return `\n# Entries added by HostAliases.\n${lines.join("")}`;
}
