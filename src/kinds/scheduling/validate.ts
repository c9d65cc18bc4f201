import { deepEqual } from "#base";
import { validateTolerations } from "../core/pod/validate-scheduling.ts";
import { validateAmount, validateContainerResourceName } from "../core/pod/validate-resources.ts";
import type { Lease, PriorityClass, RuntimeClass, Toleration } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, immutable, invalidEach, nonNegative, oneOf } from "../validation/field-error.ts";
import { isDNS1123Label } from "../validation/names.ts";
import { validateLabels } from "../validation/object-meta.ts";

const HIGHEST_USER_PRIORITY = 1_000_000_000;
const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  "system-node-critical": 2_000_001_000,
  "system-cluster-critical": 2_000_000_000,
};

export function validatePriorityClass(priorityClass: PriorityClass): FieldError[] {
  const { value = 0, preemptionPolicy: policy } = priorityClass;
  const errors = validatePriority(priorityClass, value);
  if (policy === undefined) return errors;
  if (policy === "") return [...errors, fieldError.required("preemptionPolicy")];
  return [...errors, ...oneOf("preemptionPolicy", policy, ["PreemptLowerPriority", "Never"])];
}

function validatePriority({ metadata: { name }, globalDefault }: PriorityClass, value: number): FieldError[] {
  if (name.startsWith("system-")) {
    const known = SYSTEM_PRIORITIES[name];
    let why: string | undefined;
    if (known === undefined) why = `${name} is not a known system priority class`;
    else if (known !== value) why = `value of ${name} PriorityClass must be ${known}`;
    else if (globalDefault) why = `globalDefault of ${name} PriorityClass must be false`;
    if (!why) return [];
    const text = `priority class names with 'system-' prefix are reserved for system use only. error: ${why}`;
    return [fieldError.forbidden("metadata.name", text)];
  }
  if (value <= HIGHEST_USER_PRIORITY) return [];
  const text = `maximum allowed value of a user defined priority is ${HIGHEST_USER_PRIORITY}`;
  return [fieldError.forbidden("value", text)];
}

export function validatePriorityClassUpdate(priorityClass: PriorityClass, old: PriorityClass): FieldError[] {
  const errors: FieldError[] = [];
  if ((priorityClass.value ?? 0) !== (old.value ?? 0)) {
    errors.push(fieldError.forbidden("value", "may not be changed in an update."));
  }
  const { preemptionPolicy } = priorityClass;
  return [...errors, ...immutable("preemptionPolicy", preemptionPolicy, old.preemptionPolicy, deepEqual)];
}

/** It has a generation, which never grows. */
export function preparePriorityClass(priorityClass: PriorityClass): void {
  priorityClass.metadata.generation = 1;
}

export function validateRuntimeClass({ handler, overhead, scheduling }: RuntimeClass): FieldError[] {
  const errors = handler ? invalidEach("handler", handler, isDNS1123Label(handler)) : [fieldError.required("handler")];
  for (const [name, amount] of Object.entries(overhead?.podFixed ?? {})) {
    const at = `overhead.limits[${name}]`;
    errors.push(...validateContainerResourceName(name, at), ...validateAmount(name, amount, at));
  }
  if (!scheduling) return errors;
  const { nodeSelector, tolerations = [] } = scheduling;
  return [
    ...errors,
    ...validateLabels(nodeSelector, "scheduling.nodeSelector"),
    ...validateTolerations(tolerations, "scheduling.tolerations"),
    ...eachItem(tolerations, "scheduling.tolerations", (toleration, at, i) =>
      tolerations.slice(0, i).some((other) => deepEqual(other, toleration))
        ? [fieldError.duplicate(at, shownToleration(toleration))]
        : [],
    ),
  ];
}

function shownToleration({ key, operator, value, effect, tolerationSeconds }: Toleration): object {
  return {
    Key: key ?? "",
    Operator: operator ?? "",
    Value: value ?? "",
    Effect: effect ?? "",
    TolerationSeconds: tolerationSeconds ?? null,
  };
}

export function validateRuntimeClassUpdate(runtimeClass: RuntimeClass, old: RuntimeClass): FieldError[] {
  return immutable("handler", runtimeClass.handler, old.handler, deepEqual);
}

export function validateLease({ spec }: Lease): FieldError[] {
  const { leaseDurationSeconds: seconds, leaseTransitions } = spec ?? {};
  const errors: FieldError[] = [];
  if (seconds !== undefined && seconds <= 0) {
    errors.push(fieldError.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
  }
  return [...errors, ...nonNegative("spec.leaseTransitions", leaseTransitions)];
}

/** Fields of coordinated leader election, which is off by default. */
export function dropLeaseFields({ spec }: Lease): void {
  delete spec?.strategy;
  delete spec?.preferredHolder;
}
