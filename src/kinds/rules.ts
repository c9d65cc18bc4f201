import * as appsColumns from "./apps/columns.ts";
import * as appsDefaults from "./apps/defaults.ts";
import { horizontalPodAutoscalerColumns } from "./autoscaling/columns.ts";
import { setHorizontalPodAutoscalerDefaults } from "./autoscaling/defaults.ts";
import { cronJobColumns, jobColumns } from "./batch/columns.ts";
import { setCronJobDefaults, setJobDefaults } from "./batch/defaults.ts";
import * as coreColumns from "./core/columns.ts";
import * as appsPrepare from "./apps/prepare.ts";
import { prepareJob } from "./batch/prepare.ts";
import * as corePrepare from "./core/prepare.ts";
import * as coreDefaults from "./core/defaults.ts";
import { podColumns } from "./core/pod/columns.ts";
import { setPodDefaults } from "./core/pod/defaults.ts";
import { gracePeriodSeconds, prepareForCreate, prepareForUpdate, selectableFields } from "./core/pod/prepare.ts";
import {
  validateControllerRevision,
  validateControllerRevisionUpdate,
  validateDaemonSet,
  validateDaemonSetUpdate,
  validateDeployment,
  validateDeploymentUpdate,
  validateReplicaSet,
  validateReplicaSetUpdate,
  validateStatefulSet,
  validateStatefulSetUpdate,
} from "./apps/validate.ts";
import { validateCronJob, validateCronJobUpdate, validateJob, validateJobUpdate } from "./batch/validate.ts";
import { validatePod } from "./core/pod/validate.ts";
import { validatePodUpdate } from "./core/pod/validate-update.ts";
import { serviceWarnings, validateService, validateServiceUpdate } from "./core/service/validate.ts";
import {
  validateConfigMap,
  validateConfigMapUpdate,
  validateSecret,
  validateSecretUpdate,
} from "./core/validate-config.ts";
import {
  endpointSliceWarnings,
  prepareEndpointSlice,
  validateEndpointSlice,
  validateEndpointSliceUpdate,
  validateEndpoints,
} from "./core/validate-endpoints.ts";
import { validateLimitRange, validateResourceQuota, validateResourceQuotaUpdate } from "./core/validate-limits.ts";
import {
  persistentVolumeWarnings,
  validatePersistentVolume,
  validatePersistentVolumeClaim,
  validatePersistentVolumeClaimUpdate,
  validatePersistentVolumeUpdate,
} from "./core/validate-persistent-volumes.ts";
import { namedTemplateWarnings, templateWarnings } from "./core/pod/template-warnings.ts";
import { podWarnings } from "./core/pod/warnings.ts";
import type {
  CertificateSigningRequest,
  ClusterRoleBinding,
  ConfigMap,
  ControllerRevision,
  CronJob,
  DaemonSet,
  Deployment,
  Endpoints,
  EndpointSlice,
  Event,
  IPAddress,
  LimitRange,
  PersistentVolume,
  PersistentVolumeClaim,
  ResourceQuota,
  Job,
  MutatingAdmissionPolicyBinding,
  Namespace,
  Node,
  Pod,
  ReplicaSet,
  ReplicationController,
  ResourceSlice,
  RoleBinding,
  Secret,
  Service,
  ServiceCIDR,
  StatefulSet,
  ValidatingAdmissionPolicyBinding,
} from "./generated/types.ts";
import { prepareCertificateRequestUpdate, validateCertificateSigningRequest } from "./certificates/rules.ts";
import * as columns from "./misc/columns.ts";
import {
  nameIsIPAddress,
  validateIPAddress,
  validateIPAddressUpdate,
  validateServiceCIDR,
  validateServiceCIDRUpdate,
} from "./networking/validate-addresses.ts";
import * as bindings from "./admission/validate-bindings.ts";
import { validateWebhooks } from "./admission/validate-webhooks.ts";
import * as ingress from "./networking/validate-ingress.ts";
import { validateNetworkPolicy } from "./networking/validate-network-policy.ts";
import { validatePodDisruptionBudget } from "./policy/validate.ts";
import { validateHorizontalPodAutoscaler } from "./autoscaling/validate.ts";
import { validateReplicationController, validateTemplateObject } from "./core/validate-replication.ts";
import * as scheduled from "./scheduling/validate.ts";
import * as classes from "./storage/validate-classes.ts";
import * as drivers from "./storage/validate-drivers.ts";
import * as rbac from "./rbac/validate.ts";
import * as defaults from "./misc/defaults.ts";
import { type KindRules, rules } from "./strategy/rules.ts";
import { nameIsDNSLabel, nameIsPathSegment } from "./validation/names.ts";

