import type {
  Endpoints,
  LimitRange,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  PodTemplate,
  ReplicationController,
  Secret,
  Service,
} from "../generated/types.ts";
import { setPodSpecDefaults } from "./pod/defaults.ts";

export function setServiceDefaults({ spec, status }: Service): void {
  spec.sessionAffinity ||= "None";
  if (spec.sessionAffinity === "None") delete spec.sessionAffinityConfig;
  if (spec.sessionAffinity === "ClientIP" && spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined) {
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: 10800 } };
  }
  spec.type ||= "ClusterIP";
  for (const port of spec.ports ?? []) port.targetPort ||= port.port;
  const external =
    spec.type === "LoadBalancer" ||
    spec.type === "NodePort" ||
    (spec.type === "ClusterIP" && (spec.externalIPs ?? []).length > 0);
  if (external) spec.externalTrafficPolicy ||= "Cluster";
  if (spec.type !== "ExternalName") spec.internalTrafficPolicy ??= "Cluster";
  if (spec.type !== "LoadBalancer") return;
  spec.allocateLoadBalancerNodePorts ??= true;
  for (const ingress of status?.loadBalancer?.ingress ?? []) if (ingress.ip) ingress.ipMode ??= "VIP";
}

export function setReplicationControllerDefaults(rc: ReplicationController): void {
  const labels = rc.spec.template?.metadata?.labels;
  if (labels) {
    if (Object.keys(rc.spec.selector ?? {}).length === 0) rc.spec.selector = { ...labels };
    if (Object.keys(rc.metadata.labels ?? {}).length === 0) rc.metadata.labels = { ...labels };
  }
  if (rc.spec.template) setPodSpecDefaults(rc.spec.template.spec);
}

export function setPodTemplateDefaults({ template }: PodTemplate): void {
  if (template) setPodSpecDefaults(template.spec);
}

export function setSecretDefaults(secret: Secret): void {
  secret.type ||= "Opaque";
  if (!secret.stringData) return;
  const data: Record<string, string> = { ...secret.data };
  for (const [key, text] of Object.entries(secret.stringData)) data[key] = Buffer.from(text).toString("base64");
  secret.data = data;
  delete secret.stringData;
}

export function setNamespaceDefaults(namespace: Namespace): void {
  const { metadata } = namespace;
  if (metadata.name) metadata.labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name };
  namespace.status ??= {};
  namespace.status.phase ||= "Active";
}

export function setNodeDefaults({ status }: Node): void {
  if (status?.capacity && !status.allocatable) status.allocatable = { ...status.capacity };
}

export function setPersistentVolumeDefaults(volume: PersistentVolume): void {
  volume.status ??= {};
  volume.status.phase ||= "Pending";
  volume.spec.persistentVolumeReclaimPolicy ||= "Retain";
  volume.spec.volumeMode ??= "Filesystem";
  if (volume.spec.hostPath) volume.spec.hostPath.type ??= "";
}

export function setPersistentVolumeClaimDefaults(claim: PersistentVolumeClaim): void {
  claim.status ??= {};
  claim.status.phase ||= "Pending";
  claim.spec.volumeMode ??= "Filesystem";
}

export function setEndpointsDefaults({ subsets }: Endpoints): void {
  for (const { ports } of subsets ?? []) for (const port of ports ?? []) port.protocol ||= "TCP";
}

export function setLimitRangeDefaults({ spec }: LimitRange): void {
  for (const item of spec?.limits ?? []) {
    if (item.type !== "Container") continue;
    const limits = { ...item.max, ...item.default };
    const requests = { ...item.min, ...limits, ...item.defaultRequest };
    if (Object.keys(limits).length > 0) item.default = limits;
    if (Object.keys(requests).length > 0) item.defaultRequest = requests;
  }
}
