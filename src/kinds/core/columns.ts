import { compareText } from "../columns/compare-text.ts";
import {
  ageColumn,
  column,
  containerImages,
  containerNames,
  formatLabels,
  nameColumn,
  shortened,
  since,
  templateColumns,
} from "../columns/column.ts";
import type {
  ComponentStatus,
  ConfigMap,
  Endpoints,
  Event,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  PodTemplate,
  ReplicationController,
  ResourceQuota,
  Secret,
  Service,
} from "../generated/types.ts";
import type { Column } from "../scheme.ts";

const count = (map: object | undefined | null): number => Object.keys(map ?? {}).length;

export const configMapColumns: readonly Column[] = [
  nameColumn,
  column<ConfigMap>("Data", (map) => count(map.data) + count(map.binaryData), { description: "Number of entries" }),
  ageColumn,
];
export const secretColumns: readonly Column[] = [
  nameColumn,
  column<Secret>("Type", (secret) => secret.type ?? "", { description: "Type of the secret" }),
  column<Secret>("Data", (secret) => count(secret.data), { description: "Number of entries" }),
  ageColumn,
];
export const serviceAccountColumns: readonly Column[] = [nameColumn, ageColumn];
export const namespaceColumns: readonly Column[] = [
  nameColumn,
  column<Namespace>("Status", (namespace) => namespace.status?.phase ?? ""),
  ageColumn,
];

export const componentStatusColumns: readonly Column[] = [
  nameColumn,
  column<ComponentStatus>("Status", (object) => {
    const healthy = object.conditions?.find(({ type }) => type === "Healthy");
    return healthy ? (healthy.status === "True" ? "Healthy" : "Unhealthy") : "Unknown";
  }),
  column<ComponentStatus>(
    "Message",
    (object) => object.conditions?.find(({ type }) => type === "Healthy")?.message ?? "",
  ),
  column<ComponentStatus>("Error", (object) => object.conditions?.find(({ type }) => type === "Healthy")?.error ?? ""),
];

export const podTemplateColumns: readonly Column[] = [
  nameColumn,
  column<PodTemplate>("Containers", ({ template }) => containerNames(template?.spec.containers)),
  column<PodTemplate>("Images", ({ template }) => containerImages(template?.spec.containers)),
  column<PodTemplate>("Pod Labels", ({ template }) => formatLabels(template?.metadata?.labels), {
    description: "Labels of the template",
  }),
];

export const replicationControllerColumns: readonly Column[] = [
  nameColumn,
  column<ReplicationController>("Desired", (rc) => rc.spec.replicas ?? 0, {
    type: "integer",
    description: "Wanted pods",
  }),
  column<ReplicationController>("Current", (rc) => rc.status?.replicas ?? 0, { type: "integer", description: "Pods" }),
  column<ReplicationController>("Ready", (rc) => rc.status?.readyReplicas ?? 0, {
    type: "integer",
    description: "Ready pods",
  }),
  ageColumn,
  ...templateColumns<ReplicationController>(
    (rc) => rc.spec.template?.spec.containers,
    (rc) => formatLabels(rc.spec.selector),
  ),
];

export const endpointsColumns: readonly Column[] = [
  nameColumn,
  column<Endpoints>("Endpoints", endpointsCell, { description: "Ready addresses with their ports" }),
  ageColumn,
];

