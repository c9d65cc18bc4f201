import type { ObjectMeta, Pod, PodResourceClaim, PodSpec } from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach, oneOf } from "../../validation/field-error.ts";
import { validateIP } from "../../validation/ip.ts";
import {
  isDNS1123Label,
  isDNS1123Subdomain,
  isDNS1123SubdomainWithUnderscore,
  isQualifiedName,
  inclusiveRange,
} from "../../validation/names.ts";
import { validateLabels } from "../../validation/object-meta.ts";
import {
  type ContainerContext,
  validateContainers,
  validateEphemeralContainers,
  validateImageSpace,
  validateInitContainers,
} from "./validate-containers.ts";
import { validateContainerResources, validatePodLevelResources } from "./validate-resources.ts";
import { validateAffinity, validateTolerations, validateTopologySpread } from "./validate-scheduling.ts";
import { validatePodSecurityContext } from "./validate-security.ts";
import { validateVolumes } from "./validate-volumes.ts";

const MAX_INT32 = 2147483647;
const MIRROR = "kubernetes.io/config.mirror";

/** A new pod, metadata aside. */
export function validatePod(pod: Pod): FieldError[] {
  const errors = validatePodAlways(pod);
  const { spec } = pod;
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(fieldError.forbidden("spec.ephemeralContainers", "cannot be set on create"));
  }
  if (spec.nodeName && (spec.schedulingGates ?? []).length > 0) {
    errors.push(fieldError.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"));
  }
  return errors;
}

/** What holds for a pod at any time. */
export function validatePodAlways(pod: Pod): FieldError[] {
  const { metadata, spec } = pod;
  const errors = validatePodAnnotations(metadata.annotations ?? {}, spec);
  errors.push(...validatePodSpec(spec, metadata, "spec", { isPod: true }));
  if (!spec.serviceAccountName) {
    for (const [i, volume] of (spec.volumes ?? []).entries()) {
      for (const [j, source] of (volume.projected?.sources ?? []).entries()) {
        if (!source.serviceAccountToken) continue;
        const at = `spec.volumes[${i}].projected.sources[${j}].serviceAccountToken`;
        errors.push(fieldError.forbidden(at, "must not be specified when serviceAccountName is not set"));
      }
    }
  }
  return [
    ...errors,
    ...eachItem(spec.containers, "spec.containers", validateImageSpace),
    ...eachItem(spec.initContainers, "spec.initContainers", validateImageSpace),
  ];
}

function validatePodAnnotations(annotations: Readonly<Record<string, string>>, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const mirror = annotations[MIRROR];
  if (mirror !== undefined && !spec.nodeName) {
    const text = "must set spec.nodeName if mirror pod annotation is set";
    errors.push(fieldError.invalid(`metadata.annotations[${MIRROR}]`, mirror, text));
  }
  const cost = "controller.kubernetes.io/pod-deletion-cost";
  const value = annotations[cost];
  if (value !== undefined && !isInt32(value)) {
    errors.push(fieldError.invalid(`metadata.annotations[${cost}]`, value, "must be a 32bit integer"));
  }
  return errors;
}

function isInt32(text: string): boolean {
  return /^-?(0|[1-9]\d*)$/.test(text) && Math.abs(Number(text)) <= MAX_INT32;
}

