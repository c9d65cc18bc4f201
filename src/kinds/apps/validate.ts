import { deepEqual } from "#base";
import {
  validateOwnedTemplate,
  validateOwnSelector,
  validatePodTemplate,
  validateRunsForever,
  validateTemplateLabels,
} from "../core/pod/validate-template.ts";
import { validateClaimSpec } from "../core/pod/validate-volumes.ts";
import type {
  ControllerRevision,
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
  StatefulSetSpec,
} from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, immutable, invalidEach, nonNegative, oneOf } from "../validation/field-error.ts";
import { intOrPercentValue, notMoreThan100Percent, validateIntOrPercent } from "../validation/int-or-percent.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";
import { isDNS1123Label } from "../validation/names.ts";
import { isEmptySelector, matchesSelector } from "../selector.ts";

/** Counters of a status: none negative, none above another. */
export function validateCounters(
  status: object | undefined,
  names: readonly string[],
  limits: readonly (readonly [name: string, limit: string, text: string])[],
): FieldError[] {
  const counters = (status ?? {}) as Readonly<Record<string, number | undefined>>;
  const errors = names.flatMap((name) => nonNegative(`status.${name}`, counters[name]));
  for (const [name, limit, text] of limits) {
    const value = counters[name] ?? 0;
    if (value > (counters[limit] ?? 0)) errors.push(fieldError.invalid(`status.${name}`, value, text));
  }
  return errors;
}

const AT_MOST_REPLICAS = "cannot be greater than status.replicas";

export function validateDeployment({ spec }: Deployment): FieldError[] {
  const errors = [
    ...nonNegative("spec.replicas", spec.replicas),
    ...validateOwnSelector(spec.selector, "deployment", "spec.selector"),
    ...validateOwnedTemplate(spec.template, { kind: "ReplicaSet", selector: spec.selector }, "spec.template"),
    ...validateDeploymentStrategy(spec.strategy ?? {}),
    ...nonNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...nonNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit),
  ];
  const deadline = spec.progressDeadlineSeconds;
  if (deadline === undefined) return errors;
  errors.push(...nonNegative("spec.progressDeadlineSeconds", deadline));
  if (deadline <= (spec.minReadySeconds ?? 0)) {
    errors.push(fieldError.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
  }
  return errors;
}

function validateDeploymentStrategy(strategy: NonNullable<Deployment["spec"]["strategy"]>): FieldError[] {
  const path = "spec.strategy.rollingUpdate";
  const rolling = strategy.rollingUpdate;
  if (strategy.type === "Recreate") {
    return rolling ? [fieldError.forbidden(path, "may not be specified when strategy `type` is 'Recreate'")] : [];
  }
  if (strategy.type !== "RollingUpdate") {
    const shown = { Type: strategy.type ?? "", RollingUpdate: rolling ?? null };
    return [fieldError.notSupported("spec.strategy", shown, ["Recreate", "RollingUpdate"])];
  }
  const { maxUnavailable, maxSurge } = rolling ?? {};
  const errors = [
    ...validateIntOrPercent(maxUnavailable, `${path}.maxUnavailable`),
    ...validateIntOrPercent(maxSurge, `${path}.maxSurge`),
  ];
  if (intOrPercentValue(maxUnavailable) === 0 && intOrPercentValue(maxSurge) === 0) {
    errors.push(fieldError.invalid(`${path}.maxUnavailable`, maxUnavailable ?? 0, "may not be 0 when `maxSurge` is 0"));
  }
  return [...errors, ...notMoreThan100Percent(maxUnavailable, `${path}.maxUnavailable`)];
}

export function validateDeploymentUpdate(deployment: Deployment, old: Deployment, subresource: string): FieldError[] {
  if (subresource === "status") {
    return validateCounters(
      deployment.status,
      [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "collisionCount",
      ],
      [
        ["updatedReplicas", "replicas", AT_MOST_REPLICAS],
        ["readyReplicas", "replicas", AT_MOST_REPLICAS],
        ["availableReplicas", "replicas", AT_MOST_REPLICAS],
        ["availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"],
      ],
    );
  }
  return [
    ...validateDeployment(deployment),
    ...immutable("spec.selector", deployment.spec.selector, old.spec.selector, deepEqual),
  ];
}

