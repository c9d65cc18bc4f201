import { deepEqual } from "#base";
import { OLD_TOPOLOGY_LABELS } from "../core/pod/warnings.ts";
import type { StorageClass, VolumeAttributesClass } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, immutable, invalidEach, oneOf } from "../validation/field-error.ts";
import { isQualifiedName } from "../validation/names.ts";
import { validateLabelName } from "../validation/object-meta.ts";

type Topologies = StorageClass["allowedTopologies"];

export function validateStorageClass(storageClass: StorageClass): FieldError[] {
  const { provisioner, parameters, reclaimPolicy, volumeBindingMode, allowedTopologies } = storageClass;
  return [
    ...validateProvisioner(provisioner, "provisioner"),
    ...validateParameters(parameters, "parameters"),
    ...(reclaimPolicy ? oneOf("reclaimPolicy", reclaimPolicy, ["Delete", "Retain"]) : []),
    ...oneOf("volumeBindingMode", volumeBindingMode, ["Immediate", "WaitForFirstConsumer"]),
    ...validateTopologies(allowedTopologies, "allowedTopologies"),
  ];
}

export function validateStorageClassUpdate(storageClass: StorageClass, old: StorageClass): FieldError[] {
  const fixed = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] as const;
  return [
    ...validateStorageClass(storageClass),
    ...fixed.flatMap((name) => immutable(name, storageClass[name] ?? null, old[name] ?? null, deepEqual)),
  ];
}

export function storageClassWarnings({ allowedTopologies }: StorageClass): string[] {
  const warnings: string[] = [];
  for (const [i, { matchLabelExpressions }] of (allowedTopologies ?? []).entries()) {
    for (const [j, { key }] of (matchLabelExpressions ?? []).entries()) {
      const text = OLD_TOPOLOGY_LABELS[key];
      if (text) warnings.push(`allowedTopologies[${i}].matchLabelExpressions[${j}].key: ${text}`);
    }
  }
  return warnings;
}

export function validateVolumeAttributesClass({ driverName, parameters }: VolumeAttributesClass): FieldError[] {
  const errors = validateProvisioner(driverName, "driverName");
  if (Object.keys(parameters ?? {}).length > 0) return [...errors, ...validateParameters(parameters, "parameters")];
  return [...errors, fieldError.required("parameters", "must contain at least one key/value pair")];
}

export function validateVolumeAttributesClassUpdate(
  attributes: VolumeAttributesClass,
  old: VolumeAttributesClass,
): FieldError[] {
  return (["driverName", "parameters"] as const)
    .filter((name) => !deepEqual(attributes[name], old[name]))
    .map((name) => fieldError.forbidden(name, `updates to ${name} are forbidden.`));
}

function validateProvisioner(name: string | undefined, path: string): FieldError[] {
  if (!name) return [fieldError.required(path)];
  const lower = name.toLowerCase();
  return invalidEach(path, lower, isQualifiedName(lower));
}

const MAX_PARAMETERS = 512;
const MAX_PARAMETERS_BYTES = 256 * 1024;

function validateParameters(parameters: Readonly<Record<string, string>> = {}, path: string): FieldError[] {
  const entries = Object.entries(parameters);
  if (entries.length > MAX_PARAMETERS) return [fieldError.tooLong(path, MAX_PARAMETERS)];
  const errors = entries
    .filter(([key]) => key === "")
    .map(() => fieldError.invalid(path, "", "field can not be empty."));
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  return size > MAX_PARAMETERS_BYTES ? [...errors, fieldError.tooLong(path, MAX_PARAMETERS_BYTES)] : errors;
}

/** Each term once: no two with the same values of the same keys, and none without expressions. */
function validateTopologies(topologies: Topologies, path: string): FieldError[] {
  const seen: Record<string, string[]>[] = [];
  return eachItem(topologies, path, ({ matchLabelExpressions }, at) => {
    const keys: Record<string, string[]> = {};
    const field = `${at}.matchLabelExpressions`;
    const errors = eachItem(matchLabelExpressions, field, ({ key = "", values }, item) => {
      const found = validateTopologyValues(values ?? [], `${item}.values`);
      found.push(...validateLabelName(key, `${item}.key`));
      if (keys[key]) found.push(fieldError.duplicate(`${item}.key`, key));
      keys[key] = [...(values ?? [])].sort();
      return found;
    });
    if (Object.keys(keys).length === 0 || seen.some((other) => deepEqual(other, keys))) {
      errors.push(fieldError.duplicate(field, ""));
    }
    seen.push(keys);
    return errors;
  });
}

function validateTopologyValues(values: readonly string[], path: string): FieldError[] {
  if (values.length === 0) return [fieldError.required(path)];
  return eachItem(values, path, (value, at, i) => (values.indexOf(value) < i ? [fieldError.duplicate(at, value)] : []));
}
