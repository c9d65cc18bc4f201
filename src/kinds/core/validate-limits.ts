import { deepEqual } from "#base";
import type { LimitRange, ResourceQuota } from "../generated/types.ts";
import { compareQuantity, parseQuantity, quantityMilliValue } from "../quantity.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, immutable, invalidEach } from "../validation/field-error.ts";
import { isQualifiedName } from "../validation/names.ts";
import { validateAmount, validateContainerResourceName, validateResourceName } from "./pod/validate-resources.ts";

type LimitRangeItem = LimitRange["spec"]["limits"][number];
const LISTS = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] as const;

/** https://kubernetes.io/docs/concepts/policy/limit-range/ */
export function validateLimitRange({ spec }: LimitRange): FieldError[] {
  const types = new Set<string>();
  return eachItem(spec.limits, "spec.limits", (limit, at) => {
    const { type = "" } = limit;
    const errors = validateLimitType(type, `${at}.type`);
    if (types.has(type)) errors.push(fieldError.duplicate(`${at}.type`, type));
    types.add(type);
    return [...errors, ...validateLists(limit, at), ...validateOrder(limit, at)];
  });
}

function validateLimitType(type: string, path: string): FieldError[] {
  const errors = invalidEach(path, type, isQualifiedName(type));
  if (errors.length > 0 || type.includes("/")) return errors;
  if (["Pod", "Container", "PersistentVolumeClaim"].includes(type)) return [];
  return [fieldError.invalid(path, type, "must be a standard limit type or fully qualified")];
}

function validateLists(limit: LimitRangeItem, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = limit.type === "Container" ? validateContainerResourceName : validateResourceName;
  for (const list of LISTS) {
    if (limit.type === "Pod" && (list === "default" || list === "defaultRequest")) {
      if (Object.keys(limit[list] ?? {}).length > 0)
        errors.push(fieldError.forbidden(`${at}.${list}`, "may not be specified when `type` is 'Pod'"));
      continue;
    }
    for (const name of Object.keys(limit[list] ?? {})) errors.push(...check(name, `${at}.${list}[${name}]`));
  }
  if (limit.type === "PersistentVolumeClaim" && !limit.max?.storage && !limit.min?.storage)
    errors.push(
      fieldError.required(
        `${at}.limits`,
        "either minimum or maximum storage value is required, but neither was provided",
      ),
    );
  return errors;
}

/** min ≤ defaultRequest ≤ default ≤ max, and ratios that max and min allow. */
function validateOrder(limit: LimitRangeItem, at: string): FieldError[] {
  const names = new Set(LISTS.flatMap((list) => Object.keys(limit[list] ?? {})));
  return [...names].flatMap((name) => validateOrderOf(limit, name, at));
}

function validateOrderOf(limit: LimitRangeItem, name: string, at: string): FieldError[] {
  const { max, min, default: most, defaultRequest: least, maxLimitRequestRatio: ratios } = limit;
  const [high, low, limitBy, requestBy, ratio] = [max, min, most, least, ratios].map((list) => list?.[name]);
  const errors: FieldError[] = [];
  const more = (a: string | undefined, b: string | undefined): boolean =>
    a !== undefined && b !== undefined && compareQuantity(a, b) > 0;
  const bad = (list: string, value: string | undefined, why: string) =>
    errors.push(fieldError.invalid(`${at}.${list}[${name}]`, value ?? "", why));
  if (more(low, high)) bad("min", low, `min value ${low} is greater than max value ${high}`);
  if (more(low, requestBy))
    bad("defaultRequest", requestBy, `min value ${low} is greater than default request value ${requestBy}`);
  if (more(requestBy, high))
    bad("defaultRequest", requestBy, `default request value ${requestBy} is greater than max value ${high}`);
  if (more(requestBy, limitBy))
    bad(
      "defaultRequest",
      requestBy,
      `default request value ${requestBy} is greater than default limit value ${limitBy}`,
    );
  if (more(low, limitBy)) bad("default", low, `min value ${low} is greater than default value ${limitBy}`);
  if (more(limitBy, high)) bad("default", high, `default value ${limitBy} is greater than max value ${high}`);
  if (ratio === undefined) return errors;
  if (compareQuantity(ratio, "1") < 0) bad("maxLimitRequestRatio", ratio, `ratio ${ratio} is less than 1`);
  if (low === undefined || high === undefined) return errors;
  const allowed = quantityMilliValue(high) / quantityMilliValue(low);
  if (quantityMilliValue(ratio) / 1000 > allowed)
    bad("maxLimitRequestRatio", ratio, `ratio ${ratio} is greater than max/min = ${allowed.toFixed(6)}`);
  return errors;
}