const generation = "spec";
const role = { nameCheck: nameIsPathSegment, allowCreateOnUpdate: true };
const policy = { generation, conditionalUpdateOnly: true } as const;

const core: Record<string, KindRules> = {
  "/ComponentStatus": { columns: coreColumns.componentStatusColumns },
  "/ConfigMap": rules<ConfigMap>({
    columns: coreColumns.configMapColumns,
    validate: validateConfigMap,
    validateUpdate: validateConfigMapUpdate,
  }),
  "/Endpoints": rules<Endpoints>({
    columns: coreColumns.endpointsColumns,
    validate: validateEndpoints,
    defaults: coreDefaults.setEndpointsDefaults,
    allowCreateOnUpdate: true,
  }),
  "/Event": rules<Event>({
    columns: coreColumns.eventColumns,
    allowCreateOnUpdate: true,
    selectableFields: eventFields,
  }),
  "/LimitRange": rules<LimitRange>({
    validate: validateLimitRange,
    defaults: coreDefaults.setLimitRangeDefaults,
    allowCreateOnUpdate: true,
  }),
  "/Namespace": rules<Namespace>({
    columns: coreColumns.namespaceColumns,
    defaults: coreDefaults.setNamespaceDefaults,
    nameCheck: nameIsDNSLabel,
    prepareForCreate: corePrepare.prepareNamespace,
    prepareForUpdate: corePrepare.prepareNamespaceUpdate,
    selectableFields: ({ metadata, status }) => ({ name: metadata.name, "status.phase": status?.phase ?? "" }),
  }),
  "/Node": rules<Node>({
    columns: coreColumns.nodeColumns,
    defaults: coreDefaults.setNodeDefaults,
    statusOnCreate: true,
    prepareForCreate: corePrepare.prepareNode,
    prepareForUpdate: corePrepare.prepareNode,
    selectableFields: ({ spec }) => ({ "spec.unschedulable": String(spec.unschedulable ?? false) }),
  }),
  "/PersistentVolume": rules<PersistentVolume>({
    validate: validatePersistentVolume,
    validateUpdate: validatePersistentVolumeUpdate,
    warnings: persistentVolumeWarnings,
    columns: coreColumns.persistentVolumeColumns,
    defaults: coreDefaults.setPersistentVolumeDefaults,
    prepareForCreate: corePrepare.preparePersistentVolume,
  }),
  "/PersistentVolumeClaim": rules<PersistentVolumeClaim>({
    validate: validatePersistentVolumeClaim,
    validateUpdate: validatePersistentVolumeClaimUpdate,
    columns: coreColumns.persistentVolumeClaimColumns,
    defaults: coreDefaults.setPersistentVolumeClaimDefaults,
    prepareForCreate: corePrepare.preparePersistentVolumeClaim,
  }),
  "/Pod": rules<Pod>({
    columns: podColumns,
    defaults: setPodDefaults,
    generation,
    prepareForCreate,
    prepareForUpdate,
    gracePeriodSeconds,
    selectableFields,
    validate: validatePod,
    validateUpdate: validatePodUpdate,
    warnings: podWarnings,
  }),
  "/PodTemplate": rules({
    validate: validateTemplateObject,
    columns: coreColumns.podTemplateColumns,
    defaults: coreDefaults.setPodTemplateDefaults,
    generation,
  }),
  "/ReplicationController": rules<ReplicationController>({
    validate: validateReplicationController,
    warnings: namedTemplateWarnings,
    columns: coreColumns.replicationControllerColumns,
    defaults: coreDefaults.setReplicationControllerDefaults,
    generation,
    defaultDeletionPropagation: "Orphan",
    selectableFields: ({ status }) => ({ "status.replicas": String(status?.replicas ?? 0) }),
  }),
  "/ResourceQuota": rules<ResourceQuota>({
    columns: coreColumns.resourceQuotaColumns,
    validate: validateResourceQuota,
    validateUpdate: validateResourceQuotaUpdate,
  }),
  "/Secret": rules<Secret>({
    columns: coreColumns.secretColumns,
    defaults: coreDefaults.setSecretDefaults,
    prepareForUpdate: corePrepare.prepareSecretUpdate,
    validate: validateSecret,
    validateUpdate: validateSecretUpdate,
    selectableFields: ({ type }) => ({ type: type ?? "" }),
  }),
  "/Service": rules<Service>({
    columns: coreColumns.serviceColumns,
    defaults: coreDefaults.setServiceDefaults,
    prepareForUpdate: corePrepare.prepareServiceUpdate,
    nameCheck: nameIsDNSLabel,
    validate: validateService,
    validateUpdate: validateServiceUpdate,
    warnings: serviceWarnings,
    allowCreateOnUpdate: true,
    selectableFields: ({ spec }) => ({ "spec.clusterIP": spec.clusterIP ?? "", "spec.type": spec.type ?? "" }),
  }),
  "/ServiceAccount": { columns: coreColumns.serviceAccountColumns },
};

