import { deepEqual } from "#base";
import type { PersistentVolume, PersistentVolumeClaim } from "../generated/types.ts";
import { compareQuantity } from "../quantity.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError, immutable, invalidEach, oneOf } from "../validation/field-error.ts";
import { isDNS1123Subdomain } from "../validation/names.ts";
import { validateNoBacksteps } from "./pod/validate-paths.ts";
import { validateNodeSelector } from "./pod/validate-scheduling.ts";
import {
  validateAccessModes,
  validateClaimSpec,
  validateDriverName,
  validateHostPath,
  validateNfs,
} from "./pod/validate-volumes.ts";

const SOURCES = [
  "hostPath",
  "gcePersistentDisk",
  "awsElasticBlockStore",
  "glusterfs",
  "flocker",
  "nfs",
  "rbd",
  "quobyte",
  "cephfs",
  "iscsi",
  "cinder",
  "fc",
  "flexVolume",
  "azureFile",
  "vsphereVolume",
  "photonPersistentDisk",
  "portworxVolume",
  "azureDisk",
  "scaleIO",
  "local",
  "storageos",
  "csi",
] as const;

/** https://kubernetes.io/docs/concepts/storage/persistent-volumes/ */
export function validatePersistentVolume({ spec }: PersistentVolume): FieldError[] {
  const { accessModes = [], persistentVolumeReclaimPolicy: policy, storageClassName } = spec;
  const errors: FieldError[] = [];
  if (accessModes.length === 0) errors.push(fieldError.required("spec.accessModes"));
  errors.push(...validateAccessModes(accessModes, "spec.accessModes"), ...validateCapacity(spec.capacity));
  errors.push(...oneOf("spec.persistentVolumeReclaimPolicy", policy, ["Delete", "Recycle", "Retain"]));
  errors.push(...validateAffinity(spec.nodeAffinity), ...validateSource(spec));
  if (storageClassName)
    errors.push(...invalidEach("spec.storageClassName", storageClassName, isDNS1123Subdomain(storageClassName)));
  if (spec.volumeMode !== undefined) errors.push(...oneOf("spec.volumeMode", spec.volumeMode, ["Block", "Filesystem"]));
  const { volumeAttributesClassName: attributes } = spec;
  if (attributes === undefined) return errors;
  if (attributes === "")
    errors.push(fieldError.required("spec.volumeAttributesClassName", "an empty string is disallowed"));
  else errors.push(...invalidEach("spec.volumeAttributesClassName", attributes, isDNS1123Subdomain(attributes)));
  if (!spec.csi)
    errors.push(fieldError.required("spec.csi", "has to be specified when using volumeAttributesClassName"));
  return errors;
}

function validateCapacity(capacity: PersistentVolume["spec"]["capacity"]): FieldError[] {
  const path = "spec.capacity";
  const names = Object.keys(capacity ?? {});
  const errors: FieldError[] = names.length === 0 ? [fieldError.required(path)] : [];
  if (names.length !== 1 || names[0] !== "storage") {
    const sorted = capacity && Object.fromEntries(Object.entries(capacity).sort(([a], [b]) => (a < b ? -1 : 1)));
    errors.push(fieldError.notSupported(path, sorted ?? null, ["storage"]));
    return errors;
  }
  const size = capacity!.storage!;
  const at = `${path}[storage]`;
  if (compareQuantity(size, "0") < 0)
    errors.push({
      ...fieldError.invalid(at, 0, "must be a valid resource quantity"),
      message: `Invalid value: ${size}: must be a valid resource quantity`,
    });
  if (compareQuantity(size, "0") <= 0) errors.push(fieldError.invalid(at, size, "must be greater than zero"));
  return errors;
}

function validateAffinity(affinity: PersistentVolume["spec"]["nodeAffinity"]): FieldError[] {
  if (affinity === undefined) return [];
  const path = "spec.nodeAffinity.required";
  return affinity.required
    ? validateNodeSelector(affinity.required, path)
    : [fieldError.required(path, "must specify required node constraints")];
}

function validateSource(spec: PersistentVolume["spec"]): FieldError[] {
  const [first, ...others] = SOURCES.filter((name) => spec[name] !== undefined);
  if (first === undefined) return [fieldError.required("spec", "must specify a volume type")];
  return [
    ...validateOneSource(spec, first),
    ...others.map((name) => fieldError.forbidden(`spec.${name}`, "may not specify more than 1 volume type")),
  ];
}

