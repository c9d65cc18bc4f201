import type { DeepReadonly } from "#base";
import type { Mount } from "#engine";
import type { Container, EphemeralContainer, VolumeMount } from "#kinds";
import { expandStrict } from "../env/expand.ts";
import type { MountedVolume } from "./port.ts";
import { resolveSubPath } from "./sub-path.ts";

/**
 * The mounts of a container's `volumeMounts`, outer ones first. Missing directories of sub-paths are made.
 *
 * Source: https://kubernetes.io/docs/concepts/storage/volumes/
 *
 * @throws Error in the words of the kubelet
 */
export async function containerMounts(
  container: DeepReadonly<Container> | DeepReadonly<EphemeralContainer>,
  volumes: ReadonlyMap<string, MountedVolume>,
  options: { environment: ReadonlyMap<string, string>; recursiveReadOnly: boolean },
): Promise<Mount[]> {
  const mounts: Mount[] = [];
  for (const mount of container.volumeMounts ?? []) {
    const volume = volumes.get(mount.name);
    if (!volume) throw new Error(`cannot find volume "${mount.name}" to mount into container "${container.name}"`);
    mounts.push(await oneMount(container.name, mount, volume, options));
  }
  // A mount hides what an earlier one put below its path.
  return mounts.sort((a, b) => depth(a.containerPath) - depth(b.containerPath));
}

async function oneMount(
  container: string,
  mount: DeepReadonly<VolumeMount>,
  volume: MountedVolume,
  { environment, recursiveReadOnly }: { environment: ReadonlyMap<string, string>; recursiveReadOnly: boolean },
): Promise<Mount> {
  const subPath = mount.subPathExpr ? expandStrict(mount.subPathExpr, environment) : mount.subPath;
  const resolved = subPath ? await subPathOf(container, mount.name, volume, subPath) : undefined;
  const recursive = isRecursivelyReadOnly(mount, recursiveReadOnly);
  return {
    hostPath: volume.hostPath ?? "",
    containerPath: mount.mountPath.startsWith("/") ? mount.mountPath : `/${mount.mountPath}`,
    readOnly: (mount.readOnly ?? false) || volume.readOnly,
    ...(recursive ? { recursiveReadOnly: true } : {}),
    propagation: PROPAGATION[mount.mountPropagation ?? "None"] ?? "private",
    ...(resolved ? { subPath: resolved } : {}),
    ...(volume.image ? { image: volume.image } : {}),
  };
}

const PROPAGATION: Readonly<Record<string, NonNullable<Mount["propagation"]>>> = {
  None: "private",
  HostToContainer: "rslave",
  Bidirectional: "rshared",
};

async function subPathOf(container: string, name: string, volume: MountedVolume, subPath: string): Promise<string> {
  if (subPath.startsWith("/")) throw new Error(`error SubPath \`${subPath}\` must not be an absolute path`);
  if (subPath.split("/").includes("..")) {
    throw new Error(`unable to provision SubPath \`${subPath}\`: must not contain '..'`);
  }
  // The engine knows what is in the image.
  if (volume.image) return subPath;
  try {
    return await resolveSubPath(volume.hostPath ?? "", subPath, { create: true });
  } catch (cause) {
    // Without the reason, which could tell of the host's files.
    throw new Error(`failed to prepare subPath for volumeMount "${name}" of container "${container}"`, { cause });
  }
}

function isRecursivelyReadOnly(mount: DeepReadonly<VolumeMount>, supported: boolean): boolean {
  const { recursiveReadOnly: wanted = "Disabled", mountPropagation = "None", name } = mount;
  if (wanted === "Disabled") return false;
  const fault = (why: string) =>
    new Error(
      `failed to resolve recursive read-only mode: volume "${name}" requested recursive read-only mode, but it is ${why}`,
    );
  if (!mount.readOnly) throw fault("not read-only");
  if (mountPropagation !== "None") throw fault(`not compatible with propagation "${mountPropagation}"`);
  if (wanted === "Enabled" && !supported) throw fault("not supported by the runtime");
  return supported;
}

const depth = (path: string) => path.split("/").filter((element) => element !== "").length;
