import { mkdirSync, realpathSync } from "node:fs";
import { lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createBackoff, type DeepReadonly, hasCode, messageOf, type Timer } from "#base";
import type { ImageStatus } from "#engine";
import type { Volume } from "#kinds";
import {
  ContainerConfigError,
  type NodeServices,
  type PodEvent,
  type ReadonlyPod,
  type VolumeManager,
  type VolumesOutcome,
} from "../ports.ts";
import { emptyDir } from "./empty-dir.ts";
import { hostPath } from "./host-path.ts";
import { imageVolume } from "./image-volume.ts";
import { containerMounts } from "./mounts.ts";
import { createObjectCache, type ObjectCache } from "./object-cache.ts";
import { ClaimError, persistentVolume } from "./persistent-volume.ts";
import { type PodDirectory, podDirectory } from "./pod-directory.ts";
import type { MountedVolume } from "./port.ts";
import { configMapVolume, downwardVolume, projectedVolume, secretVolume } from "./projected.ts";
import { type MakeVolume, MountStepError, type VolumeDeps, type VolumeSource } from "./sources.ts";
import { readBelow } from "./sub-path.ts";
import { createTokenManager } from "./tokens.ts";
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

interface Entry {
  readonly name: string;
  readonly source: VolumeSource;
  mounted: MountedVolume | undefined;
  /** Something changed since `setUp` last began. */
  stale: boolean;
  updating: Promise<void> | undefined;
  timer: Timer | undefined;
}

interface PodState {
  readonly uid: string;
  pod: ReadonlyPod;
  readonly directory: PodDirectory;
  readonly entries: readonly Entry[];
  /** Set-up steps, one after another. */
  tail: Promise<unknown>;
  failingSince: number | undefined;
  /** Aborted when the pod is torn down: nothing is set up or updated any more. */
  readonly abort: AbortController;
}

/** Updates of one volume come no faster than this, milliseconds. */
const UPDATE_SPACING = 100;
/** After this long a pod's events also name all volumes that are missing, milliseconds. */
const MOUNT_TIMEOUT = 123_000;
const MAX_ENV_FILE = 1 << 20;

