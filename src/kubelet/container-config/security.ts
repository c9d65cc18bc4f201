import { resolve, sep } from "node:path";
import type { DeepReadonly } from "#base";
import type { ImageStatus, SecurityConfig } from "#engine";
import type { Container, Pod, SecurityContext } from "#kinds";

/**
 * The security context in force for a container: its own fields, over those of the pod that apply to containers.
 *
 * Source: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
 */
export function effectiveSecurityContext(
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
): DeepReadonly<SecurityContext> {
  const shared = Object.entries(pod.spec.securityContext ?? {}).filter(([name]) => POD_FIELDS.has(name));
  const own = Object.entries(container.securityContext ?? {});
  return Object.fromEntries([...shared, ...own].filter(([, value]) => value !== undefined && value !== null));
}

/** Fields of the pod's security context that its containers inherit. */
const POD_FIELDS: ReadonlySet<string> = new Set([
  "runAsUser",
  "runAsGroup",
  "runAsNonRoot",
  "seccompProfile",
  "appArmorProfile",
]);

/** @throws Error when `runAsNonRoot` is asked for and the container would run as root, or might */
export function checkRunAsNonRoot(
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
  image: Pick<ImageStatus, "uid" | "username">,
): void {
  const context = effectiveSecurityContext(pod, container);
  if (!context.runAsNonRoot) return;
  const { name, namespace, uid } = pod.metadata ?? {};
  const where = `(pod: "${name}_${namespace}(${uid})", container: ${container.name})`;
  if (context.runAsUser !== undefined) {
    if (context.runAsUser === 0) throw new Error(`container's runAsUser breaks non-root policy ${where}`);
    return;
  }
  if (image.uid === undefined && image.username) {
    throw new Error(
      `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root ${where}`,
    );
  }
  if ((image.uid ?? 0) === 0) throw new Error(`container has runAsNonRoot and image will run as root ${where}`);
}

/**
 * What the engine must enforce. `seccompRoot` is the directory of `Localhost` seccomp profiles.
 *
 * @throws Error for a profile that is not given, or lies outside the directory
 */
export function securityConfig(
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
  options: { seccompRoot: string; extraGroups?: readonly number[] },
): SecurityConfig {
  const context = effectiveSecurityContext(pod, container);
  const { fsGroup, supplementalGroups = [], supplementalGroupsPolicy } = pod.spec?.securityContext ?? {};
  const privileged = context.privileged ?? false;
  const unmasked = context.procMount === "Unmasked" ? { maskedPaths: [], readonlyPaths: [] } : {};
  const apparmor = apparmorProfile(context.appArmorProfile);
  return {
    privileged,
    ...(context.runAsUser === undefined ? {} : { runAsUser: context.runAsUser }),
    ...(context.runAsGroup === undefined ? {} : { runAsGroup: context.runAsGroup }),
    supplementalGroups: [
      ...(fsGroup === undefined ? [] : [fsGroup]),
      ...supplementalGroups,
      ...(options.extraGroups ?? []),
    ],
    ...(supplementalGroupsPolicy === undefined
      ? {}
      : { supplementalGroupsPolicy: supplementalGroupsPolicy === "Strict" ? "Strict" : "Merge" }),
    addCapabilities: context.capabilities?.add ?? [],
    dropCapabilities: context.capabilities?.drop ?? [],
    readOnlyRootfs: context.readOnlyRootFilesystem ?? false,
    noNewPrivileges: context.allowPrivilegeEscalation === false,
    seccomp: privileged ? "unconfined" : seccompProfile(context.seccompProfile, options.seccompRoot),
    ...(apparmor === undefined ? {} : { apparmor }),
    ...unmasked,
  };
}

function seccompProfile(profile: DeepReadonly<SecurityContext>["seccompProfile"], root: string): string {
  if (profile?.type === "RuntimeDefault") return "runtime-default";
  if (profile?.type !== "Localhost") return "unconfined";
  if (!profile.localhostProfile) throw new Error("localhostProfile must be set if seccompProfile type is Localhost.");
  const path = resolve(root, profile.localhostProfile);
  if (!path.startsWith(resolve(root) + sep)) {
    throw new Error(`localhostProfile ${profile.localhostProfile} lies outside the directory of seccomp profiles`);
  }
  return path;
}

function apparmorProfile(profile: DeepReadonly<SecurityContext>["appArmorProfile"]): string | undefined {
  if (profile?.type === "RuntimeDefault") return "runtime/default";
  if (profile?.type !== "Localhost") return profile === undefined ? undefined : "unconfined";
  if (!profile.localhostProfile) throw new Error("missing localhost apparmor profile name");
  return profile.localhostProfile;
}
