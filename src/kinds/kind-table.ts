import type { SubresourceInfo } from "./scheme.ts";

/** What discovery says of a built-in kind. */
export interface KindRow {
  /** "" for the core group. */
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  readonly subresources: readonly SubresourceInfo[];
}

type Subresource =
  | string
  | { name: string; verbs?: readonly string[]; kind?: string; group?: string; version?: string };
interface Extras {
  singular?: string;
  shortNames?: readonly string[];
  categories?: readonly string[];
  verbs?: readonly string[];
  subresources?: readonly Subresource[];
  deprecation?: string;
}

const ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const SUBRESOURCE_VERBS = ["get", "patch", "update"];

function row(namespaced: boolean, apiVersion: string, resource: string, kind: string, extras: Extras): KindRow {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const subresources = (extras.subresources ?? []).map((subresource): SubresourceInfo => {
    const given = typeof subresource === "string" ? { name: subresource } : subresource;
    return { verbs: SUBRESOURCE_VERBS, kind, ...given };
  });
  return {
    group,
    version,
    resource,
    kind,
    namespaced,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    verbs: ALL_VERBS,
    ...extras,
    subresources,
  };
}
const namespaced = (apiVersion: string, resource: string, kind: string, extras: Extras = {}): KindRow =>
  row(true, apiVersion, resource, kind, extras);
const cluster = (apiVersion: string, resource: string, kind: string, extras: Extras = {}): KindRow =>
  row(false, apiVersion, resource, kind, extras);

/**
 * Every resource that v1.36 serves by default, in the order of discovery (groups by their priority, the preferred version of
 * a group first).
 */
