import type {
  APIService,
  ClusterRoleBinding,
  CSIDriver,
  CustomResourceDefinition,
  DeviceClaim,
  EndpointSlice,
  FlowSchema,
  IngressClass,
  MatchResources,
  MutatingAdmissionPolicy,
  MutatingWebhook,
  MutatingWebhookConfiguration,
  NetworkPolicy,
  PriorityClass,
  PriorityLevelConfiguration,
  ResourceClaim,
  ResourceClaimTemplate,
  RoleBinding,
  RuleWithOperations,
  StorageClass,
  ValidatingAdmissionPolicy,
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
} from "../generated/types.ts";

const RBAC = "rbac.authorization.k8s.io";

export function setRoleBindingDefaults(binding: RoleBinding | ClusterRoleBinding): void {
  binding.roleRef.apiGroup ||= RBAC;
  for (const subject of binding.subjects ?? []) {
    if (subject.kind === "User" || subject.kind === "Group") subject.apiGroup ||= RBAC;
  }
}

export function setNetworkPolicyDefaults({ spec }: NetworkPolicy): void {
  if (!spec) return;
  const rules = [...(spec.ingress ?? []), ...(spec.egress ?? [])];
  for (const { ports } of rules) for (const port of ports ?? []) port.protocol ??= "TCP";
  if ((spec.policyTypes ?? []).length > 0) return;
  spec.policyTypes = (spec.egress ?? []).length > 0 ? ["Ingress", "Egress"] : ["Ingress"];
}

export function setIngressClassDefaults({ spec }: IngressClass): void {
  if (spec?.parameters) spec.parameters.scope ??= "Cluster";
}

export function setEndpointSliceDefaults({ ports }: EndpointSlice): void {
  for (const port of ports ?? []) {
    port.name ??= "";
    port.protocol ??= "TCP";
  }
}

export function setStorageClassDefaults(storageClass: StorageClass): void {
  storageClass.reclaimPolicy ??= "Delete";
  storageClass.volumeBindingMode ??= "Immediate";
}

export function setCSIDriverDefaults({ spec }: CSIDriver): void {
  spec.attachRequired ??= true;
  spec.podInfoOnMount ??= false;
  spec.storageCapacity ??= false;
  spec.fsGroupPolicy ??= "ReadWriteOnceWithFSType";
  if ((spec.volumeLifecycleModes ?? []).length === 0) spec.volumeLifecycleModes = ["Persistent"];
  spec.requiresRepublish ??= false;
  spec.seLinuxMount ??= false;
}

export function setPriorityClassDefaults(priorityClass: PriorityClass): void {
  priorityClass.preemptionPolicy ??= "PreemptLowerPriority";
}

export function setFlowSchemaDefaults({ spec }: FlowSchema): void {
  if (spec) spec.matchingPrecedence ||= 1000;
}

export function setPriorityLevelDefaults({ spec }: PriorityLevelConfiguration): void {
  if (spec?.exempt) {
    spec.exempt.nominalConcurrencyShares ??= 0;
    spec.exempt.lendablePercent ??= 0;
  }
  if (!spec?.limited) return;
  spec.limited.nominalConcurrencyShares ??= 30;
  spec.limited.lendablePercent ??= 0;
  const queuing = spec.limited.limitResponse?.queuing;
  if (!queuing) return;
  queuing.handSize ||= 8;
  queuing.queues ||= 64;
  queuing.queueLengthLimit ||= 50;
}

export function setCustomResourceDefinitionDefaults(crd: CustomResourceDefinition): void {
  const { spec } = crd;
  spec.names.singular ||= spec.names.kind.toLowerCase();
  if (spec.names.kind) spec.names.listKind ||= `${spec.names.kind}List`;
  spec.conversion ??= { strategy: "None" };
  const service = spec.conversion.webhook?.clientConfig?.service;
  if (service) service.port ??= 443;
}

/** The version that is stored is the first of those that ever were. */
export function prepareCustomResourceDefinition({ spec, status }: CustomResourceDefinition): void {
  const stored = spec.versions?.find(({ storage }) => storage);
  if (stored && status) status.storedVersions = [stored.name];
}

export function setAPIServiceDefaults({ spec }: APIService): void {
  if (spec?.service) spec.service.port ??= 443;
}

export function setWebhookDefaults(configuration: ValidatingWebhookConfiguration | MutatingWebhookConfiguration): void {
  for (const webhook of configuration.webhooks ?? []) {
    setOneWebhookDefaults(webhook);
    if (configuration.kind === "MutatingWebhookConfiguration") {
      (webhook as MutatingWebhook).reinvocationPolicy ??= "Never";
    }
  }
}

function setOneWebhookDefaults(webhook: ValidatingWebhook | MutatingWebhook): void {
  webhook.failurePolicy ??= "Fail";
  webhook.matchPolicy ??= "Equivalent";
  webhook.namespaceSelector ??= {};
  webhook.objectSelector ??= {};
  webhook.timeoutSeconds ??= 10;
  if (webhook.clientConfig.service) webhook.clientConfig.service.port ??= 443;
  setRuleDefaults(webhook.rules);
}

function setRuleDefaults(rules: readonly RuleWithOperations[] | undefined): void {
  for (const rule of rules ?? []) rule.scope ??= "*";
}

export function setMatchResourcesDefaults(resources: MatchResources | undefined): void {
  if (!resources) return;
  resources.matchPolicy ??= "Equivalent";
  resources.namespaceSelector ??= {};
  resources.objectSelector ??= {};
  setRuleDefaults(resources.resourceRules);
  setRuleDefaults(resources.excludeResourceRules);
}

export function setAdmissionPolicyDefaults({ spec }: ValidatingAdmissionPolicy | MutatingAdmissionPolicy): void {
  if (!spec) return;
  spec.failurePolicy ??= "Fail";
  setMatchResourcesDefaults(spec.matchConstraints);
}

export function setResourceClaimDefaults({ spec }: ResourceClaim): void {
  setDeviceClaimDefaults(spec.devices);
}

export function setResourceClaimTemplateDefaults({ spec }: ResourceClaimTemplate): void {
  setDeviceClaimDefaults(spec.spec?.devices);
}

function setDeviceClaimDefaults(devices: DeviceClaim | undefined): void {
  for (const { exactly, firstAvailable } of devices?.requests ?? []) {
    for (const request of [...(exactly ? [exactly] : []), ...(firstAvailable ?? [])]) {
      request.allocationMode ||= "ExactCount";
      if (request.allocationMode === "ExactCount") request.count ||= 1;
    }
  }
}
