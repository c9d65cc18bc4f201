import type { EnvFromSource, EnvVar, ObjectFieldSelector, ResourceFieldSelector } from "../../generated/types.ts";
import { canonicalQuantity } from "../../quantity.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach } from "../../validation/field-error.ts";
import {
  isConfigMapKey,
  isDNS1123Label,
  isDNS1123Subdomain,
  isQualifiedName,
  isRelaxedEnvVarName,
} from "../../validation/names.ts";
import { validateNoBacksteps } from "./validate-paths.ts";

const ENV_FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
export const VOLUME_FIELDS: readonly string[] = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];
/** Fields that the downward API knows at all; others can't be converted. */
const KNOWN_FIELDS = new Set([
  ...ENV_FIELDS,
  ...VOLUME_FIELDS,
  "spec.restartPolicy",
  "spec.schedulerName",
  "status.phase",
  "spec.host",
]);
const RESOURCES = [
  "limits.cpu",
  "limits.ephemeral-storage",
  "limits.memory",
  "requests.cpu",
  "requests.ephemeral-storage",
  "requests.memory",
];

export function validateEnv(variables: readonly EnvVar[] | undefined, path: string): FieldError[] {
  return eachItem(variables, path, (variable, at) => {
    const named = variable.name
      ? invalidEach(`${at}.name`, variable.name, isRelaxedEnvVarName(variable.name))
      : [fieldError.required(`${at}.name`)];
    return [...named, ...validateValueFrom(variable, `${at}.valueFrom`)];
  });
}

function validateValueFrom(variable: EnvVar, path: string): FieldError[] {
  const source = variable.valueFrom;
  if (!source) return [];
  const errors: FieldError[] = [];
  if (source.fieldRef) errors.push(...validateFieldSelector(source.fieldRef, ENV_FIELDS, `${path}.fieldRef`));
  if (source.resourceFieldRef) {
    errors.push(...validateResourceSelector(source.resourceFieldRef, `${path}.resourceFieldRef`, false));
  }
  if (source.configMapKeyRef) errors.push(...validateKeySelector(source.configMapKeyRef, `${path}.configMapKeyRef`));
  if (source.secretKeyRef) errors.push(...validateKeySelector(source.secretKeyRef, `${path}.secretKeyRef`));
  if (source.fileKeyRef) {
    const { key, path: file, volumeName } = source.fileKeyRef;
    const at = `${path}.fileKeyRef`;
    if (key) errors.push(...invalidEach(`${at}.key`, key, isRelaxedEnvVarName(key)));
    else errors.push(fieldError.required(`${at}.key`));
    if (volumeName) errors.push(...invalidEach(`${at}.volumeName`, volumeName, isDNS1123Label(volumeName)));
    else errors.push(fieldError.required(`${at}.volumeName`));
    if (file) errors.push(...validateNoBacksteps(file, `${at}.path`));
    else errors.push(fieldError.required(`${at}.path`));
  }
  const count = Object.values(source).filter((value) => value !== undefined).length;
  if (count === 0) {
    const text =
      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
    errors.push(fieldError.invalid(path, "", text));
  } else if (variable.value) {
    errors.push(fieldError.invalid(path, "", "may not be specified when `value` is not empty"));
  } else if (count > 1) {
    errors.push(fieldError.invalid(path, "", "may not have more than one field specified at a time"));
  }
  return errors;
}

function validateKeySelector({ name = "", key }: { name?: string; key: string }, path: string): FieldError[] {
  return [
    ...invalidEach(`${path}.name`, name, isDNS1123Subdomain(name)),
    ...(key ? invalidEach(`${path}.key`, key, isConfigMapKey(key)) : [fieldError.required(`${path}.key`)]),
  ];
}