export function createVolumeManager(services: NodeServices, options: VolumeManagerOptions): PodVolumeManager {
  const { clock, logger } = services;
  const objects = options.objects ?? createObjectCache(services);
  const deps = volumeDeps(services, options, objects);
  mkdirSync(options.root, { recursive: true, mode: 0o750 });
  // The kernel's list of mounts has no links in its paths.
  const root = realpathSync(options.root);
  const pods = new Map<string, PodState>();
  const listeners = new Set<(uid: string) => void>();
  const backoff = createBackoff(clock, { initial: 500, max: 122_000 });

  const update = (state: PodState, entry: Entry): void => {
    entry.stale = true;
    if (state.abort.signal.aborted || entry.updating) return;
    if (!entry.mounted) {
      for (const listener of listeners) listener(state.uid);
      return;
    }
    entry.updating = keepUp(state, entry).finally(() => {
      entry.updating = undefined;
    });
  };

  const keepUp = async (state: PodState, entry: Entry): Promise<void> => {
    const key = `${state.uid}/${entry.name}`;
    while (entry.stale && !state.abort.signal.aborted) {
      try {
        await setUpEntry(state, entry);
        backoff.reset(key);
      } catch (error) {
        // What is mounted stays as it was: a running container must not lose its files.
        logger.warn("cannot update a volume", { pod: state.uid, volume: entry.name, error: messageOf(error) });
        plan(state, entry, clock.now() + backoff.next(key));
        return;
      }
      await clock.sleep(UPDATE_SPACING, { signal: state.abort.signal }).catch(() => {});
    }
  };

  const plan = (state: PodState, entry: Entry, at: number | undefined) => {
    entry.timer?.clear();
    if (at === undefined || state.abort.signal.aborted) return;
    entry.timer = clock.setTimer(() => update(state, entry), Math.max(0, at - clock.now()));
  };

  const setUpEntry = async (state: PodState, entry: Entry): Promise<void> => {
    entry.stale = false;
    try {
      entry.mounted = await entry.source.setUp(state.pod);
    } catch (error) {
      entry.stale = true;
      throw error;
    }
    plan(state, entry, entry.source.renewAt?.());
  };

  const open = (pod: ReadonlyPod): PodState => {
    const uid = pod.metadata.uid ?? "";
    const known = pods.get(uid);
    if (known) {
      known.pod = pod;
      return known;
    }
    const directory = podDirectory(root, uid);
    const state: PodState = {
      uid,
      pod,
      directory,
      entries: (pod.spec.volumes ?? []).map((volume) => {
        const make = makerOf(volume);
        const entry: Entry = {
          name: volume.name,
          source: make({ pod, volume, directory, changed: () => update(state, entry) }, deps),
          mounted: undefined,
          stale: false,
          updating: undefined,
          timer: undefined,
        };
        return entry;
      }),
      tail: Promise.resolve(),
      failingSince: undefined,
      abort: new AbortController(),
    };
    pods.set(uid, state);
    return state;
  };

  const setUpMissing = async (state: PodState): Promise<VolumesOutcome> => {
    await mkdir(state.directory.path, { recursive: true, mode: 0o750 });
    const missing = state.entries.filter((entry) => !entry.mounted);
    const results = await Promise.allSettled(missing.map((entry) => setUpEntry(state, entry)));
    const faults = results.flatMap((result, i) =>
      result.status === "rejected" ? [{ volume: missing[i]?.name ?? "", error: result.reason as unknown }] : [],
    );
    if (faults.length === 0) {
      state.failingSince = undefined;
      backoff.reset(state.uid);
      return { state: "ready" };
    }
    state.failingSince ??= clock.now();
    const late = clock.now() - state.failingSince >= MOUNT_TIMEOUT;
    return { state: "waiting", events: eventsOf(faults, late), retryAfterMs: backoff.next(state.uid) };
  };

  const close = async (state: PodState): Promise<void> => {
    state.abort.abort();
    for (const entry of state.entries) {
      entry.source.dispose?.();
      entry.timer?.clear();
    }
    await state.tail;
    await Promise.all(state.entries.map((entry) => entry.updating));
  };

  const volumes = (uid: string): ReadonlyMap<string, MountedVolume> => {
    const entries = pods.get(uid)?.entries ?? [];
    return new Map(entries.flatMap((entry) => (entry.mounted ? [[entry.name, entry.mounted] as const] : [])));
  };

  return {
    prepare(pod) {
      const state = open(pod);
      if (state.abort.signal.aborted) return Promise.resolve({ state: "waiting", events: [], retryAfterMs: 100 });
      if (state.entries.every((entry) => entry.mounted)) return Promise.resolve({ state: "ready" });
      const outcome = state.tail.then(() => setUpMissing(state));
      state.tail = outcome.catch(() => {});
      return outcome;
    },
    refresh(pod) {
      const state = pods.get(pod.metadata.uid ?? "");
      if (!state) return;
      const before = state.pod.metadata;
      state.pod = pod;
      if (before.labels === pod.metadata.labels && before.annotations === pod.metadata.annotations) return;
      for (const entry of state.entries) if (entry.source.followsPod) update(state, entry);
    },
    async teardown(uid) {
      const state = pods.get(uid);
      if (state) await close(state);
      deps.tokens.forget(uid);
      await removeDirectory(podDirectory(root, uid).path, deps);
      if (pods.get(uid) === state) pods.delete(uid);
      backoff.reset(uid);
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
    async readFile(pod, volume, path) {
      const top = volumes(pod.metadata.uid ?? "").get(volume)?.hostPath;
      if (top === undefined) throw new Error(`cannot find the volume "${volume}" referenced by FileKeyRef`);
      return { path: join(top, path), text: await readBelow(top, path, MAX_ENV_FILE) };
    },
    async listPodUIDs() {
      try {
        return (await readdir(root, { withFileTypes: true })).flatMap((entry) =>
          entry.isDirectory() ? [entry.name] : [],
        );
      } catch (error) {
        if (hasCode(error, "ENOENT")) return [];
        throw error;
      }
    },
    onChange(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    volumes,
    async [Symbol.asyncDispose]() {
      await Promise.all([...pods.values()].map(close));
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

function makerOf(volume: DeepReadonly<Volume>): MakeVolume {
  if (volume.configMap) return configMapVolume;
  if (volume.secret) return secretVolume;
  if (volume.projected) return projectedVolume;
  if (volume.downwardAPI) return downwardVolume;
  if (volume.hostPath) return hostPath;
  if (volume.persistentVolumeClaim || volume.ephemeral) return persistentVolume;
  if (volume.image) return imageVolume;
  const type = Object.keys(volume).find((field) => field !== "name") ?? "emptyDir";
  return type === "emptyDir" ? emptyDir : unsupported(type);
}

const unsupported =
  (type: string): MakeVolume =>
  ({ volume }) => ({
    async setUp() {
      if (type === "csi") {
        throw new Error(
          `kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name ${volume.csi?.driver} not found in the list of registered CSI drivers`,
        );
      }
      throw new Error(`volumes of type ${type} are not supported on this node`);
    },
  });

function eventsOf(faults: readonly { volume: string; error: unknown }[], late: boolean): PodEvent[] {
  const event = (message: string): PodEvent => ({ type: "Warning", reason: "FailedMount", message });
  const events = faults.flatMap(({ volume, error }) => {
    if (error instanceof ClaimError) return [];
    const { step, volume: name } =
      error instanceof MountStepError ? error : { step: "MountVolume.SetUp failed", volume };
    return [event(`${step} for volume "${name}" : ${messageOf(error)}`)];
  });
  const claims = faults.filter(({ error }) => error instanceof ClaimError);
  if (claims.length > 0 || late) {
    const names = (list: typeof faults) =>
      list
        .map(({ volume }) => volume)
        .sort()
        .join(" ");
    const why =
      claims.length > 0 ? claims.map(({ error }) => messageOf(error)).join("; ") : "context deadline exceeded";
    events.push(
      event(
        `Unable to attach or mount volumes: unmounted volumes=[${names(faults)}], unattached volumes=[], ` +
          `failed to process volumes=[${names(claims)}]: ${why}`,
      ),
    );
  }
  return events;
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