function eventFields(event: Event): Record<string, string> {
  const { involvedObject: object, source } = event;
  return {
    "involvedObject.kind": object.kind ?? "",
    "involvedObject.namespace": object.namespace ?? "",
    "involvedObject.name": object.name ?? "",
    "involvedObject.uid": object.uid ?? "",
    "involvedObject.apiVersion": object.apiVersion ?? "",
    "involvedObject.resourceVersion": object.resourceVersion ?? "",
    "involvedObject.fieldPath": object.fieldPath ?? "",
    reason: event.reason ?? "",
    reportingComponent: event.reportingComponent ?? "",
    source: source?.component || event.reportingComponent || "",
    type: event.type ?? "",
  };
}

const workloads: Record<string, KindRules> = {
  "apps/ControllerRevision": rules<ControllerRevision>({
    columns: appsColumns.controllerRevisionColumns,
    validate: validateControllerRevision,
    validateUpdate: validateControllerRevisionUpdate,
  }),
  "apps/DaemonSet": rules<DaemonSet>({
    columns: appsColumns.daemonSetColumns,
    defaults: appsDefaults.setDaemonSetDefaults,
    generation,
    prepareForCreate: appsPrepare.prepareDaemonSet,
    prepareForUpdate: appsPrepare.prepareDaemonSetUpdate,
    validate: validateDaemonSet,
    warnings: templateWarnings,
    validateUpdate: validateDaemonSetUpdate,
  }),
  "apps/Deployment": rules<Deployment>({
    columns: appsColumns.deploymentColumns,
    defaults: appsDefaults.setDeploymentDefaults,
    generation,
    prepareForUpdate: appsPrepare.prepareDeploymentUpdate,
    validate: validateDeployment,
    warnings: namedTemplateWarnings,
    validateUpdate: validateDeploymentUpdate,
  }),
  "apps/ReplicaSet": rules<ReplicaSet>({
    columns: appsColumns.replicaSetColumns,
    defaults: appsDefaults.setReplicaSetDefaults,
    generation,
    selectableFields: ({ status }) => ({ "status.replicas": String(status?.replicas ?? 0) }),
    validate: validateReplicaSet,
    warnings: namedTemplateWarnings,
    validateUpdate: validateReplicaSetUpdate,
  }),
  "apps/StatefulSet": rules<StatefulSet>({
    columns: appsColumns.statefulSetColumns,
    defaults: appsDefaults.setStatefulSetDefaults,
    generation,
    prepareForCreate: appsPrepare.dropStatefulSetFields,
    prepareForUpdate: appsPrepare.dropStatefulSetFields,
    validate: validateStatefulSet,
    validateUpdate: validateStatefulSetUpdate,
  }),
  "autoscaling/HorizontalPodAutoscaler": rules({
    validate: validateHorizontalPodAutoscaler,
    columns: horizontalPodAutoscalerColumns,
    defaults: setHorizontalPodAutoscalerDefaults,
  }),
  "batch/CronJob": rules<CronJob>({
    columns: cronJobColumns,
    defaults: setCronJobDefaults,
    generation,
    validate: validateCronJob,
    validateUpdate: validateCronJobUpdate,
  }),
  "batch/Job": rules<Job>({
    columns: jobColumns,
    defaults: setJobDefaults,
    generation,
    prepareForCreate: prepareJob,
    defaultDeletionPropagation: "Orphan",
    selectableFields: ({ status }) => ({ "status.successful": String(status?.succeeded ?? 0) }),
    validate: validateJob,
    validateUpdate: validateJobUpdate,
  }),
  "policy/PodDisruptionBudget": rules({
    nameCheck: nameIsPathSegment,
    validate: validatePodDisruptionBudget,
    columns: columns.podDisruptionBudgetColumns,
    generation,
    conditionalUpdateOnly: true,
  }),
};

