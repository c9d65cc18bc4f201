import type {
  DownwardAPIVolumeFile,
  KeyToPath,
  ObjectMeta,
  PersistentVolumeClaimSpec,
  ProjectedVolumeSource,
  Volume,
  VolumeProjection,
} from "../../generated/types.ts";
import { compareQuantity } from "../../quantity.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach, oneOf } from "../../validation/field-error.ts";
import { validateLabelSelector } from "../../validation/label-selector.ts";
import { isDNS1123Label, isDNS1123Subdomain } from "../../validation/names.ts";
import { VOLUME_FIELDS, validateFieldSelector, validateResourceSelector } from "./validate-env.ts";
import {
  validateLocalDescendingPath,
  validateLocalNonReservedPath,
  validateMode,
  validateNoBacksteps,
} from "./validate-paths.ts";
import { validateAmount } from "./validate-resources.ts";

const HOST_PATH_TYPES = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

/** The volumes of a pod; gives those that are valid by name, which mounts may refer to. */
export function validateVolumes(
  volumes: readonly Volume[] | undefined,
  meta: Partial<ObjectMeta> | undefined,
  path: string,
): { errors: FieldError[]; valid: ReadonlyMap<string, Volume> } {
  const valid = new Map<string, Volume>();
  const ephemeral = new Set(
    (volumes ?? []).filter((v) => v.ephemeral && meta?.name).map((v) => `${meta?.name}-${v.name}`),
  );
  const errors = eachItem(volumes, path, (volume, at) => {
    const own = validateSource(volume, meta, at);
    if (volume.name) own.push(...invalidEach(`${at}.name`, volume.name, isDNS1123Label(volume.name)));
    else own.push(fieldError.required(`${at}.name`));
    if (valid.has(volume.name)) own.push(fieldError.duplicate(`${at}.name`, volume.name));
    if (own.length === 0) valid.set(volume.name, volume);
    const claim = volume.persistentVolumeClaim?.claimName;
    if (claim && ephemeral.has(claim)) {
      const text = "must not reference a PVC that gets created for an ephemeral volume";
      own.push(fieldError.invalid(`${at}.persistentVolumeClaim.claimName`, claim, text));
    }
    return own;
  });
  return { errors, valid };
}

/** In the order in which the API server looks at them: the first one is the volume's. */
const SOURCES = [
  "emptyDir",
  "hostPath",
  "gitRepo",
  "gcePersistentDisk",
  "awsElasticBlockStore",
  "secret",
  "nfs",
  "iscsi",
  "glusterfs",
  "flocker",
  "persistentVolumeClaim",
  "rbd",
  "cinder",
  "cephfs",
  "quobyte",
  "downwardAPI",
  "fc",
  "flexVolume",
  "configMap",
  "azureFile",
  "vsphereVolume",
  "photonPersistentDisk",
  "portworxVolume",
  "azureDisk",
  "storageos",
  "projected",
  "scaleIO",
  "csi",
  "ephemeral",
  "image",
] as const;

function validateSource(volume: Volume, meta: Partial<ObjectMeta> | undefined, path: string): FieldError[] {
  const present = SOURCES.filter((name) => volume[name] !== undefined);
  if (present.length === 0) return [fieldError.required(path, "must specify a volume type")];
  return present.flatMap((name, i) =>
    i > 0
      ? [fieldError.forbidden(`${path}.${name}`, "may not specify more than 1 volume type")]
      : validateOneSource(volume, name, meta, path),
  );
}

function validateOneSource(
  volume: Volume,
  name: (typeof SOURCES)[number],
  meta: Partial<ObjectMeta> | undefined,
  parent: string,
): FieldError[] {
  const path = `${parent}.${name}`;
  switch (name) {
    case "emptyDir":
      if (compareQuantity(volume.emptyDir?.sizeLimit ?? "0", "0") >= 0) return [];
      return [fieldError.forbidden(`${path}.sizeLimit`, "SizeLimit field must be a valid resource quantity")];
    case "hostPath":
      return validateHostPath(volume.hostPath!, path);
    case "gitRepo":
      return [
        ...required(volume.gitRepo?.repository, `${path}.repository`),
        ...validateLocalDescendingPath(volume.gitRepo?.directory ?? "", `${path}.directory`),
      ];
    case "secret":
      return [
        ...required(volume.secret?.secretName, `${path}.secretName`),
        ...validateMode(volume.secret?.defaultMode, `${path}.defaultMode`),
        ...eachItem(volume.secret?.items, `${path}.items`, validateKeyToPath),
      ];
    case "configMap":
      return [
        ...required(volume.configMap?.name, `${path}.name`),
        ...validateMode(volume.configMap?.defaultMode, `${path}.defaultMode`),
        ...eachItem(volume.configMap?.items, `${path}.items`, validateKeyToPath),
      ];
    case "nfs":
      return validateNfs(volume.nfs!, path);
    case "persistentVolumeClaim":
      return required(volume.persistentVolumeClaim?.claimName, `${path}.claimName`);
    case "downwardAPI":
      return [
        ...validateMode(volume.downwardAPI?.defaultMode, `${path}.defaultMode`),
        ...(volume.downwardAPI?.items ?? []).flatMap((file) => validateDownwardFile(file, path)),
      ];
    case "projected":
      return validateProjected(volume.projected!, path);
    case "csi":
      return validateCsi(volume.csi!, path);
    case "ephemeral":
      return validateEphemeral(volume, meta, parent);
    case "image":
      return validateImage(volume.image!, path);
    default:
      return [];
  }
}

