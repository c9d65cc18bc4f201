import type { ContainerResizePolicy, PodSpec, ResourceRequirements } from "../../generated/types.ts";
import { compareQuantity, parseQuantity } from "../../quantity.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach } from "../../validation/field-error.ts";
import { isDNS1123Label, isQualifiedName } from "../../validation/names.ts";
import { containersTotal, isPodLevelResource } from "./resources.ts";

const COMPUTE = new Set(["cpu", "memory", "ephemeral-storage"]);
const COUNTED = new Set([
  "pods",
  "services",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
]);
const NAMESPACE_DEFAULT = ["", "requests.", "limits."];

const isHugePage = (name: string): boolean => name.startsWith("hugepages-");
/** Resources of Kubernetes itself, as opposed to `example.com/gpu`. */
export const isNativeResource = (name: string): boolean => !name.includes("/") || name.includes("kubernetes.io/");
const isExtendedResource = (name: string): boolean =>
  !isNativeResource(name) && !name.startsWith("requests.") && isQualifiedName(`requests.${name}`).length === 0;
const isOvercommitAllowed = (name: string): boolean => isNativeResource(name) && !isHugePage(name);
const isStandard = (name: string): boolean =>
  COUNTED.has(name) ||
  isHugePage(name) ||
  name === "storage" ||
  name === "requests.storage" ||
  NAMESPACE_DEFAULT.some((prefix) => COMPUTE.has(name.slice(prefix.length)) && name.startsWith(prefix)) ||
  name.startsWith("requests.hugepages-");

/** A resource name in lists of amounts anywhere. */
export function validateResourceName(name: string, path: string): FieldError[] {
  const errors = invalidEach(path, name, isQualifiedName(name));
  if (errors.length > 0) return errors;
  if (!name.includes("/") && !isStandard(name)) {
    return [fieldError.invalid(path, name, "must be a standard resource type or fully qualified")];
  }
  return [];
}

/** Also of LimitRanges. */
export function validateContainerResourceName(name: string, path: string): FieldError[] {
  const errors = validateResourceName(name, path);
  if (!name.includes("/")) {
    if (!COMPUTE.has(name) && !isHugePage(name)) {
      errors.push(fieldError.invalid(path, name, "must be a standard resource for containers"));
    }
  } else if (!isNativeResource(name) && !isExtendedResource(name)) {
    errors.push(fieldError.invalid(path, name, "doesn't follow extended resource name standard"));
  }
  return errors;
}

function validatePodResourceName(name: string, path: string): FieldError[] {
  const errors = validateResourceName(name, path);
  if (errors.length === 0 && !isPodLevelResource(name)) {
    errors.push(fieldError.notSupported(path, name, ["cpu", "hugepages-", "memory"]));
  }
  return errors;
}

/** An amount: not negative, whole where it counts things. */
export function validateAmount(name: string, amount: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (compareQuantity(amount, "0") < 0) {
    errors.push(fieldError.invalid(path, amount, "must be greater than or equal to 0"));
  }
  const whole = (parseQuantity(amount)?.nanos ?? 0n) % 1_000_000_000n === 0n;
  if ((COUNTED.has(name) || isExtendedResource(name)) && !whole) {
    errors.push(fieldError.invalid(path, amount, "must be an integer"));
  }
  return errors;
}

export function validateContainerResources(
  resources: ResourceRequirements | undefined,
  claims: ReadonlySet<string>,
  path: string,
): FieldError[] {
  return validateRequirements(resources ?? {}, validateContainerResourceName, claims, path);
}

function validateRequirements(
  { limits = {}, requests = {}, claims = [] }: ResourceRequirements,
  nameCheck: (name: string, path: string) => FieldError[],
  podClaims: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  for (const [name, amount] of Object.entries(limits)) {
    const at = `${path}.limits[${name}]`;
    errors.push(...nameCheck(name, at), ...validateAmount(name, amount, at), ...validateHugePages(name, amount, at));
  }
  for (const [name, amount] of Object.entries(requests)) {
    const at = `${path}.requests[${name}]`;
    errors.push(...nameCheck(name, at), ...validateAmount(name, amount, at));
    errors.push(...validateAgainstLimit(name, amount, limits[name], path), ...validateHugePages(name, amount, at));
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePage) && !names.includes("cpu") && !names.includes("memory")) {
    errors.push(fieldError.forbidden(path, "HugePages require cpu or memory"));
  }
  return [...errors, ...validateClaims(claims, podClaims, `${path}.claims`)];
}