export function validateReplicaSet({ spec }: ReplicaSet): FieldError[] {
  const template = spec.template ?? { spec: { containers: [] } };
  return [
    ...nonNegative("spec.replicas", spec.replicas),
    ...nonNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...validateOwnSelector(spec.selector, "deployment", "spec.selector"),
    ...validateOwnedTemplate(template, { kind: "ReplicaSet", selector: spec.selector }, "spec.template"),
  ];
}

export function validateReplicaSetUpdate(set: ReplicaSet, old: ReplicaSet, subresource: string): FieldError[] {
  if (subresource === "status") {
    return validateCounters(
      set.status,
      ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
      [
        ["fullyLabeledReplicas", "replicas", AT_MOST_REPLICAS],
        ["readyReplicas", "replicas", AT_MOST_REPLICAS],
        ["availableReplicas", "replicas", AT_MOST_REPLICAS],
        ["availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"],
      ],
    );
  }
  return [...validateReplicaSet(set), ...immutable("spec.selector", set.spec.selector, old.spec.selector, deepEqual)];
}

export function validateDaemonSet({ spec }: DaemonSet): FieldError[] {
  const errors = validateLabelSelector(spec.selector, "spec.selector");
  const { selector, template } = spec;
  if (selector && !matchesSelector(selector, template.metadata?.labels)) {
    const labels = template.metadata?.labels ?? null;
    errors.push(
      fieldError.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
    );
  }
  if (selector && isEmptySelector(selector)) {
    errors.push(fieldError.invalid("spec.selector", selector, "empty selector is invalid for daemonset"));
  }
  return [
    ...errors,
    ...validatePodTemplate(template, "spec.template"),
    ...validateRunsForever(template, "DaemonSet", "spec.template"),
    ...nonNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...validateDaemonStrategy(spec.updateStrategy ?? {}),
    ...nonNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit),
  ];
}

function validateDaemonStrategy(strategy: NonNullable<DaemonSet["spec"]["updateStrategy"]>): FieldError[] {
  const path = "spec.updateStrategy.rollingUpdate";
  if (strategy.type === "OnDelete") return [];
  if (strategy.type !== "RollingUpdate") {
    const shown = { Type: strategy.type ?? "", RollingUpdate: strategy.rollingUpdate ?? null };
    return [fieldError.notSupported("spec.updateStrategy", shown, ["RollingUpdate", "OnDelete"])];
  }
  const { maxUnavailable, maxSurge } = strategy.rollingUpdate ?? {};
  const errors = [
    ...validateIntOrPercent(maxUnavailable, `${path}.maxUnavailable`),
    ...validateIntOrPercent(maxSurge, `${path}.maxSurge`),
    ...notMoreThan100Percent(maxUnavailable, `${path}.maxUnavailable`),
    ...notMoreThan100Percent(maxSurge, `${path}.maxSurge`),
  ];
  const [unavailable, surge] = [intOrPercentValue(maxUnavailable) !== 0, intOrPercentValue(maxSurge) !== 0];
  if (unavailable && surge) {
    errors.push(fieldError.invalid(`${path}.maxSurge`, maxSurge, "may not be set when maxUnavailable is non-zero"));
  } else if (!unavailable && !surge) {
    errors.push(fieldError.required(`${path}.maxUnavailable`, "cannot be 0 when maxSurge is 0"));
  }
  return errors;
}

export function validateDaemonSetUpdate(set: DaemonSet, old: DaemonSet, subresource: string): FieldError[] {
  if (subresource === "status") {
    const names = [
      "currentNumberScheduled",
      "numberMisscheduled",
      "desiredNumberScheduled",
      "numberReady",
      "observedGeneration",
    ];
    return validateCounters(
      set.status,
      [...names, "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"],
      [],
    );
  }
  return [...immutable("spec.selector", set.spec.selector, old.spec.selector, deepEqual), ...validateDaemonSet(set)];
}

export function validateStatefulSet(set: StatefulSet): FieldError[] {
  const { spec } = set;
  return [
    ...validateStatefulSetSpec(spec),
    ...(spec.serviceName ? invalidEach("spec.serviceName", spec.serviceName, isDNS1123Label(spec.serviceName)) : []),
    ...eachItem(spec.volumeClaimTemplates, "spec.volumeClaimTemplates", (claim, at) =>
      validateClaimSpec(claim.spec, `${at}.spec`),
    ),
  ];
}

