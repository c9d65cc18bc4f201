import type { DeepReadonly } from "#base";
import type { Pod } from "#kinds";

const HOSTNAME_MAX = 63;
/** What the kernel takes as a node name (its field has 65 bytes). */
const NODENAME_MAX = 64;

/**
 * Host name and domain of a pod: `spec.hostname` or the pod's name, cut to 63 characters, and
 * `<subdomain>.<namespace>.svc.<clusterDomain>` where it has a subdomain. `hostnameOverride` replaces both.
 *
 * Source: https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#pod-hostname-and-subdomain-field, KEP-4762
 *
 * @throws Error for names that no DNS label can be
 */
export function podHostname(pod: DeepReadonly<Pod>, clusterDomain: string): { hostname: string; domain: string } {
  const { hostname, subdomain, hostnameOverride } = pod.spec ?? {};
  const name = pod.metadata?.name ?? "";
  if (hostnameOverride !== undefined) {
    if (!isSubdomain(hostnameOverride)) {
      throw new Error(`pod HostnameOverride "${hostnameOverride}" is not a valid DNS subdomain: ${SUBDOMAIN_RULE}`);
    }
    return { hostname: truncate(hostnameOverride, name), domain: "" };
  }
  if (hostname && !isLabel(hostname)) {
    throw new Error(`pod Hostname "${hostname}" is not a valid DNS label: ${LABEL_RULE}`);
  }
  if (subdomain && !isLabel(subdomain)) {
    throw new Error(`pod Subdomain "${subdomain}" is not a valid DNS label: ${LABEL_RULE}`);
  }
  return {
    hostname: truncate(hostname || name, name),
    domain: subdomain ? `${subdomain}.${pod.metadata?.namespace}.svc.${clusterDomain}` : "",
  };
}

/**
 * What `hostname` prints inside the pod.
 *
 * @throws Error when `setHostnameAsFQDN` asks for a name that the kernel cannot hold
 */
export function kernelHostname(pod: DeepReadonly<Pod>, clusterDomain: string): string {
  const { hostname, domain } = podHostname(pod, clusterDomain);
  if (!domain || !pod.spec?.setHostnameAsFQDN) return hostname;
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > NODENAME_MAX) {
    throw new Error(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long ` +
        `(${NODENAME_MAX} characters is the max, ${fqdn.length} characters requested)`,
    );
  }
  return fqdn;
}

function truncate(hostname: string, podName: string): string {
  if (hostname.length <= HOSTNAME_MAX) return hostname;
  const result = hostname.slice(0, HOSTNAME_MAX).replace(/[-.]+$/, "");
  if (!result) throw new Error(`hostname for pod "${podName}" was invalid: "${hostname}"`);
  return result;
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const isLabel = (text: string) => text.length <= 63 && LABEL.test(text);
const isSubdomain = (text: string) => text.length <= 253 && text.split(".").every((label) => LABEL.test(label));
const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
