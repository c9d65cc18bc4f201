import { chmod, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { DeepReadonly } from "#base";
import type { Mounts } from "#engine";
import type { EmptyDirVolumeSource, Pod } from "#kinds";
import { podCgroupResources } from "../container-config/linux-resources.ts";
import { wholeValue } from "../container-config/quantity.ts";
import { giveToGroup } from "./ownership.ts";
import type { MakeVolume, VolumeDeps } from "./sources.ts";

/**
 * A scratch directory that lives as long as the pod, on disk or in memory. In memory its size is the least of its
 * `sizeLimit`, the pod's memory limit and what the node can allocate.
 *
 * Source: https://kubernetes.io/docs/concepts/storage/volumes/#emptydir
 */
export const emptyDir: MakeVolume = ({ pod, volume, directory }, deps) => {
  const source = volume.emptyDir ?? {};
  const path = directory.volume("empty-dir", volume.name);
  // Content made by containers must survive a restart of the kubelet, and ownership is set only once.
  const ready = join(directory.path, "plugins", "kubernetes.io~empty-dir", volume.name, "ready");
  return {
    async setUp() {
      const fresh = await makeDirectory(path, source, pod, deps);
      if (fresh || !(await exists(ready))) {
        const group = pod.spec.securityContext?.fsGroup;
        if (group !== undefined) await giveToGroup(path, { group, readOnly: false, logger: deps.logger });
        await mkdir(dirname(ready), { recursive: true, mode: 0o750 });
        await writeFile(ready, "");
      }
      return { hostPath: path, readOnly: false };
    },
  };
};

/** True when what is there now is new. */
async function makeDirectory(
  path: string,
  source: DeepReadonly<EmptyDirVolumeSource>,
  pod: DeepReadonly<Pod>,
  deps: VolumeDeps,
): Promise<boolean> {
  const { medium = "" } = source;
  if (medium === "") return openDirectory(path);
  if (medium !== "Memory") {
    throw new Error(
      medium.startsWith("HugePages")
        ? `medium "${medium}" is not supported on this node`
        : `unknown storage medium "${medium}"`,
    );
  }
  return memoryDirectory(path, memorySize(pod, source.sizeLimit, deps.allocatable().memory), deps.mounts);
}

/** A directory that everybody may write to; true when it is new. */
export async function openDirectory(path: string): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  const fresh = await mkdir(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );
  if (fresh) await chmod(path, 0o777);
  return fresh;
}

/** A tmpfs of `size` bytes at `path` (0 = the kernel's default, half of the memory); true when it is new. */
export async function memoryDirectory(path: string, size: number, mounts: Mounts | undefined): Promise<boolean> {
  const fresh = await openDirectory(path);
  if (!mounts || (await mounts.under(path)).includes(path)) return fresh;
  try {
    await mounts.tmpfs(path, { mode: 0o1777, ...(size > 0 ? { sizeBytes: size } : {}) });
  } catch (error) {
    if (fresh) await rm(path, { recursive: true, force: true });
    throw error;
  }
  return true;
}

/** How large a volume in memory may grow, bytes. */
export function memorySize(
  pod: DeepReadonly<Pod>,
  sizeLimit: string | undefined,
  allocatable: string | undefined,
): number {
  const podLimit = podCgroupResources(pod, { memoryBytes: 1 }).memoryLimitBytes;
  const bounds = [wholeValue(allocatable), podLimit ?? 0, wholeValue(sizeLimit)].filter((bytes) => bytes > 0);
  return bounds.length > 0 ? Math.min(...bounds) : 0;
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );
