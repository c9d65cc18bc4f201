import type {
  Container,
  ContainerPort,
  EphemeralContainer,
  PodSpec,
  Volume,
  VolumeDevice,
  VolumeMount,
} from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach, oneOf } from "../../validation/field-error.ts";
import { isDNS1123Label, isPortName, isPortNumber } from "../../validation/names.ts";
import { validateEnv, validateEnvFrom } from "./validate-env.ts";
import { validateLocalDescendingPath, validateNoBacksteps } from "./validate-paths.ts";
import { validateLifecycle, validateLiveness, validateReadiness } from "./validate-probes.ts";
import { validateContainerResources, validateResizePolicy } from "./validate-resources.ts";
import { validateSecurityContext } from "./validate-security.ts";

/** What containers are checked against. */
export interface ContainerContext {
  readonly spec: PodSpec;
  readonly volumes: ReadonlyMap<string, Volume>;
  readonly claims: ReadonlySet<string>;
}

const PULL_POLICIES = ["Always", "IfNotPresent", "Never"];
const PROTOCOLS = ["SCTP", "TCP", "UDP"];

export function validateContainers(context: ContainerContext, path: string): FieldError[] {
  const containers = context.spec.containers ?? [];
  if (containers.length === 0) return [fieldError.required(path)];
  const names = new Set<string>();
  const errors = eachItem(containers, path, (container, at) => [
    ...validateCommon(container, context, at),
    ...uniqueName(container, names, at),
    ...validateRunning(container, context, at),
    ...validateRestartPolicy(container, at),
  ]);
  return [...errors, ...hostPortConflicts(containers, path)];
}

function uniqueName({ name }: { name: string }, names: Set<string>, path: string): FieldError[] {
  if (names.has(name)) return [fieldError.duplicate(`${path}.name`, name)];
  names.add(name);
  return [];
}

/** Hooks and probes. */
function validateRunning(container: Container, { spec }: ContainerContext, path: string): FieldError[] {
  const grace = spec.terminationGracePeriodSeconds;
  return [
    ...(container.lifecycle ? validateLifecycle(container.lifecycle, grace, `${path}.lifecycle`) : []),
    ...validateLiveness(container.livenessProbe, grace, `${path}.livenessProbe`),
    ...validateReadiness(container.readinessProbe, grace, `${path}.readinessProbe`),
    ...validateLiveness(container.startupProbe, grace, `${path}.startupProbe`),
  ];
}

function validateCommon(
  container: Container | EphemeralContainer,
  context: ContainerContext,
  path: string,
): FieldError[] {
  const { spec, claims } = context;
  const errors = container.name
    ? invalidEach(`${path}.name`, container.name, isDNS1123Label(container.name))
    : [fieldError.required(`${path}.name`)];
  if (!container.image) errors.push(fieldError.required(`${path}.image`));
  errors.push(
    ...oneOf(`${path}.terminationMessagePolicy`, container.terminationMessagePolicy, ["File", "FallbackToLogsOnError"]),
    ...validatePorts(container.ports, `${path}.ports`),
    ...validateEnv(container.env, `${path}.env`),
    ...validateEnvFrom(container.envFrom, `${path}.envFrom`),
    ...validateMounts(container, context, `${path}.volumeMounts`),
    ...validateDevices(container, context, `${path}.volumeDevices`),
    ...oneOf(`${path}.imagePullPolicy`, container.imagePullPolicy, PULL_POLICIES),
    ...validateContainerResources(container.resources, claims, `${path}.resources`),
    ...validateResizePolicy(container.resizePolicy, spec.restartPolicy, `${path}.resizePolicy`),
    ...validateSecurityContext(container.securityContext, spec.hostUsers !== false, `${path}.securityContext`),
  );
  return errors;
}

export function validateInitContainers(context: ContainerContext, path: string): FieldError[] {
  const names = new Set((context.spec.containers ?? []).map(({ name }) => name));
  return eachItem(context.spec.initContainers, path, (container, at) => {
    const errors = [...validateCommon(container, context, at), ...validateRestartPolicy(container, at)];
    errors.push(...uniqueName(container, names, at), ...hostPortConflicts([container], path));
    if (container.restartPolicy === "Always") return [...errors, ...validateRunning(container, context, at)];
    for (const name of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const) {
      if (container[name] === undefined) continue;
      errors.push(
        fieldError.forbidden(`${at}.${name}`, "may not be set for init containers without restartPolicy=Always"),
      );
    }
    return errors;
  });
}

const RESTART_POLICIES = ["Always", "Never", "OnFailure"];

/** A container's own restart policy and its rules (KEP-5307). */
function validateRestartPolicy(container: Container, path: string): FieldError[] {
  const rules = container.restartPolicyRules ?? [];
  const errors: FieldError[] = [];
  if (container.restartPolicy === undefined) {
    if (rules.length === 0) return [];
    errors.push(fieldError.required(`${path}.restartPolicy`, "must specify restartPolicy when restart rules are used"));
  } else {
    errors.push(...oneOf(`${path}.restartPolicy`, container.restartPolicy, RESTART_POLICIES));
  }
  if (rules.length > 20) errors.push(fieldError.tooMany(`${path}.restartPolicyRules`, rules.length, 20));
  return [
    ...errors,
    ...eachItem(rules, `${path}.restartPolicyRules`, ({ action, exitCodes }, at) => {
      const own = oneOf(`${at}.action`, action, ["Restart", "RestartAllContainers"]);
      if (!exitCodes) return [...own, fieldError.required(`${at}.exitCodes`, "must be specified")];
      own.push(...oneOf(`${at}.exitCodes.operator`, exitCodes.operator, ["In", "NotIn"]));
      const count = (exitCodes.values ?? []).length;
      return count > 255 ? [...own, fieldError.tooMany(`${at}.exitCodes.values`, count, 255)] : own;
    }),
  ];
}

/** Fields that ephemeral containers may have. */
const EPHEMERAL_FORBIDDEN = [
  "ports",
  "livenessProbe",
  "readinessProbe",
  "startupProbe",
  "lifecycle",
  "resources",
  "resizePolicy",
] as const;

export function validateEphemeralContainers(context: ContainerContext, path: string): FieldError[] {
  const { spec } = context;
  const others = new Set([...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ name }) => name));
  const names = new Set(others);
  return eachItem(spec.ephemeralContainers, path, (container, at) => {
    const errors = [...validateCommon(container, context, at), ...validateImageSpace(container, at)];
    errors.push(...uniqueName(container, names, at));
    const target = container.targetContainerName;
    if (target && !others.has(target)) errors.push(fieldError.notFound(`${at}.targetContainerName`, target));
    for (const name of EPHEMERAL_FORBIDDEN) {
      const value = container[name];
      if (value === undefined || Object.keys(value).length === 0) continue;
      errors.push(fieldError.forbidden(`${at}.${name}`, "cannot be set for an Ephemeral Container"));
    }
    for (const [i, mount] of (container.volumeMounts ?? []).entries()) {
      for (const name of ["subPath", "subPathExpr"] as const) {
        if (!mount[name]) continue;
        errors.push(
          fieldError.forbidden(`${at}.volumeMounts[${i}].${name}`, "cannot be set for an Ephemeral Container"),
        );
      }
    }
    return errors;
  });
}

/** Only pods refuse it; templates may hold it, and fail when a pod is made. */
export function validateImageSpace({ image = "" }: { image?: string }, path: string): FieldError[] {
  if (image.trim() === image) return [];
  return [fieldError.invalid(`${path}.image`, image, "must not have leading or trailing whitespace")];
}

function validatePorts(ports: readonly ContainerPort[] | undefined, path: string): FieldError[] {
  const names = new Set<string>();
  return eachItem(ports, path, (port, at) => {
    const errors: FieldError[] = [];
    if (port.name) {
      const texts = isPortName(port.name);
      if (texts.length > 0) errors.push(...invalidEach(`${at}.name`, port.name, texts));
      else if (names.has(port.name)) errors.push(fieldError.duplicate(`${at}.name`, port.name));
      names.add(port.name);
    }
    if (!port.containerPort) errors.push(fieldError.required(`${at}.containerPort`));
    else errors.push(...invalidEach(`${at}.containerPort`, port.containerPort, isPortNumber(port.containerPort)));
    if (port.hostPort) errors.push(...invalidEach(`${at}.hostPort`, port.hostPort, isPortNumber(port.hostPort)));
    return [...errors, ...oneOf(`${at}.protocol`, port.protocol, PROTOCOLS)];
  });
}

function hostPortConflicts(containers: readonly Container[], path: string): FieldError[] {
  const seen = new Set<string>();
  return eachItem(containers, path, ({ ports }, place) =>
    eachItem(ports, `${place}.ports`, ({ protocol, hostIP, hostPort }, at) => {
      if (!hostPort) return [];
      const key = `${protocol}/${hostIP ?? ""}/${hostPort}`;
      if (seen.has(key)) return [fieldError.duplicate(`${at}.hostPort`, key)];
      seen.add(key);
      return [];
    }),
  );
}

