import type { Container, ContainerPort, ObjectMeta, Pod, PodAffinity, PodSpec } from "../../generated/types.ts";
import { parseQuantity } from "../../quantity.ts";
import { isDNS1123Label } from "../../validation/names.ts";

/** What the API server warns of when a pod is created; updates are silent. */
export function podWarnings(pod: Pod, old: Pod | undefined): string[] {
  if (old) return [];
  const warnings: string[] = [];
  const texts = isDNS1123Label(pod.metadata.name);
  if (texts.length > 0) {
    const why =
      "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
    warnings.push(`metadata.name: ${why}: [${texts.join(" ")}]`);
  }
  return [...warnings, ...podSpecWarnings(pod.spec, pod.metadata, "")];
}

/** Warnings of a pod or of a template (`path` being its place, `spec.template.`). */
export function podSpecWarnings(spec: PodSpec, meta: Partial<ObjectMeta> | undefined, path: string): string[] {
  const warnings: string[] = [];
  const at = `${path}spec`;
  warnings.push(...nodeLabelWarnings(spec, at));
  for (const [i, constraint] of (spec.topologySpreadConstraints ?? []).entries()) {
    if (constraint.labelSelector) continue;
    warnings.push(
      `${at}.topologySpreadConstraints[${i}].labelSelector: a null labelSelector results in matching no pod`,
    );
  }
  warnings.push(...annotationWarnings(meta?.annotations ?? {}, spec, `${path}metadata.annotations`));
  warnings.push(...volumeWarnings(spec, at), ...duplicateWarnings(spec, at));
  for (const [list, containers] of containerLists(spec)) {
    for (const [i, container] of containers.entries()) {
      warnings.push(...containerWarnings(container, `${at}.${list}[${i}]`));
    }
  }
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    const text = "must be >= 0; negative values are invalid and will be treated as 1";
    warnings.push(`${at}.terminationGracePeriodSeconds: ${text}`);
  }
  return [
    ...warnings,
    ...affinityWarnings(spec.affinity?.podAffinity, `${at}.affinity.podAffinity`),
    ...affinityWarnings(spec.affinity?.podAntiAffinity, `${at}.affinity.podAntiAffinity`),
  ];
}

const containerLists = (spec: PodSpec): [string, readonly Container[]][] => [
  ["initContainers", spec.initContainers ?? []],
  ["containers", spec.containers ?? []],
];

/** Labels of topology that have had another name for long. */
export const OLD_TOPOLOGY_LABELS: Readonly<Record<string, string>> = {
  "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
};

const OLD_LABELS: Readonly<Record<string, string>> = {
  ...OLD_TOPOLOGY_LABELS,
  "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
  "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
};

function nodeLabelWarnings(spec: PodSpec, path: string): string[] {
  return Object.keys(spec.nodeSelector ?? {})
    .filter((key) => OLD_LABELS[key])
    .map((key) => `${path}.nodeSelector[${key}]: ${OLD_LABELS[key]}`);
}

const OLD_ANNOTATIONS: Readonly<Record<string, string>> = {
  "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
};

function annotationWarnings(annotations: Readonly<Record<string, string>>, spec: PodSpec, path: string): string[] {
  const warnings = Object.keys(OLD_ANNOTATIONS)
    .filter((key) => annotations[key] !== undefined)
    .map((key) => `${path}[${key}]: ${OLD_ANNOTATIONS[key]}`);
  const seccomp = ["seccomp.security.alpha.kubernetes.io/pod"];
  for (const [, containers] of containerLists(spec)) {
    seccomp.push(...containers.map(({ name }) => `container.seccomp.security.alpha.kubernetes.io/${name}`));
  }
  for (const key of seccomp) {
    if (annotations[key] === undefined) continue;
    warnings.push(`${path}[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`);
  }
  return warnings;
}

const OLD_VOLUMES: Readonly<Record<string, string>> = {
  photonPersistentDisk: "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
  gitRepo: "gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
  scaleIO: "scaleIO: deprecated in v1.16, non-functional in v1.22+",
  flocker: "flocker: deprecated in v1.22, non-functional in v1.25+",
  storageos: "storageOS: deprecated in v1.22, non-functional in v1.25+",
  quobyte: "quobyte: deprecated in v1.22, non-functional in v1.25+",
  glusterfs: "glusterfs: deprecated in v1.25, non-functional in v1.26+",
  cephfs: "cephfs: deprecated in v1.28, non-functional in v1.31+",
  rbd: "rbd: deprecated in v1.28, non-functional in v1.31+",
};