const SCOPES = [
  "Terminating",
  "NotTerminating",
  "BestEffort",
  "NotBestEffort",
  "PriorityClass",
  "CrossNamespacePodAffinity",
  "VolumeAttributesClass",
];
const VALUED_SCOPES = ["PriorityClass", "VolumeAttributesClass"];
const CONFLICTS = [
  ["BestEffort", "NotBestEffort"],
  ["Terminating", "NotTerminating"],
] as const;
const OBJECTS = new Set([
  "pods",
  "services",
  "services.nodeports",
  "services.loadbalancers",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
]);
const AMOUNTS = /^((requests|limits)\.)?(cpu|memory|ephemeral-storage|hugepages-.+)$|^requests\.storage$/;

/** https://kubernetes.io/docs/concepts/policy/resource-quotas/ */
export function validateResourceQuota({ spec }: ResourceQuota): FieldError[] {
  const errors: FieldError[] = [];
  for (const [name, amount] of Object.entries(spec.hard ?? {})) {
    const at = `spec.hard[${name}]`;
    errors.push(...validateQuotaName(name, at), ...validateQuotaAmount(name, amount, at));
  }
  return [...errors, ...validateScopes(spec.scopes), ...validateScopeSelector(spec.scopeSelector)];
}

function validateQuotaName(name: string, at: string): FieldError[] {
  if (name.startsWith("count/")) {
    const counted = name.slice("count/".length);
    return invalidEach(at, name, isQualifiedName(counted));
  }
  const errors = validateResourceName(name, at);
  if (!name.includes("/") && !OBJECTS.has(name) && !AMOUNTS.test(name))
    errors.push(fieldError.invalid(at, name, "must be a standard resource for quota"));
  return errors;
}

function validateQuotaAmount(name: string, amount: string, at: string): FieldError[] {
  const errors = validateAmount(name, amount, at);
  const whole = (parseQuantity(amount)?.nanos ?? 0n) % 1_000_000_000n === 0n;
  if (errors.length === 0 && OBJECTS.has(name) && !whole)
    errors.push(fieldError.invalid(at, amount, "must be an integer"));
  return errors;
}

function validateScopes(scopes: readonly string[] | undefined): FieldError[] {
  if (!scopes || scopes.length === 0) return [];
  const path = "spec.scopes";
  const errors = scopes
    .filter((scope) => !SCOPES.includes(scope))
    .map(() => fieldError.invalid(path, scopes, "unsupported scope"));
  if (CONFLICTS.some((pair) => pair.every((scope) => scopes.includes(scope))))
    errors.push(fieldError.invalid(path, scopes, "conflicting scopes"));
  return errors;
}

function validateScopeSelector(selector: ResourceQuota["spec"]["scopeSelector"]): FieldError[] {
  const path = "spec.scopeSelector.matchExpressions";
  return (selector?.matchExpressions ?? []).flatMap(({ scopeName, operator, values = [] }) => {
    if (!SCOPES.includes(scopeName)) return [fieldError.invalid(`${path}.scopeName`, scopeName, "unsupported scope")];
    if (!VALUED_SCOPES.includes(scopeName) && operator !== "Exists")
      return [
        fieldError.invalid(
          `${path}.operator`,
          operator,
          "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
        ),
      ];
    switch (operator) {
      case "In":
      case "NotIn":
        if (values.length > 0) return [];
        return [
          fieldError.required(
            `${path}.values`,
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
          ),
        ];
      case "Exists":
      case "DoesNotExist":
        if (values.length === 0) return [];
        return [
          fieldError.invalid(
            `${path}.values`,
            values,
            "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector",
          ),
        ];
      default:
        return [fieldError.invalid(`${path}.operator`, operator, "not a valid selector operator")];
    }
  });
}

export function validateResourceQuotaUpdate(quota: ResourceQuota, old: ResourceQuota): FieldError[] {
  return [
    ...validateResourceQuota(quota),
    ...immutable("spec.scopes", quota.spec.scopes ?? null, old.spec.scopes ?? null, deepEqual),
  ];
}
