import { ageColumn, column, nameColumn, selectorCell, shortened } from "../columns/column.ts";
import { compareText } from "../columns/compare-text.ts";
import { humanDuration } from "../columns/human-duration.ts";
import type {
  APIService,
  CertificateSigningRequest,
  ClusterRoleBinding,
  CSIDriver,
  CSINode,
  EndpointSlice,
  FlowSchema,
  Ingress,
  IngressClass,
  IPAddress,
  Lease,
  MutatingAdmissionPolicy,
  MutatingAdmissionPolicyBinding,
  MutatingWebhookConfiguration,
  NetworkPolicy,
  PodDisruptionBudget,
  PriorityClass,
  PriorityLevelConfiguration,
  ResourceClaim,
  ResourceSlice,
  RoleBinding,
  RuntimeClass,
  ServiceCIDR,
  StorageClass,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  ValidatingWebhookConfiguration,
  VolumeAttachment,
  VolumeAttributesClass,
} from "../generated/types.ts";
import type { Column } from "../scheme.ts";
import { formatSelector } from "../selector.ts";

const isDefault = (metadata: { annotations?: Record<string, string> }, annotation: string): boolean =>
  metadata.annotations?.[annotation] === "true";

export const nameAndAge: readonly Column[] = [nameColumn, ageColumn];

export const apiServiceColumns: readonly Column[] = [
  nameColumn,
  column<APIService>("Service", ({ spec }) =>
    spec.service ? `${spec.service.namespace ?? ""}/${spec.service.name ?? ""}` : "Local",
  ),
  column<APIService>("Available", ({ status }) => {
    const available = status?.conditions?.find(({ type }) => type === "Available");
    if (!available) return "Unknown";
    return available.status !== "True" && available.reason
      ? `${available.status} (${available.reason})`
      : available.status;
  }),
  ageColumn,
];

export const certificateSigningRequestColumns: readonly Column[] = [
  nameColumn,
  ageColumn,
  column<CertificateSigningRequest>("SignerName", ({ spec }) => spec.signerName || "<none>"),
  column<CertificateSigningRequest>("Requestor", ({ spec }) => spec.username ?? ""),
  column<CertificateSigningRequest>("RequestedDuration", ({ spec }) =>
    spec.expirationSeconds === undefined ? "<none>" : humanDuration(spec.expirationSeconds * 1000),
  ),
  column<CertificateSigningRequest>("Condition", ({ status }) => {
    const has = (type: string) => status?.conditions?.some((c) => c.type === type) ?? false;
    const decision = has("Denied") ? "Denied" : has("Approved") ? "Approved" : "Pending";
    return `${decision}${has("Failed") ? ",Failed" : ""}${status?.certificate ? ",Issued" : ""}`;
  }),
];

export const ingressClassColumns: readonly Column[] = [
  column<IngressClass>(
    "Name",
    ({ metadata }) =>
      isDefault(metadata, "ingressclass.kubernetes.io/is-default-class") ? `${metadata.name} (default)` : metadata.name,
    { format: "name" },
  ),
  column<IngressClass>("Controller", ({ spec }) => spec?.controller ?? ""),
  column<IngressClass>("Parameters", ({ spec }) => {
    const parameters = spec?.parameters;
    if (!parameters) return "<none>";
    return `${parameters.kind}${parameters.apiGroup === undefined ? "" : `.${parameters.apiGroup}`}/${parameters.name}`;
  }),
  ageColumn,
];

export const ingressColumns: readonly Column[] = [
  nameColumn,
  column<Ingress>("Class", ({ spec }) => spec?.ingressClassName ?? "<none>"),
  column<Ingress>("Hosts", ({ spec }) => {
    const rules = spec?.rules ?? [];
    const hosts = rules.slice(0, 3).flatMap(({ host }) => (host ? [host] : []));
    if (hosts.length === 0) return "*";
    return rules.length > 3 && hosts.length === 3
      ? `${hosts.join(",")} + ${rules.length - 3} more...`
      : hosts.join(",");
  }),
  column<Ingress>("Address", ({ status }) => {
    const points = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || "");
    return [...new Set(points.filter(Boolean))].sort(compareText).join(",");
  }),
  column<Ingress>("Ports", ({ spec }) => ((spec?.tls ?? []).length > 0 ? "80, 443" : "80")),
  ageColumn,
];

export const ipAddressColumns: readonly Column[] = [
  nameColumn,
  column<IPAddress>("ParentRef", ({ spec }) => {
    const parent = spec?.parentRef;
    if (!parent) return "<none>";
    const resource = `${parent.resource}${parent.group ? `.${parent.group}` : ""}`.toLowerCase();
    return [resource, ...(parent.namespace ? [parent.namespace] : []), parent.name].join("/");
  }),
];

export const networkPolicyColumns: readonly Column[] = [
  nameColumn,
  column<NetworkPolicy>("Pod-Selector", ({ spec }) => selectorCell(spec?.podSelector)),
  ageColumn,
];