function validateMounts(
  container: Container | EphemeralContainer,
  { volumes }: ContainerContext,
  path: string,
): FieldError[] {
  const points = new Set<string>();
  const devices = container.volumeDevices ?? [];
  return eachItem(container.volumeMounts, path, (mount, at) => {
    const errors: FieldError[] = [];
    if (!mount.name) errors.push(fieldError.required(`${at}.name`));
    if (!volumes.has(mount.name)) errors.push(fieldError.notFound(`${at}.name`, mount.name));
    if (!mount.mountPath) errors.push(fieldError.required(`${at}.mountPath`));
    if (points.has(mount.mountPath))
      errors.push(fieldError.invalid(`${at}.mountPath`, mount.mountPath, "must be unique"));
    points.add(mount.mountPath);
    if (devices.some(({ name }) => name === mount.name)) {
      errors.push(fieldError.invalid(`${at}.name`, mount.name, "must not already exist in volumeDevices"));
    }
    if (devices.some(({ devicePath }) => devicePath === mount.mountPath)) {
      const text = "must not already exist as a path in volumeDevices";
      errors.push(fieldError.invalid(`${at}.mountPath`, mount.mountPath, text));
    }
    return [...errors, ...validateSubPaths(mount, at, path), ...validatePropagation(mount, container, path)];
  });
}

/** The API server names these fields without the mount's index. */
function validateSubPaths(mount: VolumeMount, path: string, parent: string): FieldError[] {
  const errors = mount.subPath ? validateLocalDescendingPath(mount.subPath, `${parent}.subPath`) : [];
  if (!mount.subPathExpr) return errors;
  const text = "subPathExpr and subPath are mutually exclusive";
  if (mount.subPath) errors.push(fieldError.invalid(`${path}.subPathExpr`, mount.subPathExpr, text));
  return [...errors, ...validateLocalDescendingPath(mount.subPathExpr, `${parent}.subPathExpr`)];
}

function validatePropagation(
  mount: VolumeMount,
  container: Container | EphemeralContainer,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const { mountPropagation: propagation, recursiveReadOnly: recursive } = mount;
  if (propagation !== undefined) {
    errors.push(...oneOf(`${path}.mountPropagation`, propagation, ["Bidirectional", "HostToContainer", "None"]));
    if (propagation === "Bidirectional" && !container.securityContext?.privileged) {
      const text = "Bidirectional mount propagation is available only to privileged containers";
      errors.push(fieldError.forbidden(`${path}.mountPropagation`, text));
    }
  }
  if (recursive === undefined || recursive === "Disabled") return errors;
  const at = `${path}.recursiveReadOnly`;
  if (recursive !== "Enabled" && recursive !== "IfPossible") {
    return [...errors, fieldError.notSupported(at, recursive, ["Disabled", "Enabled", "IfPossible"])];
  }
  if (!mount.readOnly) errors.push(fieldError.forbidden(at, "may only be specified when readOnly is true"));
  if (propagation !== undefined && propagation !== "None") {
    errors.push(fieldError.forbidden(at, "may only be specified when mountPropagation is None or not specified"));
  }
  return errors;
}

function validateDevices(
  container: Container | EphemeralContainer,
  { volumes }: ContainerContext,
  path: string,
): FieldError[] {
  const names = new Set<string>();
  const paths = new Set<string>();
  const mounts = container.volumeMounts ?? [];
  return eachItem(container.volumeDevices, path, (device: VolumeDevice, at) => {
    const errors: FieldError[] = [];
    const volume = volumes.get(device.name);
    const bad = (name: "name" | "devicePath", text: string) =>
      errors.push(fieldError.invalid(`${at}.${name}`, device[name], text));
    if (!device.name) errors.push(fieldError.required(`${at}.name`));
    if (names.has(device.name)) bad("name", "must be unique");
    if (volume && !volume.persistentVolumeClaim && !volume.ephemeral) {
      bad("name", "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    }
    if (!volume) errors.push(fieldError.notFound(`${at}.name`, device.name));
    if (!device.devicePath) errors.push(fieldError.required(`${at}.devicePath`));
    if (paths.has(device.devicePath)) bad("devicePath", "must be unique");
    if (validateNoBacksteps(device.devicePath ?? "", at).length > 0)
      bad("devicePath", "can not contain backsteps ('..')");
    if (mounts.some(({ name }) => name === device.name)) bad("name", "must not already exist in volumeMounts");
    if (mounts.some(({ mountPath }) => mountPath === device.devicePath)) {
      bad("devicePath", "must not already exist as a path in volumeMounts");
    }
    names.add(device.name);
    paths.add(device.devicePath);
    return errors;
  });
}