/** A pod spec, in a pod or in a template. `meta` is the pod's, where there is one. */
export function validatePodSpec(
  spec: PodSpec,
  meta: Partial<ObjectMeta> | undefined,
  path: string,
  { isPod }: { isPod: boolean },
): FieldError[] {
  const { errors, valid } = validateVolumes(spec.volumes, meta, `${path}.volumes`);
  const claims = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  const context: ContainerContext = { spec, volumes: valid, claims };
  return [
    ...errors,
    ...validateResourceClaims(spec.resourceClaims, `${path}.resourceClaims`),
    ...validateContainers(context, `${path}.containers`),
    ...validateInitContainers(context, `${path}.initContainers`),
    ...validateEphemeralContainers(context, `${path}.ephemeralContainers`),
    ...validatePodLevelResources(spec, claims, `${path}.resources`),
    ...validateHostNetwork(spec, path, isPod),
    ...oneOf(`${path}.restartPolicy`, spec.restartPolicy, ["Always", "OnFailure", "Never"]),
    ...oneOf(`${path}.dnsPolicy`, spec.dnsPolicy, ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
    ...validateLabels(spec.nodeSelector, `${path}.nodeSelector`),
    ...validatePodSecurityContext(
      spec.securityContext,
      { hostPID: spec.hostPID ?? false, shareProcessNamespace: spec.shareProcessNamespace },
      `${path}.securityContext`,
    ),
    ...validateAffinity(spec.affinity, `${path}.affinity`),
    ...validateDNS(spec, path),
    ...eachItem(spec.readinessGates, `${path}.readinessGates`, ({ conditionType }, at) =>
      invalidEach(`${at}.conditionType`, conditionType, isQualifiedName(conditionType)),
    ),
    ...validateSchedulingGates(spec, path),
    ...validateTopologySpread(spec.topologySpreadConstraints, `${path}.topologySpreadConstraints`),
    ...validateHostUsers(spec, path),
    ...validateNames(spec, path),
    ...validateTolerations(spec.tolerations, `${path}.tolerations`),
    ...validateHostAliases(spec, path),
    ...validateRest(spec, path),
  ];
}

function validateResourceClaims(claims: readonly PodResourceClaim[] | undefined, path: string): FieldError[] {
  const names = new Set<string>();
  return eachItem(claims, path, (claim, at) => {
    const errors: FieldError[] = [];
    const shown = {
      Name: claim.name,
      ResourceClaimName: claim.resourceClaimName ?? null,
      ResourceClaimTemplateName: claim.resourceClaimTemplateName ?? null,
    };
    if (!claim.name) errors.push(fieldError.required(`${at}.name`));
    else if (names.has(claim.name)) errors.push(fieldError.duplicate(`${at}.name`, claim.name));
    else errors.push(...invalidEach(`${at}.name`, claim.name, isDNS1123Label(claim.name)));
    names.add(claim.name);
    const given = [claim.resourceClaimName, claim.resourceClaimTemplateName].filter((name) => name !== undefined);
    const both = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
    const none = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
    if (given.length !== 1) errors.push(fieldError.invalid(at, shown, given.length === 2 ? both : none));
    for (const name of ["resourceClaimName", "resourceClaimTemplateName"] as const) {
      const value = claim[name];
      if (value !== undefined) errors.push(...invalidEach(`${at}.${name}`, value, isDNS1123Subdomain(value)));
    }
    return errors;
  });
}

function validateHostNetwork(spec: PodSpec, path: string, isPod: boolean): FieldError[] {
  if (!spec.hostNetwork) return [];
  return eachItem(spec.containers, `${path}.containers`, ({ ports }, place) =>
    eachItem(ports, `${place}.ports`, ({ hostPort = 0, containerPort }, at) => {
      if (hostPort === containerPort || (!isPod && hostPort === 0)) return [];
      return [fieldError.invalid(`${at}.hostPort`, hostPort, "must match `containerPort` when `hostNetwork` is true")];
    }),
  );
}

function validateDNS(spec: PodSpec, path: string): FieldError[] {
  const at = `${path}.dnsConfig`;
  const config = spec.dnsConfig;
  if (spec.dnsPolicy === "None") {
    if (!config) return [fieldError.required(at, "must provide `dnsConfig` when `dnsPolicy` is None")];
    if ((config.nameservers ?? []).length === 0) {
      const text = "must provide at least one DNS nameserver when `dnsPolicy` is None";
      return [fieldError.required(`${at}.nameservers`, text)];
    }
  }
  if (!config) return [];
  const { nameservers = [], searches = [], options } = config;
  const errors: FieldError[] = [];
  if (nameservers.length > 3) {
    errors.push(fieldError.invalid(`${at}.nameservers`, nameservers, "must not have more than 3 nameservers"));
  }
  errors.push(...eachItem(nameservers, `${at}.nameservers`, (address, place) => validateIP(address, place)));
  if (searches.length > 32) {
    errors.push(fieldError.invalid(`${at}.searches`, searches, "must not have more than 32 search paths"));
  }
  if (searches.join(" ").length > 2048) {
    const text = "must not have more than 2048 characters (including spaces) in the search list";
    errors.push(fieldError.invalid(`${at}.searches`, searches, text));
  }
  errors.push(
    ...eachItem(searches, `${at}.searches`, (search, place) => {
      if (search === ".") return [];
      const name = search.replace(/\.$/, "");
      return invalidEach(place, name, isDNS1123SubdomainWithUnderscore(name));
    }),
    ...eachItem(options, `${at}.options`, ({ name }, place) =>
      name ? [] : [fieldError.required(place, "must not be empty")],
    ),
  );
  return errors;
}

function validateSchedulingGates(spec: PodSpec, path: string): FieldError[] {
  const seen = new Set<string>();
  return eachItem(spec.schedulingGates, `${path}.schedulingGates`, ({ name }, at) => {
    const errors = invalidEach(at, name, isQualifiedName(name));
    if (seen.has(name)) errors.push(fieldError.duplicate(at, name));
    seen.add(name);
    return errors;
  });
}

function validateHostUsers(spec: PodSpec, path: string): FieldError[] {
  if (spec.hostUsers !== false) return [];
  const text = "when `hostUsers` is false";
  const errors: FieldError[] = [];
  if (spec.hostNetwork) errors.push(fieldError.forbidden(`${path}.hostNetwork`, text));
  if (spec.hostPID) errors.push(fieldError.forbidden(`${path}.HostPID`, text));
  if (spec.hostIPC) errors.push(fieldError.forbidden(`${path}.HostIPC`, text));
  return errors;
}

function validateNames(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const override = spec.hostnameOverride;
  if (override !== undefined) {
    const at = `${path}.hostnameOverride`;
    if (spec.setHostnameAsFQDN)
      errors.push(fieldError.forbidden(at, "may not be specified when setHostnameAsFQDN is true"));
    if (spec.hostNetwork) errors.push(fieldError.forbidden(at, "may not be specified when hostNetwork is true"));
    if (override.length > 64) errors.push(fieldError.tooLong(at, 64));
    errors.push(...invalidEach(at, override, isDNS1123Subdomain(override)));
  }
  const check = (name: keyof PodSpec, texts: (value: string) => string[]) => {
    const value = spec[name] as string | undefined;
    if (value) errors.push(...invalidEach(`${path}.${name}`, value, texts(value)));
  };
  check("serviceAccountName", isDNS1123Subdomain);
  check("nodeName", isDNS1123Subdomain);
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > MAX_INT32)) {
    errors.push(fieldError.invalid(`${path}.activeDeadlineSeconds`, deadline, inclusiveRange(1, MAX_INT32)));
  }
  check("hostname", isDNS1123Label);
  check("subdomain", isDNS1123Label);
  return errors;
}