const network: Record<string, KindRules> = {
  "discovery.k8s.io/EndpointSlice": rules<EndpointSlice>({
    prepareForCreate: prepareEndpointSlice,
    validate: validateEndpointSlice,
    validateUpdate: validateEndpointSliceUpdate,
    warnings: endpointSliceWarnings,
    columns: columns.endpointSliceColumns,
    defaults: defaults.setEndpointSliceDefaults,
    generation,
  }),
  "networking.k8s.io/IngressClass": rules({
    validate: ingress.validateIngressClass,
    validateUpdate: ingress.validateIngressClassUpdate,
    columns: columns.ingressClassColumns,
    defaults: defaults.setIngressClassDefaults,
    generation,
  }),
  "networking.k8s.io/Ingress": rules({
    columns: columns.ingressColumns,
    generation,
    validate: ingress.validateIngress,
    validateUpdate: ingress.validateIngressUpdate,
    warnings: ingress.ingressWarnings,
  }),
  "networking.k8s.io/IPAddress": rules<IPAddress>({
    columns: columns.ipAddressColumns,
    nameCheck: nameIsIPAddress,
    validate: validateIPAddress,
    validateUpdate: validateIPAddressUpdate,
  }),
  "networking.k8s.io/NetworkPolicy": rules({
    validate: validateNetworkPolicy,
    columns: columns.networkPolicyColumns,
    defaults: defaults.setNetworkPolicyDefaults,
    generation,
  }),
  "networking.k8s.io/ServiceCIDR": rules<ServiceCIDR>({
    columns: columns.serviceCIDRColumns,
    validate: validateServiceCIDR,
    validateUpdate: validateServiceCIDRUpdate,
  }),
};

const storage: Record<string, KindRules> = {
  "storage.k8s.io/CSIDriver": rules({
    prepareForUpdate: drivers.prepareCSIDriverUpdate,
    validate: drivers.validateCSIDriver,
    validateUpdate: drivers.validateCSIDriverUpdate,
    warnings: drivers.csiDriverWarnings,
    columns: columns.csiDriverColumns,
    defaults: defaults.setCSIDriverDefaults,
    conditionalUpdateOnly: true,
  }),
  "storage.k8s.io/CSINode": rules({
    columns: columns.csiNodeColumns,
    conditionalUpdateOnly: true,
    validate: drivers.validateCSINode,
    validateUpdate: drivers.validateCSINodeUpdate,
  }),
  "storage.k8s.io/CSIStorageCapacity": rules({
    conditionalUpdateOnly: true,
    validate: drivers.validateCSIStorageCapacity,
    validateUpdate: drivers.validateCSIStorageCapacityUpdate,
  }),
  "storage.k8s.io/StorageClass": rules({
    validate: classes.validateStorageClass,
    validateUpdate: classes.validateStorageClassUpdate,
    warnings: classes.storageClassWarnings,
    columns: columns.storageClassColumns,
    defaults: defaults.setStorageClassDefaults,
  }),
  "storage.k8s.io/VolumeAttachment": rules({
    columns: columns.volumeAttachmentColumns,
    conditionalUpdateOnly: true,
    validate: drivers.validateVolumeAttachment,
    validateUpdate: drivers.validateVolumeAttachmentUpdate,
  }),
  "storage.k8s.io/VolumeAttributesClass": rules({
    columns: columns.volumeAttributesClassColumns,
    validate: classes.validateVolumeAttributesClass,
    validateUpdate: classes.validateVolumeAttributesClassUpdate,
  }),
};

const access: Record<string, KindRules> = {
  "certificates.k8s.io/CertificateSigningRequest": rules<CertificateSigningRequest>({
    nameCheck: nameIsPathSegment,
    restoresStatus: true,
    prepareForUpdate: prepareCertificateRequestUpdate,
    validate: validateCertificateSigningRequest,
    validateUpdate: validateCertificateSigningRequest,
    columns: columns.certificateSigningRequestColumns,
    selectableFields: ({ spec }) => ({ "spec.signerName": spec.signerName }),
  }),
  "rbac.authorization.k8s.io/Role": rules({ ...role, validate: rbac.validateRole }),
  "rbac.authorization.k8s.io/ClusterRole": rules({ ...role, validate: rbac.validateClusterRole }),
  "rbac.authorization.k8s.io/RoleBinding": rules<RoleBinding>({
    ...role,
    columns: columns.roleBindingColumns,
    defaults: defaults.setRoleBindingDefaults,
    validate: rbac.validateRoleBinding,
    validateUpdate: (binding, old) => [
      ...rbac.validateRoleBinding(binding),
      ...rbac.validateRoleRefUpdate(binding, old),
    ],
  }),
  "rbac.authorization.k8s.io/ClusterRoleBinding": rules<ClusterRoleBinding>({
    ...role,
    columns: columns.roleBindingColumns,
    defaults: defaults.setRoleBindingDefaults,
    validate: rbac.validateClusterRoleBinding,
    validateUpdate: (binding, old) => [
      ...rbac.validateClusterRoleBinding(binding),
      ...rbac.validateRoleRefUpdate(binding, old),
    ],
  }),
};

