import { deepEqual } from "#base";
import { validateDriverName } from "../core/pod/validate-volumes.ts";
import type { CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment } from "../generated/types.ts";
import { compareQuantity } from "../quantity.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, immutable, invalidEach, nonNegative, oneOf } from "../validation/field-error.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";
import { isDNS1123Subdomain, isQualifiedName } from "../validation/names.ts";

const MIN_TOKEN_SECONDS = 600;
const MIN_UPDATE_SECONDS = 10;

export function validateCSIDriver({ metadata, spec }: CSIDriver): FieldError[] {
  const { fsGroupPolicy, tokenRequests = [], volumeLifecycleModes, nodeAllocatableUpdatePeriodSeconds: period } = spec;
  // checked as every name is, and once more as a driver's
  const errors = invalidEach("metadata.name", metadata.name, isDNS1123Subdomain(metadata.name));
  errors.push(...oneOf("spec.fsGroupPolicy", fsGroupPolicy, ["File", "None", "ReadWriteOnceWithFSType"]));
  errors.push(
    ...eachItem(tokenRequests, "spec.tokenRequests", ({ audience, expirationSeconds: seconds }, at, i) => {
      const found: FieldError[] = [];
      const bad = (text: string) => found.push(fieldError.invalid(`${at}.expirationSeconds`, seconds, text));
      if (tokenRequests.findIndex((other) => other.audience === audience) < i) {
        found.push(fieldError.duplicate(`${at}.audience`, audience));
      }
      if (seconds === undefined) return found;
      if (seconds < MIN_TOKEN_SECONDS) bad("may not specify a duration less than 10 minutes");
      if (seconds > 2 ** 32) bad("may not specify a duration larger than 2^32 seconds");
      return found;
    }),
  );
  for (const mode of volumeLifecycleModes ?? []) {
    errors.push(...oneOf("spec.volumeLifecycleModes", mode, ["Persistent", "Ephemeral"]));
  }
  if (period === undefined || period >= MIN_UPDATE_SECONDS) return errors;
  const text = `must be greater than or equal to ${MIN_UPDATE_SECONDS} seconds`;
  return [...errors, fieldError.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text)];
}

export function validateCSIDriverUpdate(driver: CSIDriver, old: CSIDriver): FieldError[] {
  const { attachRequired, volumeLifecycleModes } = driver.spec;
  return [
    ...validateCSIDriver(driver),
    // the field's name in messages is not quite that in the API
    ...immutable("spec.attachedRequired", attachRequired, old.spec.attachRequired, deepEqual),
    ...immutable("spec.volumeLifecycleModes", volumeLifecycleModes, old.spec.volumeLifecycleModes, deepEqual),
  ];
}

/** A new driver has no generation; its changes are counted. */
export function prepareCSIDriverUpdate(driver: CSIDriver, old: CSIDriver): void {
  if (deepEqual(driver.spec, old.spec)) return;
  driver.metadata.generation = (old.metadata.generation ?? 0) + 1;
}

export function csiDriverWarnings({ spec }: CSIDriver, old: CSIDriver | undefined): string[] {
  if (old || (spec.tokenRequests ?? []).length === 0 || spec.serviceAccountTokenInSecrets !== undefined) return [];
  const why = "if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
  return [`spec.serviceAccountTokenInSecrets is unset; ${why}`];
}

type NodeDriver = NonNullable<CSINode["spec"]["drivers"]>[number];
const MAX_NODE_ID_BYTES = 256;

export function validateCSINode({ spec }: CSINode): FieldError[] {
  const drivers = spec.drivers ?? [];
  return eachItem(drivers, "spec.drivers", (driver, at, i) => [
    ...validateNodeDriver(driver, at),
    ...(drivers.findIndex(({ name }) => name === driver.name) < i
      ? [fieldError.duplicate(`${at}.name`, driver.name)]
      : []),
  ]);
}

function validateNodeDriver({ name, nodeID, topologyKeys, allocatable }: NodeDriver, path: string): FieldError[] {
  const errors = validateDriverName(name, `${path}.name`);
  if (!nodeID) errors.push(fieldError.required(`${path}.nodeID`));
  else if (Buffer.byteLength(nodeID) > MAX_NODE_ID_BYTES) {
    errors.push(fieldError.invalid(`${path}.nodeID`, nodeID, `must be ${MAX_NODE_ID_BYTES} characters or less`));
  }
  errors.push(...nonNegative(`${path}.allocatable.count`, allocatable?.count));
  for (const [i, key] of (topologyKeys ?? []).entries()) {
    if (topologyKeys!.indexOf(key) < i) errors.push(fieldError.duplicate(path, key));
    if (!key) errors.push(fieldError.required(path));
    errors.push(...invalidEach(path, key, isQualifiedName(key)));
  }
  return errors;
}