function validateHostAliases(spec: PodSpec, path: string): FieldError[] {
  return eachItem(spec.hostAliases, `${path}.hostAliases`, ({ ip, hostnames }, at) => [
    ...validateIP(ip, `${at}.ip`),
    ...eachItem(hostnames, `${at}.hostnames`, (name, place) => invalidEach(place, name, isDNS1123Subdomain(name))),
  ]);
}

function validateRest(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { priorityClassName: priority, runtimeClassName: runtime, preemptionPolicy: preemption, os } = spec;
  if (priority) errors.push(...invalidEach(`${path}.priorityClassName`, priority, isDNS1123Subdomain(priority)));
  if (runtime !== undefined)
    errors.push(...invalidEach(`${path}.runtimeClassName`, runtime, isDNS1123Subdomain(runtime)));
  if (preemption !== undefined) {
    errors.push(...oneOf(`${path}.preemptionPolicy`, preemption, ["PreemptLowerPriority", "Never"]));
  }
  if (spec.overhead)
    errors.push(...validateContainerResources({ limits: spec.overhead }, new Set(), `${path}.overhead`));
  if (os) {
    if (!os.name) errors.push(fieldError.required(`${path}.os.name`));
    else errors.push(...oneOf(`${path}.os`, os.name, ["linux", "windows"]));
  }
  return errors;
}