function validateStatefulSetSpec(spec: StatefulSetSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { podManagementPolicy: policy = "" } = spec;
  if (!policy) errors.push(fieldError.required("spec.podManagementPolicy"));
  else if (policy !== "OrderedReady" && policy !== "Parallel") {
    errors.push(fieldError.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"));
  }
  errors.push(...validateStatefulStrategy(spec.updateStrategy ?? {}));
  const retention = spec.persistentVolumeClaimRetentionPolicy;
  for (const name of ["whenDeleted", "whenScaled"] as const) {
    if (retention)
      errors.push(...oneOf(`spec.persistentVolumeClaimRetentionPolicy.${name}`, retention[name], ["Retain", "Delete"]));
  }
  errors.push(
    ...nonNegative("spec.replicas", spec.replicas),
    ...nonNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...nonNegative("spec.ordinals.start", spec.ordinals?.start),
    ...validateOwnSelector(spec.selector, "statefulset", "spec.selector"),
  );
  const template = withClaimVolumes(spec);
  return [
    ...errors,
    ...validateTemplateLabels(template, spec.selector, "spec.template"),
    ...validatePodTemplate(template, "spec.template"),
    ...validateRunsForever(template, "StatefulSet", "spec.template"),
  ];
}

/** The template with volumes for the claims, which its mounts may name; host name and subdomain are set per pod. */
function withClaimVolumes(spec: StatefulSetSpec): StatefulSetSpec["template"] {
  const { hostname: _, subdomain: __, ...podSpec } = spec.template.spec;
  const claims = (spec.volumeClaimTemplates ?? []).map(({ metadata: { name } }) => name);
  if (claims.length === 0) return { ...spec.template, spec: podSpec };
  const own = (podSpec.volumes ?? []).filter(({ name }) => !claims.includes(name));
  const volumes = claims.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  return { ...spec.template, spec: { ...podSpec, volumes: [...volumes, ...own] } };
}

function validateStatefulStrategy(strategy: NonNullable<StatefulSetSpec["updateStrategy"]>): FieldError[] {
  const path = "spec.updateStrategy";
  const rolling = strategy.rollingUpdate;
  switch (strategy.type ?? "") {
    case "":
      return [fieldError.required(path)];
    case "OnDelete": {
      const shown = { Partition: rolling?.partition ?? 0, MaxUnavailable: rolling?.maxUnavailable ?? null };
      return rolling
        ? [fieldError.invalid(`${path}.rollingUpdate`, shown, "only allowed for updateStrategy 'RollingUpdate'")]
        : [];
    }
    case "RollingUpdate":
      return nonNegative(`${path}.rollingUpdate.partition`, rolling?.partition);
    default: {
      const shown = { Type: strategy.type, RollingUpdate: rolling ?? null };
      return [fieldError.invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")];
    }
  }
}

const STATEFUL_MUTABLE = [
  "replicas",
  "ordinals",
  "template",
  "updateStrategy",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
] as const;

export function validateStatefulSetUpdate(set: StatefulSet, old: StatefulSet, subresource: string): FieldError[] {
  if (subresource === "status") {
    return validateCounters(
      set.status,
      [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
      ],
      [
        ["readyReplicas", "replicas", AT_MOST_REPLICAS],
        ["currentReplicas", "replicas", AT_MOST_REPLICAS],
        ["updatedReplicas", "replicas", AT_MOST_REPLICAS],
        ["availableReplicas", "replicas", AT_MOST_REPLICAS],
        ["availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"],
      ],
    );
  }
  const errors = validateStatefulSetSpec(set.spec);
  const fixed = (spec: StatefulSetSpec) =>
    Object.fromEntries(Object.entries(spec).filter(([name]) => !STATEFUL_MUTABLE.some((mutable) => mutable === name)));
  if (!deepEqual(fixed(set.spec), fixed(old.spec))) {
    const names = STATEFUL_MUTABLE.map((name) => `'${name}'`);
    const list = `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
    errors.push(
      fieldError.forbidden("spec", `updates to statefulset spec for fields other than ${list} are forbidden`),
    );
  }
  return errors;
}

export function validateControllerRevision({ data, revision }: ControllerRevision): FieldError[] {
  const errors = nonNegative("revision", revision);
  if (data === undefined || data === null) errors.push(fieldError.required("data", "data is mandatory"));
  else if (typeof data !== "object" || Array.isArray(data)) {
    errors.push(fieldError.required("data", "data must be a valid JSON object"));
  }
  return errors;
}

export function validateControllerRevisionUpdate(revision: ControllerRevision, old: ControllerRevision): FieldError[] {
  return [...nonNegative("revision", revision.revision), ...immutable("data", revision.data, old.data, deepEqual)];
}
