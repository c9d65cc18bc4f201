import type {
  AppArmorProfile,
  PodSecurityContext,
  SeccompProfile,
  SecurityContext,
  Sysctl,
} from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach } from "../../validation/field-error.ts";
import { isUserID } from "../../validation/names.ts";
import { validateLocalDescendingPath } from "./validate-paths.ts";

const userID = (id: number | undefined, path: string): FieldError[] =>
  id === undefined ? [] : invalidEach(path, id, isUserID(id));

export function validateSecurityContext(
  context: SecurityContext | undefined,
  hostUsers: boolean,
  path: string,
): FieldError[] {
  if (!context) return [];
  const errors = [
    ...userID(context.runAsUser, `${path}.runAsUser`),
    ...userID(context.runAsGroup, `${path}.runAsGroup`),
  ];
  if (context.procMount !== undefined)
    errors.push(...validateProcMount(context.procMount, hostUsers, `${path}.procMount`));
  errors.push(...validateSeccomp(context.seccompProfile, `${path}.seccompProfile`));
  if (context.allowPrivilegeEscalation === false) {
    const text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
    if (context.privileged) errors.push(fieldError.invalid(path, shownContext(context), text));
    const admin = context.capabilities?.add?.includes("CAP_SYS_ADMIN");
    const adminText = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
    if (admin) errors.push(fieldError.invalid(path, shownContext(context), adminText));
  }
  return [...errors, ...validateAppArmor(context.appArmorProfile, `${path}.appArmorProfile`)];
}

function validateProcMount(value: string, hostUsers: boolean, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (value !== "Default" && value !== "Unmasked") {
    errors.push(fieldError.notSupported(path, value, ["Default", "Unmasked"]));
  }
  if (hostUsers && value === "Unmasked") {
    errors.push(fieldError.invalid(path, value, "`hostUsers` must be false to use `Unmasked`"));
  }
  return errors;
}

/** The API server shows its internal type, whose fields have capitals. */
function shownContext(context: SecurityContext): Record<string, unknown> {
  const { capabilities } = context;
  return {
    Capabilities: capabilities ? { Add: capabilities.add ?? null, Drop: capabilities.drop ?? null } : null,
    Privileged: context.privileged ?? null,
    SELinuxOptions: context.seLinuxOptions ?? null,
    WindowsOptions: context.windowsOptions ?? null,
    RunAsUser: context.runAsUser ?? null,
    RunAsGroup: context.runAsGroup ?? null,
    RunAsNonRoot: context.runAsNonRoot ?? null,
    ReadOnlyRootFilesystem: context.readOnlyRootFilesystem ?? null,
    AllowPrivilegeEscalation: context.allowPrivilegeEscalation ?? null,
    ProcMount: context.procMount ?? null,
    SeccompProfile: shownProfile(context.seccompProfile),
    AppArmorProfile: shownProfile(context.appArmorProfile),
  };
}

const shownProfile = (profile: SeccompProfile | AppArmorProfile | undefined): Record<string, unknown> | null =>
  profile ? { Type: profile.type, LocalhostProfile: profile.localhostProfile ?? null } : null;

function validateSeccomp(profile: SeccompProfile | undefined, path: string): FieldError[] {
  if (!profile) return [];
  const errors: FieldError[] = [];
  const types = ["Localhost", "RuntimeDefault", "Unconfined"];
  if (!profile.type) errors.push(fieldError.required(`${path}.type`, "type is required when seccompProfile is set"));
  else if (!types.includes(profile.type)) errors.push(fieldError.notSupported(`${path}.type`, profile.type, types));
  const at = `${path}.localhostProfile`;
  if (profile.type === "Localhost") {
    if (profile.localhostProfile === undefined) {
      errors.push(fieldError.required(at, "must be set when seccomp type is Localhost"));
    } else {
      errors.push(...validateLocalDescendingPath(profile.localhostProfile, at));
    }
  } else if (profile.localhostProfile !== undefined) {
    const shown = { Type: profile.type, LocalhostProfile: profile.localhostProfile };
    errors.push(fieldError.invalid(at, shown, "can only be set when seccomp type is Localhost"));
  }
  return errors;
}

function validateAppArmor(profile: AppArmorProfile | undefined, path: string): FieldError[] {
  if (!profile) return [];
  const at = `${path}.localhostProfile`;
  const given = profile.localhostProfile;
  switch (profile.type) {
    case "Localhost":
      if (given === undefined || given === "")
        return [fieldError.required(at, "must be set when AppArmor type is Localhost")];
      if (given.trim() !== given) return [fieldError.invalid(at, given, "must not be padded with whitespace")];
      return given.length > 4095 ? [fieldError.tooLong(at, 4095)] : [];
    case "RuntimeDefault":
    case "Unconfined":
      return given === undefined
        ? []
        : [fieldError.invalid(at, given, "can only be set when AppArmor type is Localhost")];
    case "":
      return [fieldError.required(`${path}.type`, "type is required when appArmorProfile is set")];
    default:
      return [fieldError.notSupported(`${path}.type`, profile.type, ["Localhost", "RuntimeDefault", "Unconfined"])];
  }
}

export function validatePodSecurityContext(
  context: PodSecurityContext | undefined,
  pod: { hostPID: boolean; shareProcessNamespace: boolean | undefined },
  path: string,
): FieldError[] {
  if (!context) return [];
  const errors = [
    ...userID(context.fsGroup, `${path}.fsGroup`),
    ...userID(context.runAsUser, `${path}.runAsUser`),
    ...userID(context.runAsGroup, `${path}.runAsGroup`),
    ...eachItem(context.supplementalGroups, `${path}.supplementalGroups`, (group, at) => userID(group, at)),
  ];
  if (pod.shareProcessNamespace && pod.hostPID) {
    const text = "ShareProcessNamespace and HostPID cannot both be enabled";
    errors.push(fieldError.invalid(`${path}.shareProcessNamespace`, true, text));
  }
  errors.push(...validateSysctls(context.sysctls, `${path}.sysctls`));
  errors.push(
    ...oneOfOptional(context.fsGroupChangePolicy, ["Always", "OnRootMismatch"], `${path}.fsGroupChangePolicy`),
  );
  errors.push(...validateSeccomp(context.seccompProfile, `${path}.seccompProfile`));
  errors.push(...validateAppArmor(context.appArmorProfile, `${path}.appArmorProfile`));
  errors.push(
    ...oneOfOptional(context.supplementalGroupsPolicy, ["Merge", "Strict"], `${path}.supplementalGroupsPolicy`),
  );
  return [...errors, ...oneOfOptional(context.seLinuxChangePolicy, ["Recursive"], `${path}.seLinuxChangePolicy`)];
}

const oneOfOptional = (value: string | undefined, supported: readonly string[], path: string): FieldError[] =>
  value === undefined || supported.includes(value) ? [] : [fieldError.notSupported(path, value, supported)];

const SYSCTL = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const SYSCTL_RE = new RegExp(`^${SYSCTL}$`);

function validateSysctls(sysctls: readonly Sysctl[] | undefined, path: string): FieldError[] {
  const seen = new Set<string>();
  return eachItem(sysctls, path, ({ name }, at) => {
    const known = seen.has(name);
    seen.add(name);
    if (!name) return [fieldError.required(`${at}.name`)];
    if (name.length > 253 || !SYSCTL_RE.test(name)) {
      return [fieldError.invalid(`${at}.name`, name, `must have at most 253 characters and match regex ^${SYSCTL}$`)];
    }
    return known ? [fieldError.duplicate(`${at}.name`, name)] : [];
  });
}
