import type { DeepReadonly } from "#base";
import type { Pod } from "#kinds";
import { effectiveSecurityContext } from "./security.ts";

/**
 * Kernel settings that a pod may choose since they touch no other pod.
 *
 * Source: https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/#safe-and-unsafe-sysctls
 */
const SAFE_SYSCTLS: ReadonlySet<string> = new Set([
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_unprivileged_port_start",
  "net.ipv4.ip_local_reserved_ports",
  "net.ipv4.tcp_keepalive_time",
  "net.ipv4.tcp_fin_timeout",
  "net.ipv4.tcp_keepalive_intvl",
  "net.ipv4.tcp_keepalive_probes",
  "net.ipv4.tcp_rmem",
  "net.ipv4.tcp_wmem",
]);

/** Why the node refuses a pod: `status.reason` and `status.message` of the failed pod. */
export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

/** What of a pod's security settings this node cannot or must not give; undefined when it can have all. */
export function securityRefusal(
  pod: DeepReadonly<Pod>,
  node: {
    /** Sysctls that the administrator allows besides the safe ones; `net.core.*` is a prefix. */
    readonly allowedUnsafeSysctls?: readonly string[];
    readonly apparmor: boolean;
  },
): Refusal | undefined {
  for (const { name } of pod.spec?.securityContext?.sysctls ?? []) {
    const why = sysctlFault(name, pod, node.allowedUnsafeSysctls ?? []);
    if (why) return { reason: "SysctlForbidden", message: `forbidden sysctl: ${why}` };
  }
  if (!node.apparmor && asksForAppArmor(pod)) {
    return { reason: "AppArmor", message: "Cannot enforce AppArmor: AppArmor is not enabled on the host" };
  }
  return undefined;
}

function sysctlFault(written: string, pod: DeepReadonly<Pod>, allowed: readonly string[]): string | undefined {
  const name = sysctlName(written);
  const known =
    SAFE_SYSCTLS.has(name) ||
    allowed.some((entry) => (entry.endsWith("*") ? name.startsWith(entry.slice(0, -1)) : name === sysctlName(entry)));
  if (!known) return `"${name}" not allowlisted`;
  if (name.startsWith("net.")) {
    return pod.spec?.hostNetwork ? `"${name}" not allowed with host net enabled` : undefined;
  }
  return pod.spec?.hostIPC ? `"${name}" not allowed with host ipc enabled` : undefined;
}

/** `net/ipv4/tcp_syncookies` is the same as `net.ipv4.tcp_syncookies`; the first separator decides. */
export function sysctlName(written: string): string {
  const first = written.search(/[./]/);
  if (first < 0 || written[first] === ".") return written;
  return written.replace(/[./]/g, (separator) => (separator === "/" ? "." : "/"));
}

function asksForAppArmor(pod: DeepReadonly<Pod>): boolean {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  return [...containers, ...initContainers].some((container) => {
    const type = effectiveSecurityContext(pod, container).appArmorProfile?.type;
    return type === "RuntimeDefault" || type === "Localhost";
  });
}