/** `fieldRef` of the downward API; `supported` differs for variables and volumes. */
export function validateFieldSelector(
  selector: ObjectFieldSelector,
  supported: readonly string[],
  path: string,
): FieldError[] {
  if (!selector.apiVersion) return [fieldError.required(`${path}.apiVersion`)];
  const { fieldPath } = selector;
  if (!fieldPath) return [fieldError.required(`${path}.fieldPath`)];
  const [, whole = fieldPath, subscript] = /^(.*)\['(.*)'\]$/.exec(fieldPath) ?? [];
  if (subscript !== undefined) {
    if (whole === "metadata.annotations")
      return invalidEach(path, subscript.toLowerCase(), isQualifiedName(subscript.toLowerCase()));
    if (whole === "metadata.labels") return invalidEach(path, subscript, isQualifiedName(subscript));
  }
  if (selector.apiVersion !== "v1") {
    const text = `error converting fieldPath: unsupported pod version: ${selector.apiVersion}`;
    return [fieldError.invalid(`${path}.fieldPath`, fieldPath, text)];
  }
  if (subscript !== undefined) {
    const text = `error converting fieldPath: field label does not support subscript: ${fieldPath}`;
    return [fieldError.invalid(`${path}.fieldPath`, fieldPath, text)];
  }
  if (!KNOWN_FIELDS.has(whole)) {
    const text = `error converting fieldPath: field label not supported: ${fieldPath}`;
    return [fieldError.invalid(`${path}.fieldPath`, fieldPath, text)];
  }
  return supported.includes(whole) ? [] : [fieldError.notSupported(`${path}.fieldPath`, whole, supported)];
}

/** `resourceFieldRef` of the downward API; volumes must name the container. */
export function validateResourceSelector(selector: ResourceFieldSelector, path: string, volume: boolean): FieldError[] {
  const { resource, containerName } = selector;
  const errors: FieldError[] = [];
  if (volume && !containerName) errors.push(fieldError.required(`${path}.containerName`));
  else if (!resource) errors.push(fieldError.required(`${path}.resource`));
  else if (!RESOURCES.includes(resource) && !/^(requests|limits)\.hugepages-/.test(resource)) {
    errors.push(fieldError.notSupported(`${path}.resource`, resource, RESOURCES));
  }
  return [...errors, ...validateDivisor(resource, selector.divisor, `${path}.divisor`)];
}

const SIZES = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

function validateDivisor(resource: string, divisor: string | undefined, path: string): FieldError[] {
  const value = canonicalQuantity(divisor ?? "0") ?? "0";
  if (value === "0") return [];
  const check = (allowed: readonly string[], name: string) =>
    allowed.includes(value)
      ? []
      : [
          fieldError.invalid(
            path,
            resource,
            `only divisor's values ${allowed.join(allowed.length > 2 ? ", " : " and ")} are supported with the ${name} resource`,
          ),
        ];
  if (resource.endsWith(".cpu")) return check(["1m", "1"], "cpu");
  if (resource.endsWith(".memory")) return check(SIZES, "memory");
  if (resource.endsWith(".ephemeral-storage")) return check(SIZES, "local ephemeral storage");
  return resource.includes(".hugepages-") ? check(SIZES, "hugepages") : [];
}

export function validateEnvFrom(sources: readonly EnvFromSource[] | undefined, path: string): FieldError[] {
  return eachItem(sources, path, (source, at) => {
    const errors: FieldError[] = [];
    if (source.prefix) errors.push(...invalidEach(`${at}.prefix`, source.prefix, isRelaxedEnvVarName(source.prefix)));
    const references = [
      [source.configMapRef, `${at}.configMapRef`],
      [source.secretRef, `${at}.secretRef`],
    ] as const;
    for (const [reference, place] of references) {
      if (!reference) continue;
      if (reference.name)
        errors.push(...invalidEach(`${place}.name`, reference.name, isDNS1123Subdomain(reference.name)));
      else errors.push(fieldError.required(`${place}.name`));
    }
    const count = references.filter(([reference]) => reference).length;
    if (count === 0) errors.push(fieldError.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"));
    if (count > 1) errors.push(fieldError.invalid(path, "", "may not have more than one field specified at a time"));
    return errors;
  });
}