const required = (value: string | undefined, path: string): FieldError[] => (value ? [] : [fieldError.required(path)]);

/** Also of PersistentVolumes. */
export function validateHostPath(source: { path: string; type?: string }, path: string): FieldError[] {
  if (!source.path) return [fieldError.required(`${path}.path`)];
  return [...validateNoBacksteps(source.path, `${path}.path`), ...oneOf(`${path}.type`, source.type, HOST_PATH_TYPES)];
}

/** Also of PersistentVolumes. */
export function validateNfs(source: { server: string; path: string }, path: string): FieldError[] {
  const errors = [...required(source.server, `${path}.server`), ...required(source.path, `${path}.path`)];
  if (!source.path?.startsWith("/")) {
    errors.push(fieldError.invalid(`${path}.path`, source.path ?? "", "must be an absolute path"));
  }
  return errors;
}

export function validateDriverName(name: string, path: string): FieldError[] {
  if (!name) return [fieldError.required(path)];
  const errors = name.length > 63 ? [fieldError.tooLong(path, 63)] : [];
  return [...errors, ...invalidEach(path, name, isDNS1123Subdomain(name.toLowerCase()))];
}

function validateCsi(source: NonNullable<Volume["csi"]>, path: string): FieldError[] {
  const errors = validateDriverName(source.driver, `${path}.driver`);
  const secret = source.nodePublishSecretRef;
  if (!secret) return errors;
  if (!secret.name) return [...errors, fieldError.required(`${path}.nodePublishSecretRef.name`)];
  return [...errors, ...invalidEach(`${path}.name`, secret.name, isDNS1123Subdomain(secret.name))];
}

function validateImage(source: NonNullable<Volume["image"]>, path: string): FieldError[] {
  return [
    ...required(source.reference, `${path}.reference`),
    ...oneOf(`${path}.pullPolicy`, source.pullPolicy, ["Always", "IfNotPresent", "Never"]),
  ];
}

function validateEphemeral(volume: Volume, meta: Partial<ObjectMeta> | undefined, parent: string): FieldError[] {
  const path = `${parent}.ephemeral.volumeClaimTemplate`;
  const template = volume.ephemeral?.volumeClaimTemplate;
  const errors = template ? validateClaimSpec(template.spec, `${path}.spec`) : [fieldError.required(path)];
  if (!meta?.name || !volume.name) return errors;
  const claim = `${meta.name}-${volume.name}`;
  const texts = isDNS1123Subdomain(claim).map((text) => `PVC name ${JSON.stringify(claim)}: ${text}`);
  return [...errors, ...invalidEach(`${parent}.name`, volume.name, texts)];
}

const ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/** The spec of a PersistentVolumeClaim, in claims and in templates. */
export function validateClaimSpec(spec: PersistentVolumeClaimSpec, path: string): FieldError[] {
  const modes = spec.accessModes ?? [];
  const errors: FieldError[] = [];
  if (modes.length === 0) errors.push(fieldError.required(`${path}.accessModes`, "at least 1 access mode is required"));
  errors.push(
    ...validateLabelSelector(spec.selector, `${path}.selector`),
    ...validateAccessModes(modes, `${path}.accessModes`),
  );
  const at = `${path}.resources[storage]`;
  const size = spec.resources?.requests?.storage;
  if (size === undefined) errors.push(fieldError.required(at));
  else if (compareQuantity(size, "0") <= 0) errors.push(fieldError.invalid(at, size, "must be greater than zero"));
  else errors.push(...validateAmount("storage", size, at));
  if (spec.storageClassName) {
    errors.push(
      ...invalidEach(`${path}.storageClassName`, spec.storageClassName, isDNS1123Subdomain(spec.storageClassName)),
    );
  }
  if (spec.volumeMode !== undefined)
    errors.push(...oneOf(`${path}.volumeMode`, spec.volumeMode, ["Block", "Filesystem"]));
  const { volumeAttributesClassName: attributes } = spec;
  if (attributes)
    errors.push(...invalidEach(`${path}.volumeAttributesClassName`, attributes, isDNS1123Subdomain(attributes)));
  return errors;
}

