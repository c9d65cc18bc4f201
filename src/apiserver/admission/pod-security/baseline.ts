import type { DeepReadonly } from "#base";
import type { LifecycleHandler, SELinuxOptions } from "#kinds";
import {
  type Check,
  containersOf,
  named,
  namesWhere,
  plural,
  quoted,
  setters,
  sortedSet,
  type Subject,
  unlessOwnUsers,
  type Violation,
  violation,
} from "./check.ts";

/** Sysctls that a pod may set, by the minor version since which. */
const SYSCTLS: readonly (readonly [minor: number, names: string])[] = [
  [
    0,
    "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies net.ipv4.ping_group_range net.ipv4.ip_unprivileged_port_start",
  ],
  [27, "net.ipv4.ip_local_reserved_ports"],
  [
    29,
    "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes",
  ],
  [32, "net.ipv4.tcp_rmem net.ipv4.tcp_wmem"],
];

/** Level `baseline`, by id. https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline */
export const baselineChecks: readonly Check[] = [
  { id: "appArmorProfile", since: [[0, appArmorProfile]] },
  { id: "capabilities_baseline", since: [[0, capabilities]] },
  { id: "hostNamespaces", since: [[0, hostNamespaces]] },
  { id: "hostPathVolumes", since: [[0, hostPathVolumes]] },
  { id: "hostPorts", since: [[0, hostPorts]] },
  { id: "hostProbesAndHostLifecycle", since: [[34, hostProbes]] },
  { id: "privileged", since: [[0, privileged]] },
  {
    id: "procMount",
    since: [
      [0, procMount],
      [35, unlessOwnUsers(procMount)],
    ],
  },
  {
    id: "seLinuxOptions",
    since: [
      [0, seLinuxOptions([])],
      [31, seLinuxOptions(["container_engine_t"])],
    ],
  },
  {
    id: "seccompProfile_baseline",
    since: [
      [0, seccompAnnotations],
      [19, seccompProfile],
    ],
  },
  { id: "sysctls", since: sysctls() },
  { id: "windowsHostProcess", since: [[0, windowsHostProcess]] },
];

const APPARMOR_TYPES = ["RuntimeDefault", "Localhost"];
const APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/";

