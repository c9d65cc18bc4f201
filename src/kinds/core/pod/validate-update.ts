import { deepClone, deepEqual } from "#base";
import type { Container, ContainerStatus, Pod, PodSpec, Toleration } from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach } from "../../validation/field-error.ts";
import { validateIP } from "../../validation/ip.ts";
import { inclusiveRange, isDNS1123Subdomain, isQualifiedName } from "../../validation/names.ts";
import { isSidecar, qosClass } from "./resources.ts";
import { validatePodAlways } from "./validate.ts";
import { validateImageSpace } from "./validate-containers.ts";

const MAX_INT32 = 2147483647;
const UPDATABLE = [
  "`spec.containers[*].image`",
  "`spec.initContainers[*].image`",
  "`spec.activeDeadlineSeconds`",
  "`spec.tolerations` (only additions to existing tolerations)",
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
];

/** A change of a pod through one of its endpoints, metadata aside. */
export function validatePodUpdate(pod: Pod, old: Pod, subresource: string): FieldError[] {
  switch (subresource) {
    case "status":
      return validateStatus(pod, old);
    case "ephemeralcontainers":
      return validateEphemeral(pod, old);
    case "resize":
      return validateResize(pod, old);
    default:
      return validateMain(pod, old);
  }
}

function validateMain(pod: Pod, old: Pod): FieldError[] {
  const errors = [...validatePodAlways(pod), ...validateMirrorAnnotation(pod, old)];
  for (const name of ["containers", "initContainers"] as const) {
    const now = pod.spec[name] ?? [];
    if (now.length !== (old.spec[name] ?? []).length) {
      return [...errors, fieldError.forbidden(`spec.${name}`, "pod updates may not add or remove containers")];
    }
    for (const [i, container] of now.entries()) {
      if (!container.image) errors.push(fieldError.required(`spec.${name}[${i}].image`));
      errors.push(...validateImageSpace(container, `spec.${name}[${i}]`));
    }
  }
  const deadline = validateDeadline(pod, old);
  errors.push(...deadline.errors);
  if (deadline.stop) return errors;
  errors.push(...validateTolerations(pod.spec.tolerations, old.spec.tolerations));
  const gates = new Set((old.spec.schedulingGates ?? []).map(({ name }) => name));
  for (const [i, { name }] of (pod.spec.schedulingGates ?? []).entries()) {
    if (gates.has(name)) continue;
    const text = `only deletion is allowed, but found new scheduling gate '${name}'`;
    errors.push(fieldError.forbidden(`spec.schedulingGates[${i}].name`, text));
  }
  if (!deepEqual(withoutUpdatable(pod.spec, old.spec), old.spec)) {
    errors.push(fieldError.forbidden("spec", `pod updates may not change fields other than ${UPDATABLE.join(",")}`));
  }
  return errors;
}

function validateMirrorAnnotation(pod: Pod, old: Pod): FieldError[] {
  const key = "kubernetes.io/config.mirror";
  const [now, before] = [pod.metadata.annotations?.[key], old.metadata.annotations?.[key]];
  if (now === before) return [];
  const text =
    before === undefined ? "may not add mirror pod annotation" : "may not remove or update mirror pod annotation";
  return [fieldError.forbidden(`metadata.annotations[${key}]`, text)];
}

function validateDeadline(pod: Pod, old: Pod): { errors: FieldError[]; stop: boolean } {
  const at = "spec.activeDeadlineSeconds";
  const [now, before] = [pod.spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds];
  if (now === undefined) {
    const text = "must not update from a positive integer to nil value";
    return { errors: before === undefined ? [] : [fieldError.invalid(at, null, text)], stop: false };
  }
  if (now < 0 || now > MAX_INT32)
    return { errors: [fieldError.invalid(at, now, inclusiveRange(0, MAX_INT32))], stop: true };
  if (before === undefined || before >= now) return { errors: [], stop: false };
  return { errors: [fieldError.invalid(at, now, "must be less than or equal to previous value")], stop: true };
}