function endpointsCell(endpoints: Endpoints): string {
  if ((endpoints.subsets ?? []).length === 0) return "<none>";
  const all = (endpoints.subsets ?? []).flatMap(({ ports, addresses = [] }) =>
    (ports ?? []).length === 0
      ? addresses.map(({ ip }) => ip)
      : (ports ?? []).flatMap(({ port }) =>
          addresses.map(({ ip }) => (ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`)),
        ),
  );
  return shortened(all, 3, "");
}

export const serviceColumns: readonly Column[] = [
  nameColumn,
  column<Service>("Type", ({ spec }) => spec.type ?? "", { description: "How the service is exposed" }),
  column<Service>("Cluster-IP", ({ spec }) => spec.clusterIPs?.[0] || spec.clusterIP || "<none>", {
    description: "Virtual address inside the cluster",
  }),
  column<Service>("External-IP", externalIPCell, { description: "Addresses from outside" }),
  column<Service>("Port(s)", portsCell, { description: "Ports, with their node ports" }),
  ageColumn,
  column<Service>("Selector", ({ spec }) => formatLabels(spec.selector), { wide: true }),
];

function externalIPCell({ spec, status }: Service): string {
  const external = spec.externalIPs ?? [];
  switch (spec.type) {
    case "ClusterIP":
    case "NodePort":
      return external.join(",") || "<none>";
    case "LoadBalancer": {
      const ingress = (status?.loadBalancer?.ingress ?? [])
        .map(({ ip, hostname }) => ip || hostname || "")
        .filter(Boolean);
      return [...[...new Set(ingress)].sort(compareText), ...external].join(",") || "<pending>";
    }
    case "ExternalName":
      return spec.externalName ?? "";
    default:
      return "<unknown>";
  }
}

function portsCell({ spec }: Service): string {
  const pieces = (spec.ports ?? []).map(({ port, nodePort, protocol }) =>
    nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
  );
  return pieces.join(",") || "<none>";
}

const address = (node: Node, type: string): string =>
  node.status?.addresses?.find((item) => item.type === type)?.address ?? "<none>";

export const nodeColumns: readonly Column[] = [
  nameColumn,
  column<Node>("Status", nodeStatusCell),
  column<Node>("Roles", nodeRolesCell, { description: "Roles, from its labels" }),
  ageColumn,
  column<Node>("Version", (node) => node.status?.nodeInfo?.kubeletVersion ?? "", {
    description: "Version of its kubelet",
  }),
  column<Node>("Internal-IP", (node) => address(node, "InternalIP"), { wide: true }),
  column<Node>("External-IP", (node) => address(node, "ExternalIP"), { wide: true }),
  column<Node>("OS-Image", (node) => node.status?.nodeInfo?.osImage || "<unknown>", { wide: true }),
  column<Node>(
    "Kernel-Version",
    (node) => {
      const { kernelVersion, architecture } = node.status?.nodeInfo ?? {};
      return `${kernelVersion || "<unknown>"}${architecture ? ` (${architecture})` : ""}`;
    },
    { wide: true },
  ),
  column<Node>("Container-Runtime", (node) => node.status?.nodeInfo?.containerRuntimeVersion || "<unknown>", {
    wide: true,
  }),
];

function nodeStatusCell(node: Node): string {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  const status = ready ? (ready.status === "True" ? "Ready" : "NotReady") : "Unknown";
  return node.spec?.unschedulable ? `${status},SchedulingDisabled` : status;
}

function nodeRolesCell(node: Node): string {
  const prefix = "node-role.kubernetes.io/";
  const roles = Object.entries(node.metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(prefix)) return key.length > prefix.length ? [key.slice(prefix.length)] : [];
    return key === "kubernetes.io/role" && value ? [value] : [];
  });
  return [...new Set(roles)].sort(compareText).join(",") || "<none>";
}

const MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};
const accessModes = (modes: readonly string[] | undefined): string =>
  Object.keys(MODES)
    .filter((mode) => modes?.includes(mode))
    .map((mode) => MODES[mode])
    .join(",");
const BETA_CLASS = "volume.beta.kubernetes.io/storage-class";
const storageClass = (object: PersistentVolume | PersistentVolumeClaim): string =>
  object.metadata.annotations?.[BETA_CLASS] ?? object.spec.storageClassName ?? "";

export const persistentVolumeColumns: readonly Column[] = [
  nameColumn,
  column<PersistentVolume>("Capacity", ({ spec }) => spec.capacity?.storage ?? "0"),
  column<PersistentVolume>("Access Modes", ({ spec }) => accessModes(spec.accessModes)),
  column<PersistentVolume>("Reclaim Policy", ({ spec }) => spec.persistentVolumeReclaimPolicy ?? ""),
  column<PersistentVolume>("Status", ({ metadata, status }) =>
    metadata.deletionTimestamp ? "Terminating" : (status?.phase ?? ""),
  ),
  column<PersistentVolume>("Claim", ({ spec }) =>
    spec.claimRef ? `${spec.claimRef.namespace ?? ""}/${spec.claimRef.name ?? ""}` : "",
  ),
  column<PersistentVolume>("StorageClass", storageClass),
  column<PersistentVolume>("VolumeAttributesClass", ({ spec }) => spec.volumeAttributesClassName ?? "<unset>"),
  column<PersistentVolume>("Reason", ({ status }) => status?.reason ?? ""),
  ageColumn,
  column<PersistentVolume>("VolumeMode", ({ spec }) => spec.volumeMode ?? "<unset>", { wide: true }),
];

export const persistentVolumeClaimColumns: readonly Column[] = [
  nameColumn,
  column<PersistentVolumeClaim>("Status", ({ metadata, status }) =>
    metadata.deletionTimestamp ? "Terminating" : (status?.phase ?? ""),
  ),
  column<PersistentVolumeClaim>("Volume", ({ spec }) => spec.volumeName ?? ""),
  column<PersistentVolumeClaim>("Capacity", ({ spec, status }) =>
    spec.volumeName ? (status?.capacity?.storage ?? "0") : "",
  ),
  column<PersistentVolumeClaim>("Access Modes", ({ spec, status }) =>
    spec.volumeName ? accessModes(status?.accessModes) : "",
  ),
  column<PersistentVolumeClaim>("StorageClass", storageClass),
  column<PersistentVolumeClaim>("VolumeAttributesClass", ({ spec }) => spec.volumeAttributesClassName ?? "<unset>"),
  ageColumn,
  column<PersistentVolumeClaim>("VolumeMode", ({ spec }) => spec.volumeMode ?? "<unset>", { wide: true }),
];

const quotaCell =
  (limits: boolean) =>
  ({ status }: ResourceQuota): string =>
    Object.keys(status?.hard ?? {})
      .filter((name) => name.startsWith("limits.") === limits)
      .sort(compareText)
      .map((name) => `${name}: ${status?.used?.[name] ?? "0"}/${status?.hard?.[name] ?? "0"}`)
      .join(", ");

export const resourceQuotaColumns: readonly Column[] = [
  nameColumn,
  column<ResourceQuota>("Request", quotaCell(false), { description: "Used and allowed requests and counts" }),
  column<ResourceQuota>("Limit", quotaCell(true), { description: "Used and allowed limits" }),
  ageColumn,
];

const firstSeen = (event: Event, now: number): string => since(event.firstTimestamp ?? event.eventTime, now);

export const eventColumns: readonly Column[] = [
  column<Event>("Last Seen", (event, now) => {
    if (event.series) return since(event.series.lastObservedTime, now);
    return event.lastTimestamp ? since(event.lastTimestamp, now) : firstSeen(event, now);
  }),
  column<Event>("Type", ({ type }) => type ?? ""),
  column<Event>("Reason", ({ reason }) => reason ?? ""),
  column<Event>("Object", ({ involvedObject: { kind = "", name } }) =>
    name ? `${kind.toLowerCase()}/${name}` : kind.toLowerCase(),
  ),
  column<Event>("Subobject", ({ involvedObject }) => involvedObject.fieldPath ?? "", { wide: true }),
  column<Event>(
    "Source",
    ({ source, reportingComponent, reportingInstance }) =>
      [source?.component || reportingComponent || "", source?.host || reportingInstance || ""]
        .filter((part, i) => i === 0 || part)
        .join(", "),
    { wide: true },
  ),
  column<Event>("Message", ({ message }) => (message ?? "").trim()),
  column<Event>("First Seen", firstSeen, { wide: true }),
  column<Event>("Count", ({ series, count: times }) => series?.count ?? (times || 1), { wide: true }),
  column<Event>("Name", ({ metadata }) => metadata.name, { format: "name", wide: true }),
];
