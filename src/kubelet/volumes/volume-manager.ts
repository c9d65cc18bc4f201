import { mkdirSync, realpathSync } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createBackoff, hasCode, messageOf } from "#base";
import type { ImageStatus } from "#engine";
import { ContainerConfigError, type NodeServices, type ReadonlyPod, type VolumeManager } from "../ports.ts";
import { containerMounts } from "./mounts.ts";
import { createObjectCache, type ObjectCache } from "./object-cache.ts";
import { podDirectory } from "./pod-directory.ts";
import { createPodVolumes, type PodVolumes } from "./pod-volumes.ts";
import type { MountedVolume } from "./port.ts";
import type { VolumeDeps } from "./sources.ts";
import { readBelow } from "./sub-path.ts";
import { createTokenManager } from "./tokens.ts";
import { overLimit } from "./usage.ts";
import { createTrustBundles } from "./trust-bundles.ts";

export interface VolumeManagerOptions {
  /** Directory of all pods: `<data>/pods`. */
  readonly root: string;
  /** Whether the runtime can make mounts read-only with all below them. Default true. */
  readonly recursiveReadOnly?: boolean;
  /** Pulls images of image volumes with the pod's credentials; default: anonymously through the engine. */
  readonly pullImage?: (pod: ReadonlyPod, reference: string) => Promise<ImageStatus>;
  /** A cache to share with the configuration builder; default: an own one. */
  readonly objects?: ObjectCache;
}

/** Adds what the configuration builder needs beyond the core's port. */
export interface PodVolumeManager extends VolumeManager {
  /** Volumes of the pod that are set up, by name. */
  volumes(uid: string): ReadonlyMap<string, MountedVolume>;
  readFile(pod: ReadonlyPod, volume: string, path: string): Promise<{ path: string; text: string }>;
}

const MAX_ENV_FILE = 1 << 20;

export function createVolumeManager(services: NodeServices, options: VolumeManagerOptions): PodVolumeManager {
  const objects = options.objects ?? createObjectCache(services);
  const deps = volumeDeps(services, options, objects);
  mkdirSync(options.root, { recursive: true, mode: 0o750 });
  // The kernel's list of mounts has no links in its paths.
  const root = realpathSync(options.root);
  const pods = new Map<string, PodVolumes>();
  const listeners = new Set<(uid: string) => void>();
  const backoff = createBackoff(services.clock, { initial: 500, max: 122_000 });

  const open = (pod: ReadonlyPod): PodVolumes => {
    const uid = pod.metadata.uid ?? "";
    let volumes = pods.get(uid);
    if (!volumes) {
      const changed = () => {
        for (const listener of listeners) listener(uid);
      };
      volumes = createPodVolumes(pod, { ...deps, directory: podDirectory(root, uid), backoff, changed });
      pods.set(uid, volumes);
    }
    return volumes;
  };
  const volumes = (uid: string): ReadonlyMap<string, MountedVolume> => pods.get(uid)?.mounted() ?? new Map();

  return {
    volumes,
    prepare: (pod) => open(pod).prepare(pod),
    refresh: (pod) => pods.get(pod.metadata.uid ?? "")?.refresh(pod),
    async teardown(uid) {
      const { path } = podDirectory(root, uid);
      const known = pods.get(uid);
      await known?.close();
      deps.tokens.forget(uid);
      await removeDirectory(path, deps);
      if (pods.get(uid) === known) pods.delete(uid);
    },
    async mountsFor(pod, container, environment = new Map()) {
      try {
        return await containerMounts(container, volumes(pod.metadata.uid ?? ""), {
          environment,
          recursiveReadOnly: options.recursiveReadOnly ?? true,
        });
      } catch (error) {
        throw new ContainerConfigError(messageOf(error), { cause: error });
      }
    },
    overLimit: (pod) => overLimit(pod, volumes(pod.metadata.uid ?? "")),
    async readFile(pod, volume, path) {
      const top = volumes(pod.metadata.uid ?? "").get(volume)?.hostPath;
      if (top === undefined) throw new Error(`cannot find the volume "${volume}" referenced by FileKeyRef`);
      return { path: join(top, path), text: await readBelow(top, path, MAX_ENV_FILE) };
    },
    async listPodUIDs() {
      const entries = await readdir(root, { withFileTypes: true });
      return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
    },
    onChange(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...pods.values()].map((entry) => entry.close()));
      if (!options.objects) await objects[Symbol.asyncDispose]();
    },
  };
}

function volumeDeps(services: NodeServices, options: VolumeManagerOptions, objects: ObjectCache): VolumeDeps {
  const { client, engine, clock, random, logger, node } = services;
  return {
    client,
    objects,
    tokens: createTokenManager(services),
    trustBundles: createTrustBundles(client),
    // The fake engine has none, whatever the type says.
    ...((engine.mounts as typeof engine.mounts | undefined) ? { mounts: engine.mounts } : {}),
    images: engine.images,
    ...(options.pullImage ? { pullImage: options.pullImage } : {}),
    clock,
    random,
    logger,
    allocatable: () => node()?.status?.allocatable ?? {},
    nodeLabels: () => ({ name: node()?.metadata.name ?? "", labels: node()?.metadata.labels ?? {} }),
  };
}

/** Never while something is mounted in it: that would empty a volume that the pod only borrowed. */
async function removeDirectory(path: string, { mounts }: VolumeDeps): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  });
  if (!found) return;
  if (mounts) {
    await mounts.unmount(path);
    const left = await mounts.under(path);
    if (left.length > 0) throw new Error(`cannot remove ${path}: still mounted: ${left.join(", ")}`);
  }
  await rm(path, { recursive: true, force: true, maxRetries: 3 });
}