function validateTolerations(now: readonly Toleration[] = [], before: readonly Toleration[] = []): FieldError[] {
  const plain = ({ tolerationSeconds: _, ...rest }: Toleration) => rest;
  const kept = before.every((toleration) => now.some((other) => deepEqual(plain(other), plain(toleration))));
  if (kept) return [];
  return [
    fieldError.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"),
  ];
}

/** The new spec with all that may change put back to what it was. */
function withoutUpdatable(spec: PodSpec, old: PodSpec): PodSpec {
  const munged = deepClone<PodSpec>(spec);
  for (const name of ["containers", "initContainers"] as const) {
    for (const [i, container] of (munged[name] ?? []).entries()) restore(container, old[name]?.[i], "image");
  }
  restore(munged, old, "activeDeadlineSeconds");
  restore(munged, old, "schedulingGates");
  restore(munged, old, "tolerations");
  if ((old.terminationGracePeriodSeconds ?? 0) < 0 && munged.terminationGracePeriodSeconds === 1) {
    restore(munged, old, "terminationGracePeriodSeconds");
  }
  // pods that wait at a gate may be narrowed down to fewer nodes
  if ((old.schedulingGates ?? []).length > 0) {
    restore(munged, old, "nodeSelector");
    if (munged.affinity || old.affinity?.nodeAffinity) {
      munged.affinity ??= {};
      restore(munged.affinity, old.affinity ?? {}, "nodeAffinity");
      if (Object.keys(munged.affinity).length === 0 && !old.affinity) delete munged.affinity;
    }
  }
  return munged;
}

function restore<T extends object, K extends keyof T>(object: T, old: T | undefined, name: K): void {
  if (old?.[name] === undefined) delete object[name];
  else object[name] = old[name];
}

function validateStatus(pod: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  const status = pod.status ?? {};
  const system = ["PodScheduled", "Ready", "Initialized"];
  errors.push(
    ...eachItem(status.conditions, "status.conditions", ({ type }, at) =>
      system.includes(type) ? [] : invalidEach(`${at}.Type`, type, isQualifiedName(type)),
    ),
  );
  const nominated = status.nominatedNodeName;
  if (nominated && nominated !== old.status?.nominatedNodeName) {
    errors.push(...invalidEach("status.nominatedNodeName", nominated, isDNS1123Subdomain(nominated)));
  }
  if (status.qosClass !== old.status?.qosClass) {
    errors.push(fieldError.invalid("status.qosClass", status.qosClass ?? "", "field is immutable"));
  }
  errors.push(
    ...validateTransitions(pod, old, "containerStatuses"),
    ...validateTransitions(pod, old, "initContainerStatuses"),
  );
  const addresses = status.podIPs ?? [];
  errors.push(...eachItem(addresses, "status.podIPs", ({ ip }, at) => validateIP(ip, at)));
  const seen = new Set<string>();
  for (const [i, { ip }] of addresses.entries()) {
    if (seen.has(ip)) errors.push(fieldError.duplicate(`status.podIPs[${i}]`, { IP: ip }));
    seen.add(ip);
  }
  return errors;
}

/** A container that ended for good stays ended. */
function validateTransitions(pod: Pod, old: Pod, field: "containerStatuses" | "initContainerStatuses"): FieldError[] {
  if (restartsTogether(old.spec)) return [];
  const specs = (field === "containerStatuses" ? old.spec.containers : old.spec.initContainers) ?? [];
  return eachItem(old.status?.[field], `status.${field}`, (before: ContainerStatus, at) => {
    const exitCode = before.state?.terminated?.exitCode;
    const now = pod.status?.[field]?.find(({ name }) => name === before.name);
    const container = specs.find(({ name }) => name === before.name);
    if (exitCode === undefined || !now || now.state?.terminated || !container) return [];
    if (mayRestart(container, old.spec, exitCode, field === "initContainerStatuses")) return [];
    return [fieldError.forbidden(`${at}.state`, "may not be transitioned to non-terminated state")];
  });
}

