import type { Resource } from "./object.ts";
import type * as types from "./generated/types.ts";

const namespaced = <T>(group: string, version: string, resource: string, kind: string): Resource<T> => ({
  group,
  version,
  resource,
  kind,
  namespaced: true,
});
const cluster = <T>(group: string, version: string, resource: string, kind: string): Resource<T> => ({
  ...namespaced<T>(group, version, resource, kind),
  namespaced: false,
});

/** A typed handle for every built-in resource: `client.list(resources.pods)` gives Pods. */
export const resources: BuiltInResources = {
  bindings: namespaced("", "v1", "bindings", "Binding"),
  componentStatuses: cluster("", "v1", "componentstatuses", "ComponentStatus"),
  configMaps: namespaced("", "v1", "configmaps", "ConfigMap"),
  endpoints: namespaced("", "v1", "endpoints", "Endpoints"),
  events: namespaced("", "v1", "events", "Event"),
  limitRanges: namespaced("", "v1", "limitranges", "LimitRange"),
  namespaces: cluster("", "v1", "namespaces", "Namespace"),
  nodes: cluster("", "v1", "nodes", "Node"),
  persistentVolumeClaims: namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
  persistentVolumes: cluster("", "v1", "persistentvolumes", "PersistentVolume"),
  pods: namespaced("", "v1", "pods", "Pod"),
  podTemplates: namespaced("", "v1", "podtemplates", "PodTemplate"),
  replicationControllers: namespaced("", "v1", "replicationcontrollers", "ReplicationController"),
  resourceQuotas: namespaced("", "v1", "resourcequotas", "ResourceQuota"),
  secrets: namespaced("", "v1", "secrets", "Secret"),
  serviceAccounts: namespaced("", "v1", "serviceaccounts", "ServiceAccount"),
  services: namespaced("", "v1", "services", "Service"),
  apiServices: cluster("apiregistration.k8s.io", "v1", "apiservices", "APIService"),
  controllerRevisions: namespaced("apps", "v1", "controllerrevisions", "ControllerRevision"),
  daemonSets: namespaced("apps", "v1", "daemonsets", "DaemonSet"),
  deployments: namespaced("apps", "v1", "deployments", "Deployment"),
  replicaSets: namespaced("apps", "v1", "replicasets", "ReplicaSet"),
  statefulSets: namespaced("apps", "v1", "statefulsets", "StatefulSet"),
  eventsEvents: namespaced("events.k8s.io", "v1", "events", "Event"),
  selfSubjectReviews: cluster("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"),
  tokenReviews: cluster("authentication.k8s.io", "v1", "tokenreviews", "TokenReview"),
  localSubjectAccessReviews: namespaced(
    "authorization.k8s.io",
    "v1",
    "localsubjectaccessreviews",
    "LocalSubjectAccessReview",
  ),
  selfSubjectAccessReviews: cluster(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
  ),
  selfSubjectRulesReviews: cluster("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
  subjectAccessReviews: cluster("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"),
  horizontalPodAutoscalers: namespaced("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
  horizontalPodAutoscalersV1: namespaced("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
  cronJobs: namespaced("batch", "v1", "cronjobs", "CronJob"),
  jobs: namespaced("batch", "v1", "jobs", "Job"),
  certificateSigningRequests: cluster(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    "CertificateSigningRequest",
  ),
  ingressClasses: cluster("networking.k8s.io", "v1", "ingressclasses", "IngressClass"),
  ingresses: namespaced("networking.k8s.io", "v1", "ingresses", "Ingress"),
  ipAddresses: cluster("networking.k8s.io", "v1", "ipaddresses", "IPAddress"),
  networkPolicies: namespaced("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
  serviceCIDRs: cluster("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR"),
  podDisruptionBudgets: namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
  clusterRoleBindings: cluster("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"),
  clusterRoles: cluster("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole"),
  roleBindings: namespaced("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
  roles: namespaced("rbac.authorization.k8s.io", "v1", "roles", "Role"),
  csiDrivers: cluster("storage.k8s.io", "v1", "csidrivers", "CSIDriver"),
  csiNodes: cluster("storage.k8s.io", "v1", "csinodes", "CSINode"),
  csiStorageCapacities: namespaced("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"),
  storageClasses: cluster("storage.k8s.io", "v1", "storageclasses", "StorageClass"),
  volumeAttachments: cluster("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment"),
  volumeAttributesClasses: cluster("storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass"),
  mutatingAdmissionPolicies: cluster(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicies",
    "MutatingAdmissionPolicy",
  ),
  mutatingAdmissionPolicyBindings: cluster(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
  ),
  mutatingWebhookConfigurations: cluster(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
  ),
  validatingAdmissionPolicies: cluster(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
  ),
  validatingAdmissionPolicyBindings: cluster(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
  ),
  validatingWebhookConfigurations: cluster(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
  ),
  customResourceDefinitions: cluster(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
  ),
  priorityClasses: cluster("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"),
  leases: namespaced("coordination.k8s.io", "v1", "leases", "Lease"),
  runtimeClasses: cluster("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass"),
  endpointSlices: namespaced("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
  deviceClasses: cluster("resource.k8s.io", "v1", "deviceclasses", "DeviceClass"),
  resourceClaims: namespaced("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim"),
  resourceClaimTemplates: namespaced("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
  resourceSlices: cluster("resource.k8s.io", "v1", "resourceslices", "ResourceSlice"),
  flowSchemas: cluster("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema"),
  priorityLevelConfigurations: cluster(
    "flowcontrol.apiserver.k8s.io",
    "v1",
    "prioritylevelconfigurations",
    "PriorityLevelConfiguration",
  ),
};

export interface BuiltInResources {
  readonly bindings: Resource<types.Binding>;
  readonly componentStatuses: Resource<types.ComponentStatus>;
  readonly configMaps: Resource<types.ConfigMap>;
  readonly endpoints: Resource<types.Endpoints>;
  readonly events: Resource<types.Event>;
  readonly limitRanges: Resource<types.LimitRange>;
  readonly namespaces: Resource<types.Namespace>;
  readonly nodes: Resource<types.Node>;
  readonly persistentVolumeClaims: Resource<types.PersistentVolumeClaim>;
  readonly persistentVolumes: Resource<types.PersistentVolume>;
  readonly pods: Resource<types.Pod>;
  readonly podTemplates: Resource<types.PodTemplate>;
  readonly replicationControllers: Resource<types.ReplicationController>;
  readonly resourceQuotas: Resource<types.ResourceQuota>;
  readonly secrets: Resource<types.Secret>;
  readonly serviceAccounts: Resource<types.ServiceAccount>;
  readonly services: Resource<types.Service>;
  readonly apiServices: Resource<types.APIService>;
  readonly controllerRevisions: Resource<types.ControllerRevision>;
  readonly daemonSets: Resource<types.DaemonSet>;
  readonly deployments: Resource<types.Deployment>;
  readonly replicaSets: Resource<types.ReplicaSet>;
  readonly statefulSets: Resource<types.StatefulSet>;
  readonly eventsEvents: Resource<types.EventsEvent>;
  readonly selfSubjectReviews: Resource<types.SelfSubjectReview>;
  readonly tokenReviews: Resource<types.TokenReview>;
  readonly localSubjectAccessReviews: Resource<types.LocalSubjectAccessReview>;
  readonly selfSubjectAccessReviews: Resource<types.SelfSubjectAccessReview>;
  readonly selfSubjectRulesReviews: Resource<types.SelfSubjectRulesReview>;
  readonly subjectAccessReviews: Resource<types.SubjectAccessReview>;
  readonly horizontalPodAutoscalers: Resource<types.HorizontalPodAutoscaler>;
  readonly horizontalPodAutoscalersV1: Resource<types.HorizontalPodAutoscalerV1>;
  readonly cronJobs: Resource<types.CronJob>;
  readonly jobs: Resource<types.Job>;
  readonly certificateSigningRequests: Resource<types.CertificateSigningRequest>;
  readonly ingressClasses: Resource<types.IngressClass>;
  readonly ingresses: Resource<types.Ingress>;
  readonly ipAddresses: Resource<types.IPAddress>;
  readonly networkPolicies: Resource<types.NetworkPolicy>;
  readonly serviceCIDRs: Resource<types.ServiceCIDR>;
  readonly podDisruptionBudgets: Resource<types.PodDisruptionBudget>;
  readonly clusterRoleBindings: Resource<types.ClusterRoleBinding>;
  readonly clusterRoles: Resource<types.ClusterRole>;
  readonly roleBindings: Resource<types.RoleBinding>;
  readonly roles: Resource<types.Role>;
  readonly csiDrivers: Resource<types.CSIDriver>;
  readonly csiNodes: Resource<types.CSINode>;
  readonly csiStorageCapacities: Resource<types.CSIStorageCapacity>;
  readonly storageClasses: Resource<types.StorageClass>;
  readonly volumeAttachments: Resource<types.VolumeAttachment>;
  readonly volumeAttributesClasses: Resource<types.VolumeAttributesClass>;
  readonly mutatingAdmissionPolicies: Resource<types.MutatingAdmissionPolicy>;
  readonly mutatingAdmissionPolicyBindings: Resource<types.MutatingAdmissionPolicyBinding>;
  readonly mutatingWebhookConfigurations: Resource<types.MutatingWebhookConfiguration>;
  readonly validatingAdmissionPolicies: Resource<types.ValidatingAdmissionPolicy>;
  readonly validatingAdmissionPolicyBindings: Resource<types.ValidatingAdmissionPolicyBinding>;
  readonly validatingWebhookConfigurations: Resource<types.ValidatingWebhookConfiguration>;
  readonly customResourceDefinitions: Resource<types.CustomResourceDefinition>;
  readonly priorityClasses: Resource<types.PriorityClass>;
  readonly leases: Resource<types.Lease>;
  readonly runtimeClasses: Resource<types.RuntimeClass>;
  readonly endpointSlices: Resource<types.EndpointSlice>;
  readonly deviceClasses: Resource<types.DeviceClass>;
  readonly resourceClaims: Resource<types.ResourceClaim>;
  readonly resourceClaimTemplates: Resource<types.ResourceClaimTemplate>;
  readonly resourceSlices: Resource<types.ResourceSlice>;
  readonly flowSchemas: Resource<types.FlowSchema>;
  readonly priorityLevelConfigurations: Resource<types.PriorityLevelConfiguration>;
}
