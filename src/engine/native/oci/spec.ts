import type { ContainerConfig, ImageConfig, LinuxResources, SandboxConfig } from "../../port.ts";
import { capabilitiesOf } from "./capabilities.ts";
import type { ResolvedUser } from "./user.ts";

/** What goes into an OCI `config.json`, decided elsewhere: paths are those of the host, users are resolved. */
export interface SpecInput {
  readonly sandbox: SandboxConfig;
  readonly container: ContainerConfig;
  readonly image: ImageConfig;
  readonly user: ResolvedUser;
  /** Files and namespaces of the sandbox; a missing one means the host's. */
  readonly namespaces: {
    readonly net?: string;
    readonly uts?: string;
    readonly ipc?: string;
    readonly pid?: string | "host" | "own";
  };
  /** /etc/hosts, /etc/resolv.conf, /dev/shm, volumes: in mount order, already safe to bind. */
  readonly mounts: readonly OCIMount[];
  readonly rootfs: string;
  readonly rootPropagation?: string;
  readonly cgroupsPath: string;
  readonly cgroupVersion: 1 | 2;
  readonly bounding: ReadonlySet<number>;
  readonly leastOomScore: number;
  readonly seccomp?: { readonly profile: unknown; readonly compiled?: string };
  /** Device nodes: the host's for a privileged container, else those asked for. */
  readonly devices: readonly OCIDevice[];
}

export interface OCIMount {
  readonly destination: string;
  readonly type?: string;
  readonly source: string;
  readonly options: readonly string[];
}

export interface OCIDevice {
  readonly path: string;
  readonly type: "c" | "b";
  readonly major: number;
  readonly minor: number;
  readonly fileMode: number;
  readonly uid: number;
  readonly gid: number;
  /** cgroup access: of `r`, `w`, `m`. */
  readonly access: string;
}

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Parts of /proc and /sys that tell of, or reach into, the host; as Docker and containerd choose. */
const MASKED_PATHS = [
  "/proc/asound",
  "/proc/interrupts",
  "/proc/acpi",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];
const READONLY_PATHS = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** The `config.json` of one container; https://github.com/opencontainers/runtime-spec. */
export function specOf(input: SpecInput): Record<string, unknown> {
  const { container, image, user } = input;
  const { security } = container;
  const capabilities = capabilitiesOf(security, input.bounding);
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: container.tty,
      user: { uid: user.uid, gid: user.gid, additionalGids: user.supplementalGroups, umask: 0o022 },
      args: commandOf(container, image),
      env: environmentOf(input),
      cwd: container.workingDir || image.WorkingDir || "/",
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: security.noNewPrivileges,
      ...apparmorOf(security.apparmor),
      oomScoreAdj: Math.max(container.resources.oomScoreAdj ?? 0, input.leastOomScore),
    },
    root: { path: input.rootfs, readonly: security.readOnlyRootfs },
    mounts: mountsOf(input),
    annotations: annotationsOf(input),
    linux: linuxOf(input),
  };
}

/** `localhost/NAME` is a profile that the host has loaded; the other values mean what happens anyhow without AppArmor's own choice. */
function apparmorOf(profile: string | undefined): { apparmorProfile?: string } {
  return profile?.startsWith("localhost/") ? { apparmorProfile: profile.slice("localhost/".length) } : {};
}

function linuxOf(input: SpecInput): Record<string, unknown> {
  const { privileged, maskedPaths, readonlyPaths } = input.container.security;
  return {
    namespaces: namespacesOf(input),
    cgroupsPath: input.cgroupsPath,
    resources: resourcesOf(input),
    devices: input.devices.map(({ access: _, ...device }) => device),
    ...(input.rootPropagation === undefined ? {} : { rootfsPropagation: input.rootPropagation }),
    ...(input.seccomp && !privileged ? { seccomp: input.seccomp.profile } : {}),
    maskedPaths: privileged ? [] : (maskedPaths ?? MASKED_PATHS),
    readonlyPaths: privileged ? [] : (readonlyPaths ?? READONLY_PATHS),
  };
}

/**
 * As Kubernetes documents it: `command` replaces ENTRYPOINT and drops CMD; `args` replaces CMD.
 * https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/
 */
export function commandOf(container: Pick<ContainerConfig, "command" | "args">, image: ImageConfig): string[] {
  const hasCommand = container.command !== undefined && container.command.length > 0;
  const hasArgs = container.args !== undefined && container.args.length > 0;
  const entry = hasCommand ? container.command : (image.Entrypoint ?? []);
  const rest = hasArgs ? container.args : hasCommand ? [] : (image.Cmd ?? []);
  return [...entry, ...rest];
}