function appArmorProfile(subject: Subject): Violation | undefined {
  const { annotations, spec } = subject;
  const bad = (type: string | undefined) => type !== undefined && !APPARMOR_TYPES.includes(type);
  const ofPod = spec.securityContext?.appArmorProfile?.type;
  const containers = containersOf(subject).filter(({ securityContext }) => bad(securityContext?.appArmorProfile?.type));
  const values = sortedSet([
    ...(bad(ofPod) ? [ofPod] : []),
    ...containers.map(({ securityContext }) => securityContext?.appArmorProfile?.type),
  ]);
  const forbidden = Object.entries(annotations)
    .filter(([key, value]) => key.startsWith(APPARMOR_ANNOTATION) && !/^$|^runtime\/default$|^localhost\//.test(value))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .sort();
  const who = [
    setters(
      bad(ofPod),
      containers.map(({ name }) => name),
    ),
    forbidden.length > 0 ? plural("annotation", forbidden.length) : "",
  ].filter(Boolean);
  if (who.length === 0) return undefined;
  const all = [...values, ...forbidden];
  return violation(
    plural("forbidden AppArmor profile", all.length),
    `${who.join(" and ")} must not set AppArmor profile type to ${quoted(all)}`,
  );
}

const CAPABILITIES = new Set(
  "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT".split(
    " ",
  ),
);

function capabilities(subject: Subject): Violation | undefined {
  const bad = (added: readonly string[] | undefined) => (added ?? []).filter((name) => !CAPABILITIES.has(name));
  const containers = containersOf(subject).filter(
    ({ securityContext }) => bad(securityContext?.capabilities?.add).length > 0,
  );
  if (containers.length === 0) return undefined;
  const added = sortedSet(containers.flatMap(({ securityContext }) => bad(securityContext?.capabilities?.add)));
  const names = containers.map(({ name }) => name);
  return violation(
    "non-default capabilities",
    `${named("container", names)} must not include ${quoted(added)} in securityContext.capabilities.add`,
  );
}

function hostNamespaces({ spec }: Subject): Violation | undefined {
  const used = (["hostNetwork", "hostPID", "hostIPC"] as const).filter((name) => spec[name]);
  return used.length > 0 ? violation("host namespaces", used.map((name) => `${name}=true`).join(", ")) : undefined;
}

function hostPathVolumes({ spec }: Subject): Violation | undefined {
  const names = (spec.volumes ?? []).filter(({ hostPath }) => hostPath).map(({ name }) => name);
  return names.length > 0 ? violation("hostPath volumes", named("volume", names)) : undefined;
}

function hostPorts(subject: Subject): Violation | undefined {
  const containers = containersOf(subject).filter(({ ports }) => ports?.some(({ hostPort }) => hostPort));
  if (containers.length === 0) return undefined;
  const ports = sortedSet(
    containers.flatMap((one) => one.ports!.filter(({ hostPort }) => hostPort).map(({ hostPort }) => String(hostPort))),
  );
  return uses(
    "container",
    containers.map(({ name }) => name),
    "hostPort",
    plural("hostPort", ports.length),
    ports.join(", "),
  );
}

function uses(word: string, names: readonly string[], reason: string, what: string, values: string): Violation {
  return violation(reason, `${named(word, names)} ${names.length === 1 ? "uses" : "use"} ${what} ${values}`);
}

type Handler = DeepReadonly<Pick<LifecycleHandler, "httpGet" | "tcpSocket">> | undefined;

function hostProbes(subject: Subject): Violation | undefined {
  const hosts = (handler: Handler) => [handler?.httpGet?.host, handler?.tcpSocket?.host].filter((host) => !!host);
  const found = containersOf(subject).map(({ name, livenessProbe, readinessProbe, startupProbe, lifecycle }) => ({
    name,
    hosts: [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop].flatMap(hosts),
  }));
  const bad = found.filter((one) => one.hosts.length > 0);
  if (bad.length === 0) return undefined;
  const all = sortedSet(bad.flatMap((one) => one.hosts));
  const what = "probe or lifecycle host";
  return uses("container", sortedSet(bad.map(({ name }) => name)), what, plural(what, all.length), quoted(all));
}

function privileged(subject: Subject): Violation | undefined {
  const names = namesWhere(subject, ({ securityContext }) => securityContext?.privileged === true);
  if (names.length === 0) return undefined;
  return violation("privileged", `${named("container", names)} must not set securityContext.privileged=true`);
}

export function procMount(subject: Subject): Violation | undefined {
  const containers = containersOf(subject).filter(
    ({ securityContext }) => (securityContext?.procMount ?? "Default") !== "Default",
  );
  if (containers.length === 0) return undefined;
  const types = sortedSet(containers.map(({ securityContext }) => securityContext?.procMount));
  const names = containers.map(({ name }) => name);
  return violation(
    "procMount",
    `${named("container", names)} must not set securityContext.procMount to ${quoted(types)}`,
  );
}

function seLinuxOptions(more: readonly string[]) {
  const allowed = new Set(["", "container_t", "container_init_t", "container_kvm_t", ...more]);
  const bad = (options: DeepReadonly<SELinuxOptions> | undefined) =>
    options && (!allowed.has(options.type ?? "") || !!options.user || !!options.role) ? [options] : [];
  return (subject: Subject): Violation | undefined => {
    const ofPod = bad(subject.spec.securityContext?.seLinuxOptions);
    const containers = containersOf(subject).filter((one) => bad(one.securityContext?.seLinuxOptions).length > 0);
    const all = [...ofPod, ...containers.flatMap((one) => bad(one.securityContext?.seLinuxOptions))];
    if (all.length === 0) return undefined;
    const types = sortedSet(all.map(({ type }) => type)).filter((type) => !allowed.has(type));
    const what = [
      ...(types.length > 0 ? [named("type", types)] : []),
      ...(all.some(({ user }) => user) ? ["user may not be set"] : []),
      ...(all.some(({ role }) => role) ? ["role may not be set"] : []),
    ];
    const who = setters(
      ofPod.length > 0,
      containers.map(({ name }) => name),
    );
    return violation("seLinuxOptions", `${who} set forbidden securityContext.seLinuxOptions: ${what.join("; ")}`);
  };
}

const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";

/** Before v1.19 profiles were annotations. */
function seccompAnnotations(subject: Subject): Violation | undefined {
  const keys = [SECCOMP_POD, ...containersOf(subject).map(({ name }) => SECCOMP_CONTAINER + name)];
  const bad = keys.filter((key) => {
    const value = subject.annotations[key];
    return value !== undefined && !/^runtime\/default$|^docker\/default$|^localhost\//.test(value);
  });
  if (bad.length === 0) return undefined;
  const texts = sortedSet(bad.map((key) => `${key}=${JSON.stringify(subject.annotations[key])}`));
  return violation("seccompProfile", `forbidden ${plural("annotation", texts.length)} ${texts.join(", ")}`);
}

export const isForbiddenSeccomp = (type: string | undefined): boolean =>
  type !== undefined && type !== "Localhost" && type !== "RuntimeDefault";

export function seccompProfile(subject: Subject): Violation | undefined {
  const ofPod = subject.spec.securityContext?.seccompProfile?.type;
  const containers = containersOf(subject).filter(({ securityContext }) =>
    isForbiddenSeccomp(securityContext?.seccompProfile?.type),
  );
  const who = setters(
    isForbiddenSeccomp(ofPod),
    containers.map(({ name }) => name),
  );
  if (!who) return undefined;
  const values = sortedSet([
    ...(isForbiddenSeccomp(ofPod) ? [ofPod] : []),
    ...containers.map(({ securityContext }) => securityContext?.seccompProfile?.type),
  ]);
  return violation("seccompProfile", `${who} must not set securityContext.seccompProfile.type to ${quoted(values)}`);
}

function sysctls(): Check["since"] {
  return SYSCTLS.map(([minor], i) => {
    const allowed = new Set(SYSCTLS.slice(0, i + 1).flatMap(([, names]) => names.split(" ")));
    return [
      minor,
      ({ spec }) => {
        const bad = (spec.securityContext?.sysctls ?? []).filter(({ name }) => !allowed.has(name));
        return bad.length > 0 ? violation("forbidden sysctls", bad.map(({ name }) => name).join(", ")) : undefined;
      },
    ];
  });
}

function windowsHostProcess(subject: Subject): Violation | undefined {
  const names = namesWhere(subject, ({ securityContext }) => securityContext?.windowsOptions?.hostProcess === true);
  const who = setters(subject.spec.securityContext?.windowsOptions?.hostProcess === true, names);
  if (!who) return undefined;
  return violation("hostProcess", `${who} must not set securityContext.windowsOptions.hostProcess=true`);
}
