import type {
  Affinity,
  LabelSelector,
  NodeAffinity,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
  Toleration,
  TopologySpreadConstraint,
} from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach } from "../../validation/field-error.ts";
import { validateLabelSelector } from "../../validation/label-selector.ts";
import { isDNS1123Label, isDNS1123Subdomain, isLabelValue } from "../../validation/names.ts";
import { validateLabelName } from "../../validation/object-meta.ts";

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

export function validateTaintEffect(effect: string | undefined, path: string): FieldError[] {
  return EFFECTS.includes(effect ?? "") ? [] : [fieldError.notSupported(path, effect ?? "", EFFECTS)];
}

export function validateTolerations(tolerations: readonly Toleration[] | undefined, path: string): FieldError[] {
  return eachItem(tolerations, path, (toleration, at) => {
    const { key = "", operator = "", value = "", effect = "" } = toleration;
    const errors = key ? validateLabelName(key, `${at}.key`) : [];
    if (!key && operator !== "Exists") {
      const text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      errors.push(fieldError.invalid(`${at}.operator`, operator, text));
    }
    if (toleration.tolerationSeconds !== undefined && effect !== "NoExecute") {
      errors.push(
        fieldError.invalid(`${at}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"),
      );
    }
    errors.push(...validateTolerationOperator(operator, value, at));
    return effect ? [...errors, ...validateTaintEffect(effect, `${at}.effect`)] : errors;
  });
}

function validateTolerationOperator(operator: string, value: string, path: string): FieldError[] {
  const at = `${path}.operator`;
  switch (operator) {
    case "":
    case "Equal": {
      const texts = isLabelValue(value);
      return texts.length > 0 ? [fieldError.invalid(at, value, texts.join(";"))] : [];
    }
    case "Exists":
      return value ? [fieldError.invalid(at, value, "value must be empty when `operator` is 'Exists'")] : [];
    case "Lt":
    case "Gt":
      return [fieldError.notSupported(at, operator, ["Equal", "Exists", "Lt", "Gt"])];
    default:
      return [fieldError.notSupported(at, operator, ["Equal", "Exists"])];
  }
}

export function validateAffinity(affinity: Affinity | undefined, path: string): FieldError[] {
  if (!affinity) return [];
  return [
    ...validateNodeAffinity(affinity.nodeAffinity, `${path}.nodeAffinity`),
    ...validatePodAffinity(affinity.podAffinity, `${path}.podAffinity`),
    ...validatePodAffinity(affinity.podAntiAffinity, `${path}.podAntiAffinity`),
  ];
}

function validateNodeAffinity(affinity: NodeAffinity | undefined, path: string): FieldError[] {
  if (!affinity) return [];
  const required = affinity.requiredDuringSchedulingIgnoredDuringExecution;
  const preferred = affinity.preferredDuringSchedulingIgnoredDuringExecution;
  return [
    ...(required ? validateNodeSelector(required, `${path}.requiredDuringSchedulingIgnoredDuringExecution`) : []),
    ...eachItem(preferred, `${path}.preferredDuringSchedulingIgnoredDuringExecution`, ({ weight, preference }, at) => [
      ...validateWeight(weight, `${at}.weight`),
      ...validateNodeTerm(preference, false, `${at}.preference`),
    ]),
  ];
}

export function validateNodeSelector(selector: NodeSelector, path: string): FieldError[] {
  const at = `${path}.nodeSelectorTerms`;
  if ((selector.nodeSelectorTerms ?? []).length === 0) {
    return [fieldError.required(at, "must have at least one node selector term")];
  }
  return eachItem(selector.nodeSelectorTerms, at, (term, place) => validateNodeTerm(term, true, place));
}

function validateNodeTerm(term: NodeSelectorTerm, checkValues: boolean, path: string): FieldError[] {
  return [
    ...eachItem(term.matchExpressions, `${path}.matchExpressions`, (requirement, at) =>
      validateNodeRequirement(requirement, checkValues, at),
    ),
    ...eachItem(term.matchFields, `${path}.matchFields`, validateNodeField),
  ];
}

function validateNodeRequirement(
  requirement: NodeSelectorRequirement,
  checkValues: boolean,
  path: string,
): FieldError[] {
  const values = requirement.values ?? [];
  const at = `${path}.values`;
  const errors: FieldError[] = [];
  switch (requirement.operator) {
    case "In":
    case "NotIn":
      if (values.length === 0)
        errors.push(fieldError.required(at, "must be specified when `operator` is 'In' or 'NotIn'"));
      break;
    case "Exists":
    case "DoesNotExist":
      if (values.length > 0) {
        errors.push(fieldError.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      }
      break;
    case "Gt":
    case "Lt":
      if (values.length !== 1) {
        errors.push(fieldError.required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
      }
      break;
    default:
      errors.push(fieldError.invalid(`${path}.operator`, requirement.operator, "not a valid selector operator"));
  }
  errors.push(...validateLabelName(requirement.key, `${path}.key`));
  if (!checkValues) return errors;
  return [...errors, ...eachItem(values, at, (value, place) => invalidEach(place, value, isLabelValue(value)))];
}

function validateNodeField(requirement: NodeSelectorRequirement, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (requirement.operator !== "In" && requirement.operator !== "NotIn") {
    errors.push(fieldError.invalid(`${path}.operator`, requirement.operator, "not a valid selector operator"));
  } else if ((requirement.values ?? []).length !== 1) {
    const text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    errors.push(fieldError.required(`${path}.values`, text));
  }
  if (requirement.key !== "metadata.name") {
    return [...errors, fieldError.invalid(`${path}.key`, requirement.key, "not a valid field selector key")];
  }
  return [
    ...errors,
    ...eachItem(requirement.values, `${path}.values`, (value, at) => invalidEach(at, value, isDNS1123Subdomain(value))),
  ];
}

const validateWeight = (weight: number, path: string): FieldError[] =>
  weight > 0 && weight <= 100 ? [] : [fieldError.invalid(path, weight, "must be in the range 1-100")];

function validatePodAffinity(affinity: PodAffinity | undefined, path: string): FieldError[] {
  if (!affinity) return [];
  const required = affinity.requiredDuringSchedulingIgnoredDuringExecution;
  const preferred = affinity.preferredDuringSchedulingIgnoredDuringExecution;
  return [
    ...eachItem(required, `${path}.requiredDuringSchedulingIgnoredDuringExecution`, validatePodAffinityTerm),
    ...eachItem(
      preferred,
      `${path}.preferredDuringSchedulingIgnoredDuringExecution`,
      ({ weight, podAffinityTerm }, at) => [
        ...validateWeight(weight, `${at}.weight`),
        ...validatePodAffinityTerm(podAffinityTerm, `${at}.podAffinityTerm`),
      ],
    ),
  ];
}

function validatePodAffinityTerm(term: PodAffinityTerm, path: string): FieldError[] {
  const errors = [
    ...validateLabelSelector(term.labelSelector, `${path}.labelSelector`),
    ...validateLabelSelector(term.namespaceSelector, `${path}.namespaceSelector`),
    ...(term.namespaces ?? []).flatMap((name) => invalidEach(`${path}.namespace`, name, isDNS1123Label(name))),
    ...validateLabelKeys(term, path),
  ];
  if (!term.topologyKey) errors.push(fieldError.required(`${path}.topologyKey`, "can not be empty"));
  return [...errors, ...validateLabelName(term.topologyKey ?? "", `${path}.topologyKey`)];
}

interface LabelKeys {
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
  labelSelector?: LabelSelector;
}

function validateLabelKeys(
  { matchLabelKeys = [], mismatchLabelKeys = [], labelSelector }: LabelKeys,
  path: string,
): FieldError[] {
  const one = (keys: readonly string[], at: string) => {
    if (keys.length === 0) return [];
    if (!labelSelector) return [fieldError.forbidden(at, "must not be specified when labelSelector is not set")];
    return eachItem(keys, at, (key, place) => validateLabelName(key, place));
  };
  const errors = [
    ...one(matchLabelKeys, `${path}.matchLabelKeys`),
    ...one(mismatchLabelKeys, `${path}.mismatchLabelKeys`),
  ];
  const selected = new Set(Object.keys(labelSelector?.matchLabels ?? {}));
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    const i = matchLabelKeys.indexOf(key);
    if (i >= 0 && selected.has(key)) {
      errors.push(fieldError.invalid(`${path}[${i}]`, key, "exists in both matchLabelKeys and labelSelector"));
    }
    selected.add(key);
  }
  for (const [i, key] of matchLabelKeys.entries()) {
    if (!mismatchLabelKeys.includes(key)) continue;
    errors.push(
      fieldError.invalid(`${path}.matchLabelKeys[${i}]`, key, "exists in both matchLabelKeys and mismatchLabelKeys"),
    );
  }
  return errors;
}

const ACTIONS = ["DoNotSchedule", "ScheduleAnyway"];
const POLICIES = ["Honor", "Ignore"];

export function validateTopologySpread(
  constraints: readonly TopologySpreadConstraint[] | undefined,
  path: string,
): FieldError[] {
  return eachItem(constraints, path, (constraint, at, i) => {
    const { topologyKey, whenUnsatisfiable, maxSkew, minDomains } = constraint;
    const errors = maxSkew > 0 ? [] : [fieldError.invalid(`${at}.maxSkew`, maxSkew, "must be greater than zero")];
    if (!topologyKey) errors.push(fieldError.required(`${at}.topologyKey`, "can not be empty"));
    if (!ACTIONS.includes(whenUnsatisfiable)) {
      errors.push(fieldError.notSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, ACTIONS));
    }
    const repeated = (constraints ?? [])
      .slice(i + 1)
      .some((other) => other.topologyKey === topologyKey && other.whenUnsatisfiable === whenUnsatisfiable);
    if (repeated) {
      errors.push(
        fieldError.duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`),
      );
    }
    if (minDomains !== undefined) {
      if (minDomains <= 0) errors.push(fieldError.invalid(`${at}.minDomains`, minDomains, "must be greater than zero"));
      const text = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`;
      if (whenUnsatisfiable !== "DoNotSchedule") errors.push(fieldError.invalid(`${at}.minDomains`, minDomains, text));
    }
    for (const name of ["nodeAffinityPolicy", "nodeTaintsPolicy"] as const) {
      const value = constraint[name];
      if (value !== undefined && !POLICIES.includes(value))
        errors.push(fieldError.notSupported(`${at}.${name}`, value, POLICIES));
    }
    return [
      ...errors,
      ...validateLabelKeys(constraint, at),
      ...validateLabelSelector(constraint.labelSelector, `${at}.labelSelector`),
    ];
  });
}