/** A driver that is there stays as it is; it can go and come anew. */
export function validateCSINodeUpdate(node: CSINode, old: CSINode): FieldError[] {
  const errors: FieldError[] = [];
  for (const driver of node.spec.drivers ?? []) {
    const before = (old.spec.drivers ?? []).find(({ name }) => name === driver.name);
    if (!before || deepEqual(withoutCount(before), withoutCount(driver))) continue;
    const shown = {
      Name: driver.name,
      NodeID: driver.nodeID,
      TopologyKeys: driver.topologyKeys ?? null,
      Allocatable: driver.allocatable ? { Count: driver.allocatable.count ?? null } : null,
    };
    errors.push(fieldError.invalid("spec.drivers", shown, "field is immutable"));
  }
  return [...errors, ...validateCSINode(node)];
}

const withoutCount = ({ allocatable: _, ...driver }: NodeDriver) => driver;

export function validateCSIStorageCapacity(capacity: CSIStorageCapacity): FieldError[] {
  const { storageClassName: name = "" } = capacity;
  return [
    ...invalidEach("storageClassName", name, isDNS1123Subdomain(name)),
    ...validateLabelSelector(capacity.nodeTopology, "nodeTopology"),
    ...(["capacity", "maximumVolumeSize"] as const)
      .filter((field) => compareQuantity(capacity[field] ?? "0", "0") < 0)
      .map((field) => fieldError.invalid(field, capacity[field], "must be greater than or equal to 0")),
  ];
}

export function validateCSIStorageCapacityUpdate(capacity: CSIStorageCapacity, old: CSIStorageCapacity): FieldError[] {
  return [
    ...validateCSIStorageCapacity(capacity),
    ...immutable("nodeTopology", capacity.nodeTopology ?? null, old.nodeTopology ?? null, deepEqual),
    ...immutable("storageClassName", capacity.storageClassName, old.storageClassName, deepEqual),
  ];
}

const ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

export function validateVolumeAttachment({ spec }: VolumeAttachment): FieldError[] {
  const { attacher, nodeName = "" } = spec;
  const { persistentVolumeName: name, inlineVolumeSpec: inline } = spec.source ?? {};
  const errors = validateDriverName(attacher, "spec.attacher");
  const path = "spec.source";
  if (name === undefined && !inline) errors.push(fieldError.required(path, ONE_SOURCE));
  else if (name !== undefined && inline) errors.push(fieldError.forbidden(path, ONE_SOURCE));
  else if (name !== undefined) {
    const at = `${path}.persistentVolumeName`;
    if (!name) errors.push(fieldError.required(at, "must specify non empty persistentVolumeName"));
    errors.push(...invalidEach(at, name, isDNS1123Subdomain(name)));
  } else errors.push(...validateInlineVolume(inline!, `${path}.inlineVolumeSpec`));
  return [...errors, ...invalidEach("spec.nodeName", nodeName, isDNS1123Subdomain(nodeName))];
}

type InlineVolume = NonNullable<VolumeAttachment["spec"]["source"]["inlineVolumeSpec"]>;
const NOT_VOLUME_SOURCES = [
  "accessModes",
  "capacity",
  "claimRef",
  "mountOptions",
  "nodeAffinity",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "volumeAttributesClassName",
  "volumeMode",
];

function validateInlineVolume(inline: InlineVolume, path: string): FieldError[] {
  const errors = (["claimRef", "capacity"] as const)
    .filter((name) => inline[name] !== undefined)
    .map((name) => fieldError.forbidden(`${path}.${name}`, "may not be specified in the context of inline volumes"));
  if (inline.csi) return [...errors, ...validateDriverName(inline.csi.driver, `${path}.csi.driver`)];
  errors.push(fieldError.required(`${path}.csi`, "has to be specified in the context of inline volumes"));
  if (Object.keys(inline).every((name) => NOT_VOLUME_SOURCES.includes(name))) {
    errors.push(fieldError.required(path, "must specify a volume type"));
  }
  return errors;
}

export function validateVolumeAttachmentUpdate(
  attachment: VolumeAttachment,
  old: VolumeAttachment,
  subresource: string,
): FieldError[] {
  if (subresource === "status" || deepEqual(attachment.spec, old.spec)) return [];
  const { attacher, source, nodeName } = attachment.spec;
  const shown = {
    Attacher: attacher,
    Source: {
      PersistentVolumeName: source.persistentVolumeName ?? null,
      InlineVolumeSpec: source.inlineVolumeSpec ?? null,
    },
    NodeName: nodeName,
  };
  return [...validateVolumeAttachment(attachment), fieldError.invalid("spec", shown, "field is immutable")];
}