const extension: Record<string, KindRules> = {
  "admissionregistration.k8s.io/MutatingAdmissionPolicy": rules({
    ...policy,
    columns: columns.mutatingAdmissionPolicyColumns,
    defaults: defaults.setAdmissionPolicyDefaults,
  }),
  "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding": rules<MutatingAdmissionPolicyBinding>({
    ...policy,
    columns: columns.policyBindingColumns,
    validate: bindings.validateMutatingBinding,
    defaults: ({ spec }) => defaults.setMatchResourcesDefaults(spec?.matchResources),
  }),
  "admissionregistration.k8s.io/MutatingWebhookConfiguration": rules({
    ...policy,
    columns: columns.webhookColumns,
    validate: validateWebhooks,
    defaults: defaults.setWebhookDefaults,
  }),
  "admissionregistration.k8s.io/ValidatingAdmissionPolicy": rules({
    ...policy,
    columns: columns.validatingAdmissionPolicyColumns,
    defaults: defaults.setAdmissionPolicyDefaults,
  }),
  "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": rules<ValidatingAdmissionPolicyBinding>({
    ...policy,
    columns: columns.policyBindingColumns,
    validate: bindings.validateValidatingBinding,
    defaults: ({ spec }) => defaults.setMatchResourcesDefaults(spec?.matchResources),
  }),
  "admissionregistration.k8s.io/ValidatingWebhookConfiguration": rules({
    ...policy,
    columns: columns.webhookColumns,
    validate: validateWebhooks,
    defaults: defaults.setWebhookDefaults,
  }),
  "apiextensions.k8s.io/CustomResourceDefinition": rules({
    defaults: defaults.setCustomResourceDefinitionDefaults,
    prepareForCreate: defaults.prepareCustomResourceDefinition,
    generation,
    conditionalUpdateOnly: true,
  }),
  "apiregistration.k8s.io/APIService": rules({
    columns: columns.apiServiceColumns,
    defaults: defaults.setAPIServiceDefaults,
    nameCheck: nameIsPathSegment,
    conditionalUpdateOnly: true,
  }),
};

const scheduling: Record<string, KindRules> = {
  "coordination.k8s.io/Lease": rules({
    columns: columns.leaseColumns,
    allowCreateOnUpdate: true,
    conditionalUpdateOnly: true,
    prepareForCreate: scheduled.dropLeaseFields,
    prepareForUpdate: scheduled.dropLeaseFields,
    validate: scheduled.validateLease,
  }),
  "flowcontrol.apiserver.k8s.io/FlowSchema": rules({
    columns: columns.flowSchemaColumns,
    defaults: defaults.setFlowSchemaDefaults,
    generation,
  }),
  "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration": rules({
    columns: columns.priorityLevelColumns,
    defaults: defaults.setPriorityLevelDefaults,
    generation,
  }),
  "node.k8s.io/RuntimeClass": rules({
    columns: columns.runtimeClassColumns,
    allowCreateOnUpdate: true,
    conditionalUpdateOnly: true,
    validate: scheduled.validateRuntimeClass,
    validateUpdate: scheduled.validateRuntimeClassUpdate,
  }),
  "resource.k8s.io/DeviceClass": { columns: columns.nameAndAge, generation },
  "resource.k8s.io/ResourceClaim": rules({
    columns: columns.resourceClaimColumns,
    defaults: defaults.setResourceClaimDefaults,
  }),
  "resource.k8s.io/ResourceClaimTemplate": rules({
    columns: columns.nameAndAge,
    defaults: defaults.setResourceClaimTemplateDefaults,
  }),
  "resource.k8s.io/ResourceSlice": rules<ResourceSlice>({
    columns: columns.resourceSliceColumns,
    generation,
    selectableFields: ({ spec }) => ({ "spec.nodeName": spec.nodeName ?? "", "spec.driver": spec.driver }),
  }),
  "scheduling.k8s.io/PriorityClass": rules({
    columns: columns.priorityClassColumns,
    defaults: defaults.setPriorityClassDefaults,
    prepareForCreate: scheduled.preparePriorityClass,
    validate: scheduled.validatePriorityClass,
    validateUpdate: scheduled.validatePriorityClassUpdate,
  }),
};

/** The rules of built-in kinds by `group/kind`; kinds without an entry have only what all kinds share. */
export const builtInRules: Readonly<Record<string, KindRules>> = {
  ...core,
  ...workloads,
  ...network,
  ...storage,
  ...access,
  ...extension,
  ...scheduling,
};