/** Known modes, and ReadWriteOncePod only alone. */
export function validateAccessModes(modes: readonly string[], path: string): FieldError[] {
  const errors = modes.flatMap((mode) => oneOf(path, mode, ACCESS_MODES));
  const known = modes.filter((mode) => ACCESS_MODES.includes(mode));
  if (known.includes("ReadWriteOncePod") && known.some((mode) => mode !== "ReadWriteOncePod")) {
    errors.push(fieldError.forbidden(path, "may not use ReadWriteOncePod with other access modes"));
  }
  return errors;
}

function validateKeyToPath(item: KeyToPath, path: string): FieldError[] {
  return [
    ...required(item.key, `${path}.key`),
    ...required(item.path, `${path}.path`),
    ...validateLocalNonReservedPath(item.path ?? "", `${path}.path`),
    ...validateMode(item.mode, `${path}.mode`),
  ];
}

function validateDownwardFile(file: DownwardAPIVolumeFile, path: string): FieldError[] {
  const errors = [
    ...required(file.path, `${path}.path`),
    ...validateLocalNonReservedPath(file.path ?? "", `${path}.path`),
  ];
  if (file.fieldRef) {
    errors.push(...validateFieldSelector(file.fieldRef, VOLUME_FIELDS, `${path}.fieldRef`));
    const text = "fieldRef and resourceFieldRef can not be specified simultaneously";
    if (file.resourceFieldRef) errors.push(fieldError.invalid(path, "resource", text));
  } else if (file.resourceFieldRef) {
    errors.push(...validateResourceSelector(file.resourceFieldRef, `${path}.resourceFieldRef`, true));
  } else {
    errors.push(fieldError.required(path, "one of fieldRef and resourceFieldRef is required"));
  }
  return [...errors, ...validateMode(file.mode, `${path}.mode`)];
}

function validateProjected(source: ProjectedVolumeSource, path: string): FieldError[] {
  const seen = new Set<string>();
  const conflicts = (file: string, shown: string): FieldError[] => {
    if (!file) return [];
    const known = seen.has(file);
    seen.add(file);
    return known ? [fieldError.invalid(path, shown, "conflicting duplicate paths")] : [];
  };
  const errors = validateMode(source.defaultMode, `${path}.defaultMode`);
  for (const [i, projection] of (source.sources ?? []).entries()) {
    const at = `${path}.sources[${i}]`;
    errors.push(...validateProjection(projection, at, path, conflicts));
    if (Object.values(projection).filter((value) => value !== undefined).length > 1) {
      errors.push(fieldError.forbidden(at, "may not specify more than 1 volume type per source"));
    }
  }
  return errors;
}

function validateProjection(
  projection: VolumeProjection,
  path: string,
  parent: string,
  conflicts: (file: string, shown: string) => FieldError[],
): FieldError[] {
  const errors: FieldError[] = [];
  for (const name of ["secret", "configMap"] as const) {
    const source = projection[name];
    if (!source) continue;
    const at = `${path}.${name}`;
    errors.push(...required(source.name, `${at}.name`));
    errors.push(
      ...eachItem(source.items, `${at}.items`, (item, place) => [
        ...validateKeyToPath(item, place),
        ...conflicts(item.path, source.name ?? ""),
      ]),
    );
  }
  for (const file of projection.downwardAPI?.items ?? []) {
    errors.push(...validateDownwardFile(file, `${path}.downwardAPI`), ...conflicts(file.path, file.path));
  }
  const token = projection.serviceAccountToken;
  if (token) {
    const seconds = token.expirationSeconds ?? 3600;
    const at = `${path}.serviceAccountToken.expirationSeconds`;
    if (seconds < 600) errors.push(fieldError.invalid(at, seconds, "may not specify a duration less than 10 minutes"));
    if (seconds > 2 ** 32)
      errors.push(fieldError.invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"));
    if (token.path) errors.push(...validateLocalNonReservedPath(token.path, `${parent}.path`));
    else errors.push(fieldError.required(`${parent}.path`));
  }
  return errors;
}