export const serviceCIDRColumns: readonly Column[] = [
  nameColumn,
  column<ServiceCIDR>("CIDRs", ({ spec }) => (spec?.cidrs ?? []).join(",")),
  ageColumn,
];

export const endpointSliceColumns: readonly Column[] = [
  nameColumn,
  column<EndpointSlice>("AddressType", ({ addressType }) => addressType),
  column<EndpointSlice>("Ports", ({ ports }) =>
    shortened(
      (ports ?? []).map(({ port, name }) => String(port ?? name ?? "*")),
      3,
      "<unset>",
    ),
  ),
  column<EndpointSlice>("Endpoints", ({ endpoints }) =>
    shortened(
      (endpoints ?? []).flatMap(({ addresses }) => addresses ?? []),
      3,
      "<unset>",
    ),
  ),
  ageColumn,
];

export const podDisruptionBudgetColumns: readonly Column[] = [
  nameColumn,
  column<PodDisruptionBudget>("Min Available", ({ spec }) => String(spec?.minAvailable ?? "N/A")),
  column<PodDisruptionBudget>("Max Unavailable", ({ spec }) => String(spec?.maxUnavailable ?? "N/A")),
  column<PodDisruptionBudget>("Allowed Disruptions", ({ status }) => status?.disruptionsAllowed ?? 0, {
    type: "integer",
  }),
  ageColumn,
];

const subjects =
  (kind: string) =>
  (binding: RoleBinding | ClusterRoleBinding): string =>
    (binding.subjects ?? [])
      .filter((subject) => subject.kind === kind)
      .map(({ name, namespace }) => (kind === "ServiceAccount" && namespace ? `${namespace}/${name}` : name))
      .join(", ");

export const roleBindingColumns: readonly Column[] = [
  nameColumn,
  column<RoleBinding>("Role", ({ roleRef }) => `${roleRef.kind}/${roleRef.name}`),
  ageColumn,
  column<RoleBinding>("Users", subjects("User"), { wide: true }),
  column<RoleBinding>("Groups", subjects("Group"), { wide: true }),
  column<RoleBinding>("ServiceAccounts", subjects("ServiceAccount"), { wide: true }),
];

export const csiDriverColumns: readonly Column[] = [
  nameColumn,
  column<CSIDriver>("AttachRequired", ({ spec }) => spec.attachRequired ?? true, { type: "boolean" }),
  column<CSIDriver>("PodInfoOnMount", ({ spec }) => spec.podInfoOnMount ?? false, { type: "boolean" }),
  column<CSIDriver>("StorageCapacity", ({ spec }) => spec.storageCapacity ?? false, { type: "boolean" }),
  column<CSIDriver>("TokenRequests", ({ spec }) =>
    spec.tokenRequests ? spec.tokenRequests.map(({ audience }) => audience).join(",") : "<unset>",
  ),
  column<CSIDriver>("RequiresRepublish", ({ spec }) => spec.requiresRepublish ?? false, { type: "boolean" }),
  column<CSIDriver>("Modes", ({ spec }) => (spec.volumeLifecycleModes ?? []).join(",") || "<none>"),
  ageColumn,
];

export const csiNodeColumns: readonly Column[] = [
  nameColumn,
  column<CSINode>("Drivers", ({ spec }) => (spec.drivers ?? []).length, { type: "integer" }),
  ageColumn,
];

export const storageClassColumns: readonly Column[] = [
  column<StorageClass>(
    "Name",
    ({ metadata }) =>
      isDefault(metadata, "storageclass.kubernetes.io/is-default-class") ||
      isDefault(metadata, "storageclass.beta.kubernetes.io/is-default-class")
        ? `${metadata.name} (default)`
        : metadata.name,
    { format: "name" },
  ),
  column<StorageClass>("Provisioner", ({ provisioner }) => provisioner),
  column<StorageClass>("ReclaimPolicy", ({ reclaimPolicy }) => reclaimPolicy ?? "Delete"),
  column<StorageClass>("VolumeBindingMode", ({ volumeBindingMode }) => volumeBindingMode ?? "Immediate"),
  column<StorageClass>("AllowVolumeExpansion", ({ allowVolumeExpansion }) => allowVolumeExpansion ?? false),
  ageColumn,
];

export const volumeAttachmentColumns: readonly Column[] = [
  nameColumn,
  column<VolumeAttachment>("Attacher", ({ spec }) => spec.attacher, { format: "name" }),
  column<VolumeAttachment>("PV", ({ spec }) => spec.source.persistentVolumeName ?? ""),
  column<VolumeAttachment>("Node", ({ spec }) => spec.nodeName),
  column<VolumeAttachment>("Attached", ({ status }) => status?.attached ?? false, { type: "boolean" }),
  ageColumn,
];

export const volumeAttributesClassColumns: readonly Column[] = [
  nameColumn,
  column<VolumeAttributesClass>("DriverName", ({ driverName }) => driverName),
  ageColumn,
];