function volumeWarnings(spec: PodSpec, path: string): string[] {
  return (spec.volumes ?? []).flatMap((volume, i) =>
    Object.keys(volume).flatMap((source) => {
      const text = OLD_VOLUMES[source];
      return text ? [`${path}.volumes[${i}].${text}`] : [];
    }),
  );
}

function duplicateWarnings(spec: PodSpec, path: string): string[] {
  const warnings: string[] = [];
  const addresses = new Set<string>();
  for (const [i, { ip }] of (spec.hostAliases ?? []).entries()) {
    if (addresses.has(ip)) warnings.push(`${path}.hostAliases[${i}].ip: duplicate ip ${JSON.stringify(ip)}`);
    addresses.add(ip);
  }
  const secrets = new Set<string>();
  for (const [i, { name = "" }] of (spec.imagePullSecrets ?? []).entries()) {
    if (name && secrets.has(name))
      warnings.push(`${path}.imagePullSecrets[${i}].name: duplicate name ${JSON.stringify(name)}`);
    if (!name) warnings.push(`${path}.imagePullSecrets[${i}].name: invalid empty name ""`);
    secrets.add(name);
  }
  return warnings;
}

function containerWarnings(container: Container, path: string): string[] {
  const warnings: string[] = [];
  for (const name of ["memory", "ephemeral-storage"]) {
    for (const kind of ["limits", "requests"] as const) {
      const amount = container.resources?.[kind]?.[name];
      if (amount === undefined || (parseQuantity(amount)?.nanos ?? 0n) % 1_000_000_000n === 0n) continue;
      const text = `fractional byte value ${JSON.stringify(amount)} is invalid, must be an integer`;
      warnings.push(`${path}.resources.${kind}[${name}]: ${text}`);
    }
  }
  return [...warnings, ...envWarnings(container, path), ...portWarnings(container.ports ?? [], `${path}.ports`)];
}

/** A variable that is set twice, the later value not using the earlier one. */
function envWarnings(container: Container, path: string): string[] {
  const values = new Map<string, string | undefined>();
  const warnings: string[] = [];
  for (const [i, { name, value }] of (container.env ?? []).entries()) {
    if (values.has(name) && !value?.includes(`$(${name})`)) {
      const text = `hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`;
      warnings.push(`${path}.env[${i}]: ${text}`);
    }
    values.set(name, value);
  }
  return warnings;
}

function portWarnings(ports: readonly ContainerPort[], path: string): string[] {
  const seen = new Map<string, { port: ContainerPort; at: string }[]>();
  const warnings: string[] = [];
  for (const [i, port] of ports.entries()) {
    const at = `${path}[${i}]`;
    const key = `${port.containerPort}/${port.protocol}`;
    const others = seen.get(key) ?? [];
    const other = others.find(
      (o) => (o.port.hostPort ?? 0) === (port.hostPort ?? 0) && (o.port.hostIP ?? "") === (port.hostIP ?? ""),
    );
    const partial = others.find((o) => !o.port.hostPort || !port.hostPort);
    if (other) warnings.push(`${at}: duplicate port definition with ${other.at}`);
    else if (partial) warnings.push(`${at}: overlapping port definition with ${partial.at}`);
    seen.set(key, [...others, { port, at }]);
  }
  return warnings;
}

function affinityWarnings(affinity: PodAffinity | undefined, path: string): string[] {
  const text = "a null labelSelector results in matching no pod";
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return [
    ...required.flatMap(({ labelSelector }, i) =>
      labelSelector ? [] : [`${path}.requiredDuringSchedulingIgnoredDuringExecution[${i}].labelSelector: ${text}`],
    ),
    ...preferred.flatMap(({ podAffinityTerm }, i) =>
      podAffinityTerm.labelSelector
        ? []
        : [`${path}.preferredDuringSchedulingIgnoredDuringExecution[${i}].podAffinityTerm.labelSelector: ${text}`],
    ),
  ];
}