function validateOneSource(spec: PersistentVolume["spec"], name: (typeof SOURCES)[number]): FieldError[] {
  const path = `spec.${name}`;
  switch (name) {
    case "hostPath": {
      const recycles = spec.persistentVolumeReclaimPolicy === "Recycle" && spec.hostPath!.path === "/";
      const text = "may not be 'recycle' for a hostPath mount of '/'";
      return [
        ...validateHostPath(spec.hostPath!, path),
        ...(recycles ? [fieldError.forbidden("spec.persistentVolumeReclaimPolicy", text)] : []),
      ];
    }
    case "nfs":
      return validateNfs(spec.nfs!, path);
    case "local": {
      const at = spec.local!.path;
      return [
        ...(at ? validateNoBacksteps(at, `${path}.path`) : [fieldError.required(`${path}.path`)]),
        ...(spec.nodeAffinity ? [] : [fieldError.required("spec.nodeAffinity", "Local volume requires node affinity")]),
      ];
    }
    case "csi":
      return [
        ...validateDriverName(spec.csi!.driver, `${path}.driver`),
        ...(spec.csi!.volumeHandle ? [] : [fieldError.required(`${path}.volumeHandle`)]),
      ];
    default:
      return [];
  }
}

export function validatePersistentVolumeUpdate(volume: PersistentVolume, old: PersistentVolume): FieldError[] {
  const errors = validatePersistentVolume(volume);
  const sources = ({ spec }: PersistentVolume) => SOURCES.map((name) => spec[name] ?? null);
  if (!deepEqual(sources(volume), sources(old)))
    errors.push(
      fieldError.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"),
    );
  errors.push(...immutable("volumeMode", volume.spec.volumeMode ?? null, old.spec.volumeMode ?? null, deepEqual));
  if (old.spec.nodeAffinity)
    errors.push(...immutable("spec.nodeAffinity", volume.spec.nodeAffinity ?? null, old.spec.nodeAffinity, deepEqual));
  return errors;
}

export function persistentVolumeWarnings({ spec }: PersistentVolume): string[] {
  if (spec.persistentVolumeReclaimPolicy !== "Recycle") return [];
  return [
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.",
  ];
}

export function validatePersistentVolumeClaim({ spec }: PersistentVolumeClaim): FieldError[] {
  return [...validateDataSources(spec), ...validateClaimSpec(spec, "spec")];
}

function validateDataSources(spec: PersistentVolumeClaim["spec"]): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ["dataSource", "dataSourceRef"] as const) {
    const source = spec[field];
    if (!source) continue;
    if (!source.name) errors.push(fieldError.required(`spec.${field}.name`));
    if (!source.kind) errors.push(fieldError.required(`spec.${field}.kind`));
    if (!source.apiGroup && source.kind && source.kind !== "PersistentVolumeClaim")
      errors.push(
        fieldError.invalid(
          `spec.${field}`,
          source.kind,
          "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
        ),
      );
  }
  return errors;
}

const ONLY =
  "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/** A bound claim may grow; the first volume and class may be filled in; nothing else changes. */
export function validatePersistentVolumeClaimUpdate(
  claim: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
): FieldError[] {
  const errors = validatePersistentVolumeClaim(claim);
  const bound = old.status?.phase === "Bound";
  const now = structuredClone(claim.spec);
  const before = structuredClone(old.spec);
  if (!before.volumeName) {
    delete now.volumeName;
    delete before.volumeName;
  }
  if (before.storageClassName === undefined) delete now.storageClassName;
  if (bound) {
    delete now.volumeAttributesClassName;
    delete before.volumeAttributesClassName;
  }
  const size = claim.spec.resources?.requests?.storage;
  const oldSize = old.spec.resources?.requests?.storage;
  if (bound && size !== undefined && oldSize !== undefined) {
    if (compareQuantity(size, oldSize) < 0)
      errors.push(
        fieldError.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"),
      );
    now.resources!.requests!.storage = oldSize;
  }
  if (!deepEqual(now, before)) errors.push(fieldError.forbidden("spec", ONLY));
  errors.push(...immutable("volumeMode", claim.spec.volumeMode ?? null, old.spec.volumeMode ?? null, deepEqual));
  return errors;
}
