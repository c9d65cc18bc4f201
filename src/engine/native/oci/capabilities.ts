import type { SecurityConfig } from "../../port.ts";

/** Capability names by number, capabilities(7). */
export const CAPABILITIES = [
  "CHOWN",
  "DAC_OVERRIDE",
  "DAC_READ_SEARCH",
  "FOWNER",
  "FSETID",
  "KILL",
  "SETGID",
  "SETUID",
  "SETPCAP",
  "LINUX_IMMUTABLE",
  "NET_BIND_SERVICE",
  "NET_BROADCAST",
  "NET_ADMIN",
  "NET_RAW",
  "IPC_LOCK",
  "IPC_OWNER",
  "SYS_MODULE",
  "SYS_RAWIO",
  "SYS_CHROOT",
  "SYS_PTRACE",
  "SYS_PACCT",
  "SYS_ADMIN",
  "SYS_BOOT",
  "SYS_NICE",
  "SYS_RESOURCE",
  "SYS_TIME",
  "SYS_TTY_CONFIG",
  "MKNOD",
  "LEASE",
  "AUDIT_WRITE",
  "AUDIT_CONTROL",
  "SETFCAP",
  "MAC_OVERRIDE",
  "MAC_ADMIN",
  "SYSLOG",
  "WAKE_ALARM",
  "BLOCK_SUSPEND",
  "AUDIT_READ",
  "PERFMON",
  "BPF",
  "CHECKPOINT_RESTORE",
] as const;

/** What a container gets unless it asks otherwise: the set that Docker chose, mask a80425fb. */
const DEFAULT = new Set<string>([
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "SETGID",
  "SETUID",
  "SETPCAP",
  "NET_BIND_SERVICE",
  "NET_RAW",
  "SYS_CHROOT",
  "MKNOD",
  "AUDIT_WRITE",
  "SETFCAP",
]);

/**
 * The container's capabilities as OCI names (`CAP_…`), never more than `bounding`. Drops come first, so `drop: [ALL]` with
 * `add: [NET_BIND_SERVICE]` leaves one; `ALL` stands for every capability.
 */
export function capabilitiesOf(security: SecurityConfig, bounding: ReadonlySet<number>): string[] {
  const add = new Set(security.addCapabilities.map(plainName));
  const drop = new Set(security.dropCapabilities.map(plainName));
  const all = security.privileged || add.has("ALL");
  const granted = CAPABILITIES.filter((name, number) => {
    if (!bounding.has(number)) return false;
    if (add.has(name) || security.privileged) return true;
    if (drop.has(name)) return false;
    return all || (!drop.has("ALL") && DEFAULT.has(name));
  });
  return granted.map((name) => `CAP_${name}`);
}

function plainName(name: string): string {
  return name.toUpperCase().replace(/^CAP_/, "");
}