export const kindTable: readonly KindRow[] = [
  namespaced("v1", "bindings", "Binding", { verbs: ["create"] }),
  cluster("v1", "componentstatuses", "ComponentStatus", {
    shortNames: ["cs"],
    verbs: ["get", "list"],
    deprecation: "v1 ComponentStatus is deprecated in v1.19+",
  }),
  namespaced("v1", "configmaps", "ConfigMap", { shortNames: ["cm"] }),
  namespaced("v1", "endpoints", "Endpoints", {
    shortNames: ["ep"],
    deprecation: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
  }),
  namespaced("v1", "events", "Event", { shortNames: ["ev"] }),
  namespaced("v1", "limitranges", "LimitRange", { shortNames: ["limits"] }),
  cluster("v1", "namespaces", "Namespace", {
    shortNames: ["ns"],
    verbs: ["create", "delete", "get", "list", "patch", "update", "watch"],
    subresources: [{ name: "finalize", verbs: ["update"] }, "status"],
  }),
  cluster("v1", "nodes", "Node", {
    shortNames: ["no"],
    subresources: [
      { name: "proxy", verbs: ["create", "delete", "get", "patch", "update"], kind: "NodeProxyOptions" },
      "status",
    ],
  }),
  namespaced("v1", "persistentvolumeclaims", "PersistentVolumeClaim", {
    shortNames: ["pvc"],
    subresources: ["status"],
  }),
  cluster("v1", "persistentvolumes", "PersistentVolume", { shortNames: ["pv"], subresources: ["status"] }),
  namespaced("v1", "pods", "Pod", {
    shortNames: ["po"],
    categories: ["all"],
    subresources: [
      { name: "attach", verbs: ["create", "get"], kind: "PodAttachOptions" },
      { name: "binding", verbs: ["create"], kind: "Binding" },
      "ephemeralcontainers",
      { name: "eviction", verbs: ["create"], kind: "Eviction", group: "policy", version: "v1" },
      { name: "exec", verbs: ["create", "get"], kind: "PodExecOptions" },
      { name: "log", verbs: ["get"] },
      { name: "portforward", verbs: ["create", "get"], kind: "PodPortForwardOptions" },
      { name: "proxy", verbs: ["create", "delete", "get", "patch", "update"], kind: "PodProxyOptions" },
      "resize",
      "status",
    ],
  }),
  namespaced("v1", "podtemplates", "PodTemplate"),
  namespaced("v1", "replicationcontrollers", "ReplicationController", {
    shortNames: ["rc"],
    categories: ["all"],
    subresources: [{ name: "scale", kind: "Scale", group: "autoscaling", version: "v1" }, "status"],
  }),
  namespaced("v1", "resourcequotas", "ResourceQuota", { shortNames: ["quota"], subresources: ["status"] }),
  namespaced("v1", "secrets", "Secret"),
  namespaced("v1", "serviceaccounts", "ServiceAccount", {
    shortNames: ["sa"],
    subresources: [
      { name: "token", verbs: ["create"], kind: "TokenRequest", group: "authentication.k8s.io", version: "v1" },
    ],
  }),
  namespaced("v1", "services", "Service", {
    shortNames: ["svc"],
    categories: ["all"],
    subresources: [
      { name: "proxy", verbs: ["create", "delete", "get", "patch", "update"], kind: "ServiceProxyOptions" },
      "status",
    ],
  }),
  cluster("apiregistration.k8s.io/v1", "apiservices", "APIService", {
    categories: ["api-extensions"],
    subresources: ["status"],
  }),
  namespaced("apps/v1", "controllerrevisions", "ControllerRevision"),
  namespaced("apps/v1", "daemonsets", "DaemonSet", {
    shortNames: ["ds"],
    categories: ["all"],
    subresources: ["status"],
  }),
  namespaced("apps/v1", "deployments", "Deployment", {
    shortNames: ["deploy"],
    categories: ["all"],
    subresources: [{ name: "scale", kind: "Scale", group: "autoscaling", version: "v1" }, "status"],
  }),
  namespaced("apps/v1", "replicasets", "ReplicaSet", {
    shortNames: ["rs"],
    categories: ["all"],
    subresources: [{ name: "scale", kind: "Scale", group: "autoscaling", version: "v1" }, "status"],
  }),
  namespaced("apps/v1", "statefulsets", "StatefulSet", {
    shortNames: ["sts"],
    categories: ["all"],
    subresources: [{ name: "scale", kind: "Scale", group: "autoscaling", version: "v1" }, "status"],
  }),
  namespaced("events.k8s.io/v1", "events", "Event", { shortNames: ["ev"] }),
  cluster("authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview", { verbs: ["create"] }),
  cluster("authentication.k8s.io/v1", "tokenreviews", "TokenReview", { verbs: ["create"] }),
  namespaced("authorization.k8s.io/v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", { verbs: ["create"] }),
  cluster("authorization.k8s.io/v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", { verbs: ["create"] }),
  cluster("authorization.k8s.io/v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", { verbs: ["create"] }),
  cluster("authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", { verbs: ["create"] }),
  namespaced("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", {
    shortNames: ["hpa"],
    categories: ["all"],
    subresources: ["status"],
  }),
  namespaced("autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", {
    shortNames: ["hpa"],
    categories: ["all"],
    subresources: ["status"],
  }),
  namespaced("batch/v1", "cronjobs", "CronJob", { shortNames: ["cj"], categories: ["all"], subresources: ["status"] }),
  namespaced("batch/v1", "jobs", "Job", { categories: ["all"], subresources: ["status"] }),
  cluster("certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest", {
    shortNames: ["csr"],
    subresources: ["approval", "status"],
  }),
  cluster("networking.k8s.io/v1", "ingressclasses", "IngressClass"),
  namespaced("networking.k8s.io/v1", "ingresses", "Ingress", { shortNames: ["ing"], subresources: ["status"] }),
  cluster("networking.k8s.io/v1", "ipaddresses", "IPAddress", { shortNames: ["ip"] }),
  namespaced("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", { shortNames: ["netpol"] }),
  cluster("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR", { subresources: ["status"] }),
  namespaced("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", {
    shortNames: ["pdb"],
    subresources: ["status"],
  }),
  cluster("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding"),
  cluster("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole"),
  namespaced("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
  namespaced("rbac.authorization.k8s.io/v1", "roles", "Role"),
  cluster("storage.k8s.io/v1", "csidrivers", "CSIDriver"),
  cluster("storage.k8s.io/v1", "csinodes", "CSINode"),
  namespaced("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity"),
  cluster("storage.k8s.io/v1", "storageclasses", "StorageClass", { shortNames: ["sc"] }),
  cluster("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", { subresources: ["status"] }),
  cluster("storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", { shortNames: ["vac"] }),
  cluster("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", {
    categories: ["api-extensions"],
  }),
  cluster("admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", {
    categories: ["api-extensions"],
  }),
  cluster("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", {
    categories: ["api-extensions"],
  }),
  cluster("admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", {
    categories: ["api-extensions"],
    subresources: ["status"],
  }),
  cluster("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", {
    categories: ["api-extensions"],
  }),
  cluster("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", {
    categories: ["api-extensions"],
  }),
  cluster("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", {
    shortNames: ["crd", "crds"],
    categories: ["api-extensions"],
    subresources: ["status"],
  }),
  cluster("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", { shortNames: ["pc"] }),
  namespaced("coordination.k8s.io/v1", "leases", "Lease"),
  cluster("node.k8s.io/v1", "runtimeclasses", "RuntimeClass"),
  namespaced("discovery.k8s.io/v1", "endpointslices", "EndpointSlice"),
  cluster("resource.k8s.io/v1", "deviceclasses", "DeviceClass"),
  namespaced("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", { subresources: ["status"] }),
  namespaced("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
  cluster("resource.k8s.io/v1", "resourceslices", "ResourceSlice"),
  cluster("flowcontrol.apiserver.k8s.io/v1", "flowschemas", "FlowSchema", { subresources: ["status"] }),
  cluster("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", {
    subresources: ["status"],
  }),
];