function environmentOf({ container, image, sandbox, user }: SpecInput): string[] {
  const values = new Map<string, string>([["PATH", DEFAULT_PATH]]);
  if (container.tty) values.set("TERM", "xterm");
  values.set("HOSTNAME", sandbox.hostname);
  for (const entry of image.Env ?? []) {
    const at = entry.indexOf("=");
    if (at > 0) values.set(entry.slice(0, at), entry.slice(at + 1));
  }
  for (const { name, value } of container.env) values.set(name, value);
  if (!values.has("HOME")) values.set("HOME", user.home);
  return [...values].map(([name, value]) => `${name}=${value}`);
}

/** crun takes a compiled filter from this annotation and skips the 20 ms that compiling costs. */
function annotationsOf({ seccomp, container }: SpecInput): Record<string, string> {
  const compiled = container.security.privileged ? undefined : seccomp?.compiled;
  return compiled === undefined ? {} : { "run.oci.seccomp_bpf_data": compiled };
}

function namespacesOf({ namespaces }: SpecInput): { type: string; path?: string }[] {
  const list: { type: string; path?: string }[] = [{ type: "mount" }];
  if (namespaces.net !== undefined) list.push({ type: "network", path: namespaces.net });
  if (namespaces.uts !== undefined) list.push({ type: "uts", path: namespaces.uts });
  if (namespaces.ipc !== undefined) list.push({ type: "ipc", path: namespaces.ipc });
  if (namespaces.pid === "own") list.push({ type: "pid" });
  else if (namespaces.pid !== undefined && namespaces.pid !== "host") list.push({ type: "pid", path: namespaces.pid });
  return list;
}

function mountsOf(input: SpecInput): OCIMount[] {
  const { privileged } = input.container.security;
  const access = privileged ? "rw" : "ro";
  const defaults: OCIMount[] = [
    { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "noexec", "nodev"] },
    {
      destination: "/dev",
      type: "tmpfs",
      source: "tmpfs",
      options: ["nosuid", "strictatime", "mode=755", "size=65536k"],
    },
    {
      destination: "/dev/pts",
      type: "devpts",
      source: "devpts",
      options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
    },
    { destination: "/dev/mqueue", type: "mqueue", source: "mqueue", options: ["nosuid", "noexec", "nodev"] },
    { destination: "/sys", type: "sysfs", source: "sysfs", options: ["nosuid", "noexec", "nodev", access] },
    {
      destination: "/sys/fs/cgroup",
      type: "cgroup",
      source: "cgroup",
      options: ["nosuid", "noexec", "nodev", "relatime", access],
    },
  ];
  const taken = new Set(input.mounts.map((mount) => mount.destination));
  // A stable order by depth: what is mounted above comes before what is mounted below it.
  return [...defaults.filter((mount) => !taken.has(mount.destination)), ...input.mounts].toSorted(
    (a, b) => depth(a) - depth(b),
  );
}

function depth({ destination }: OCIMount): number {
  return destination.split("/").filter(Boolean).length;
}

function resourcesOf(input: SpecInput): Record<string, unknown> {
  const { resources, security } = input.container;
  const rule = (device: OCIDevice) => ({
    allow: true,
    type: device.type,
    major: device.major,
    minor: device.minor,
    access: device.access,
  });
  const devices = security.privileged
    ? [{ allow: true, access: "rwm" }]
    : [{ allow: false, access: "rwm" }, ...input.devices.map(rule)];
  return {
    devices,
    ...limitsOf(resources),
    ...(input.cgroupVersion === 2 && resources.memoryLimitBytes ? { unified: { "memory.oom.group": "1" } } : {}),
  };
}

function limitsOf(resources: LinuxResources): Record<string, unknown> {
  const cpu = {
    ...(resources.cpuShares === undefined ? {} : { shares: Math.max(2, resources.cpuShares) }),
    ...(resources.cpuQuota === undefined
      ? {}
      : { quota: resources.cpuQuota || -1, period: resources.cpuPeriod ?? 100_000 }),
    ...(resources.cpusetCpus ? { cpus: resources.cpusetCpus } : {}),
  };
  return {
    ...(Object.keys(cpu).length > 0 ? { cpu } : {}),
    ...(resources.memoryLimitBytes ? { memory: { limit: resources.memoryLimitBytes } } : {}),
    ...(resources.pidsLimit === undefined ? {} : { pids: { limit: resources.pidsLimit } }),
    ...(resources.hugepageLimits?.length
      ? { hugepageLimits: resources.hugepageLimits.map(({ pageSize, limit }) => ({ pageSize, limit })) }
      : {}),
  };
}