const paramKind = (kind: { apiVersion?: string; kind?: string } | undefined): string =>
  kind ? `${kind.apiVersion ?? ""}/${kind.kind ?? ""}` : "<unset>";

export const mutatingAdmissionPolicyColumns: readonly Column[] = [
  nameColumn,
  column<MutatingAdmissionPolicy>("Mutations", ({ spec }) => (spec?.mutations ?? []).length, { type: "integer" }),
  column<MutatingAdmissionPolicy>("ParamKind", ({ spec }) => paramKind(spec?.paramKind)),
  ageColumn,
];
export const validatingAdmissionPolicyColumns: readonly Column[] = [
  nameColumn,
  column<ValidatingAdmissionPolicy>("Validations", ({ spec }) => (spec?.validations ?? []).length, { type: "integer" }),
  column<ValidatingAdmissionPolicy>("ParamKind", ({ spec }) => paramKind(spec?.paramKind)),
  ageColumn,
];
export const policyBindingColumns: readonly Column[] = [
  nameColumn,
  column<ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding>(
    "PolicyName",
    ({ spec }) => spec?.policyName ?? "",
  ),
  column<ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding>("ParamRef", ({ spec }) => {
    const parameter = spec?.paramRef;
    if (parameter?.name) return `${parameter.namespace || "*"}/${parameter.name}`;
    return parameter?.selector ? formatSelector(parameter.selector) : "<unset>";
  }),
  ageColumn,
];
export const webhookColumns: readonly Column[] = [
  nameColumn,
  column<ValidatingWebhookConfiguration | MutatingWebhookConfiguration>(
    "Webhooks",
    ({ webhooks }) => (webhooks ?? []).length,
    { type: "integer" },
  ),
  ageColumn,
];

export const priorityClassColumns: readonly Column[] = [
  nameColumn,
  column<PriorityClass>("Value", ({ value }) => value, { type: "integer" }),
  column<PriorityClass>("Global-Default", ({ globalDefault }) => globalDefault ?? false, { type: "boolean" }),
  ageColumn,
  column<PriorityClass>("PreemptionPolicy", ({ preemptionPolicy }) => preemptionPolicy ?? ""),
];

export const leaseColumns: readonly Column[] = [
  nameColumn,
  column<Lease>("Holder", ({ spec }) => spec?.holderIdentity ?? ""),
  ageColumn,
];

export const runtimeClassColumns: readonly Column[] = [
  nameColumn,
  column<RuntimeClass>("Handler", ({ handler }) => handler),
  ageColumn,
];

export const resourceClaimColumns: readonly Column[] = [
  nameColumn,
  column<ResourceClaim>("State", ({ metadata, status }) => {
    if (!status?.allocation) return metadata.deletionTimestamp ? "deleted" : "pending";
    const states = [
      metadata.deletionTimestamp ? "deleted" : "",
      "allocated",
      (status.reservedFor ?? []).length > 0 ? "reserved" : "",
    ];
    return states.filter(Boolean).join(",");
  }),
  ageColumn,
];

export const resourceSliceColumns: readonly Column[] = [
  nameColumn,
  column<ResourceSlice>("Node", ({ spec }) => spec.nodeName ?? ""),
  column<ResourceSlice>("Driver", ({ spec }) => spec.driver),
  column<ResourceSlice>("Pool", ({ spec }) => spec.pool.name),
  ageColumn,
];

export const flowSchemaColumns: readonly Column[] = [
  nameColumn,
  column<FlowSchema>("PriorityLevel", ({ spec }) => spec?.priorityLevelConfiguration.name ?? ""),
  column<FlowSchema>("MatchingPrecedence", ({ spec }) => spec?.matchingPrecedence ?? 0),
  column<FlowSchema>("DistinguisherMethod", ({ spec }) => spec?.distinguisherMethod?.type ?? "<none>"),
  ageColumn,
  column<FlowSchema>(
    "MissingPL",
    ({ status }) => status?.conditions?.find(({ type }) => type === "Dangling")?.status ?? "?",
  ),
];

export const priorityLevelColumns: readonly Column[] = [
  nameColumn,
  column<PriorityLevelConfiguration>("Type", ({ spec }) => spec?.type ?? ""),
  column<PriorityLevelConfiguration>(
    "NominalConcurrencyShares",
    ({ spec }) => spec?.limited?.nominalConcurrencyShares ?? "<none>",
  ),
  column<PriorityLevelConfiguration>("Queues", ({ spec }) => spec?.limited?.limitResponse?.queuing?.queues ?? "<none>"),
  column<PriorityLevelConfiguration>(
    "HandSize",
    ({ spec }) => spec?.limited?.limitResponse?.queuing?.handSize ?? "<none>",
  ),
  column<PriorityLevelConfiguration>(
    "QueueLengthLimit",
    ({ spec }) => spec?.limited?.limitResponse?.queuing?.queueLengthLimit ?? "<none>",
  ),
  ageColumn,
];