function validateAgainstLimit(name: string, amount: string, limit: string | undefined, path: string): FieldError[] {
  if (limit === undefined) {
    if (isOvercommitAllowed(name)) return [];
    return [fieldError.required(`${path}.limits`, "Limit must be set for non overcommitable resources")];
  }
  const order = compareQuantity(amount, limit);
  if (order !== 0 && !isOvercommitAllowed(name)) {
    return [fieldError.invalid(`${path}.requests`, amount, `must be equal to ${name} limit of ${limit}`)];
  }
  if (order <= 0) return [];
  return [fieldError.invalid(`${path}.requests`, amount, `must be less than or equal to ${name} limit of ${limit}`)];
}

/** Huge pages come in whole pages. */
function validateHugePages(name: string, amount: string, path: string): FieldError[] {
  if (!isHugePage(name)) return [];
  const size = parseQuantity(name.slice("hugepages-".length))?.nanos ?? 0n;
  const value = parseQuantity(amount)?.nanos ?? 0n;
  if (size > 0n && value % size === 0n) return [];
  return [fieldError.invalid(path, amount, `${amount} is not positive integer multiple of ${name}`)];
}

function validateClaims(
  claims: NonNullable<ResourceRequirements["claims"]>,
  podClaims: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const seen = new Set<string>();
  return eachItem(claims, path, ({ name, request }, at) => {
    if (!name) return [fieldError.required(at)];
    const errors: FieldError[] = [];
    const key = request ? `${name}/${request}` : name;
    const overlaps = !request && [...seen].some((other) => other.startsWith(`${name}/`));
    if (seen.has(name) || overlaps) errors.push(fieldError.duplicate(at, name));
    else if (seen.has(key)) errors.push(fieldError.duplicate(at, key));
    if (request && !seen.has(name)) errors.push(...invalidEach(`${at}.request`, request, isDNS1123Label(request)));
    seen.add(key);
    if (podClaims.has(name)) return errors;
    const missing = fieldError.notFound(at, name);
    const which = podClaims.size === 0 ? " which is empty" : `: ${[...podClaims].sort().join(", ")}`;
    return [
      ...errors,
      { ...missing, message: `${missing.message}: must be one of the names in pod.spec.resourceClaims${which}` },
    ];
  });
}

export function validatePodLevelResources(spec: PodSpec, claims: ReadonlySet<string>, path: string): FieldError[] {
  const { resources } = spec;
  if (!resources) return [];
  if (spec.os?.name === "windows") return [fieldError.forbidden(path, "may not be set for a windows pod")];
  const errors: FieldError[] = [];
  if (resources.claims) {
    errors.push(fieldError.forbidden(`${path}.claims`, "claims may not be set for Resources at pod-level"));
  }
  errors.push(...validateRequirements(resources, validatePodResourceName, claims, path));
  for (const [name, total] of Object.entries(containersTotal(spec, "requests"))) {
    const own = resources.requests?.[name];
    if (own === undefined || compareQuantity(total, own) <= 0) continue;
    const text = `must be greater than or equal to aggregate container requests of ${total}`;
    errors.push(fieldError.invalid(`${path}.requests[${name}]`, own, text));
  }
  for (const [i, container] of (spec.containers ?? []).entries()) {
    for (const [name, limit] of Object.entries(container.resources?.limits ?? {})) {
      const own = resources.limits?.[name];
      if (own === undefined || compareQuantity(limit, own) <= 0) continue;
      const text = `must be less than or equal to pod limits of ${own}`;
      errors.push(fieldError.invalid(`${path}.containers[${i}][${name}].limits`, limit, text));
    }
  }
  return errors;
}

export function validateResizePolicy(
  policies: readonly ContainerResizePolicy[] | undefined,
  podRestartPolicy: string | undefined,
  path: string,
): FieldError[] {
  const seen = new Set<string>();
  return eachItem(policies, path, ({ resourceName, restartPolicy }, at) => {
    const errors: FieldError[] = [];
    if (seen.has(resourceName)) errors.push(fieldError.duplicate(at, resourceName));
    seen.add(resourceName);
    if (!resourceName) errors.push(fieldError.required(path));
    else if (resourceName !== "cpu" && resourceName !== "memory") {
      errors.push(fieldError.notSupported(path, resourceName, ["cpu", "memory"]));
    }
    if (!restartPolicy) errors.push(fieldError.required(path));
    else if (restartPolicy !== "NotRequired" && restartPolicy !== "RestartContainer") {
      errors.push(fieldError.notSupported(path, restartPolicy, ["NotRequired", "RestartContainer"]));
    }
    if (podRestartPolicy === "Never" && restartPolicy !== "NotRequired") {
      const text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
      errors.push(fieldError.invalid(path, restartPolicy, text));
    }
    return errors;
  });
}