/** The exit of one container can start all of them again, those too that ended for good. KEP-5532 */
const restartsTogether = (spec: PodSpec): boolean =>
  [...spec.containers, ...(spec.initContainers ?? [])].some((container) =>
    container.restartPolicyRules?.some(({ action }) => action === "RestartAllContainers"),
  );

function mayRestart(container: Container, spec: PodSpec, exitCode: number, init: boolean): boolean {
  const rules = container.restartPolicyRules ?? [];
  const hit = rules.some(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false;
    return exitCodes?.operator === "In" ? listed : exitCodes?.operator === "NotIn" && !listed;
  });
  if (hit) return true;
  const policy = container.restartPolicy ?? spec.restartPolicy;
  if (init && !container.restartPolicy) return spec.restartPolicy !== "Never" || exitCode === 0 || isSidecar(container);
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

function validateEphemeral(pod: Pod, old: Pod): FieldError[] {
  if (old.metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined) {
    return [fieldError.forbidden("", "static pods do not support ephemeral containers")];
  }
  const errors = validatePodAlways(pod);
  for (const before of old.spec.ephemeralContainers ?? []) {
    const now = pod.spec.ephemeralContainers?.find(({ name }) => name === before.name);
    const what = `existing ephemeral containers ${JSON.stringify(before.name)} may not be`;
    if (!now) errors.push(fieldError.forbidden("spec.ephemeralContainers", `${what} removed\n`));
    else if (!deepEqual(now, before)) errors.push(fieldError.forbidden("spec.ephemeralContainers", `${what} changed`));
  }
  return errors;
}

function validateResize(pod: Pod, old: Pod): FieldError[] {
  if (old.metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined) {
    return [fieldError.forbidden("", "static pods cannot be resized")];
  }
  const errors = validatePodAlways(pod);
  if ((old.status?.qosClass ?? qosClass(old)) !== qosClass(pod)) {
    const text = "Pod QOS Class may not change as a result of resizing";
    errors.push(fieldError.invalid("spec", pod.status?.qosClass ?? "", text));
  }
  for (const name of ["containers", "initContainers"] as const) {
    const [now, before] = [pod.spec[name] ?? [], old.spec[name] ?? []];
    if (now.length !== before.length) {
      return [...errors, fieldError.forbidden(`spec.${name}`, `${name} may not be added or removed on resize`)];
    }
    const moved = now.findIndex((container, i) => container.name !== before[i]?.name);
    if (moved >= 0) {
      const text = `${name} may not be renamed or reordered on resize`;
      return [...errors, fieldError.forbidden(`spec.${name}[${moved}].name`, text)];
    }
    for (const [i, container] of now.entries()) {
      errors.push(...validateContainerResize(container, before[i]!, `spec.${name}[${i}].resources`));
    }
  }
  if (errors.length === 0 && !deepEqual(withoutCompute(pod.spec), withoutCompute(old.spec))) {
    errors.push(fieldError.forbidden("spec", "only cpu and memory resources are mutable"));
  }
  return errors;
}

function validateContainerResize(container: Container, old: Container, path: string): FieldError[] {
  return (["requests", "limits"] as const).flatMap((kind) => {
    const removed = Object.keys(old.resources?.[kind] ?? {}).some(
      (name) => container.resources?.[kind]?.[name] === undefined,
    );
    return removed ? [fieldError.forbidden(`${path}.${kind}`, `resource ${kind} cannot be removed`)] : [];
  });
}

function withoutCompute(spec: PodSpec): PodSpec {
  const copy = deepClone<PodSpec>(spec);
  const holders = [...(copy.containers ?? []), ...(copy.initContainers ?? []), copy];
  for (const { resources } of holders) {
    for (const kind of ["requests", "limits"] as const) {
      const list = resources?.[kind];
      if (!list) continue;
      delete list.cpu;
      delete list.memory;
      if (Object.keys(list).length === 0) delete resources[kind];
    }
  }
  for (const container of [...(copy.containers ?? []), ...(copy.initContainers ?? [])]) delete container.resizePolicy;
  if (copy.resources && Object.keys(copy.resources).length === 0) delete copy.resources;
  return copy;
}
