import { mkdir } from "node:fs/promises";
import { type Backoff, deepEqual, messageOf, type Timer } from "#base";
import { isStatus } from "#kinds";
import type { ReadonlyPod, VolumesOutcome } from "../ports.ts";
import { mountEvents, type VolumeFault } from "./mount-events.ts";
import type { PodDirectory } from "./pod-directory.ts";
import type { MountedVolume } from "./port.ts";
import type { VolumeDeps, VolumeSource } from "./sources.ts";
import { makerOf } from "./volume-types.ts";

/** The volumes of one pod: set up once, then kept up to date until they are closed. */
export interface PodVolumes {
  /** Those that are set up, by name. */
  mounted(): ReadonlyMap<string, MountedVolume>;
  prepare(pod: ReadonlyPod): Promise<VolumesOutcome>;
  refresh(pod: ReadonlyPod): void;
  /** Ends all updates; resolves when none runs any more. */
  close(): Promise<void>;
}

/** One volume. */
interface Entry {
  readonly name: string;
  readonly source: VolumeSource;
  mounted: MountedVolume | undefined;
  /** Something changed since `setUp` last began. */
  stale: boolean;
  updating: Promise<void> | undefined;
  timer: Timer | undefined;
}

/** Updates of one volume come no faster than this, milliseconds. */
const UPDATE_SPACING = 100;
/** After this long a pod's events also name all volumes that are missing, milliseconds. */
const MOUNT_TIMEOUT = 123_000;

export function createPodVolumes(
  first: ReadonlyPod,
  deps: VolumeDeps & {
    readonly directory: PodDirectory;
    readonly backoff: Backoff;
    /** A volume that could not be set up may be had now. */
    readonly changed: () => void;
  },
): PodVolumes {
  const { clock, backoff, directory } = deps;
  const uid = first.metadata.uid ?? "";
  const abort = new AbortController();
  let pod = first;
  /** Set-up steps, one after another. */
  let tail: Promise<unknown> = Promise.resolve();
  let failingSince: number | undefined;

  const update = (entry: Entry): void => {
    entry.stale = true;
    if (abort.signal.aborted || entry.updating) return;
    if (entry.mounted) {
      entry.updating = keepUp(entry).finally(() => {
        entry.updating = undefined;
      });
    } else deps.changed();
  };
  const keepUp = async (entry: Entry): Promise<void> => {
    const key = `${uid}/${entry.name}`;
    while (entry.stale && !abort.signal.aborted) {
      try {
        await setUp(entry);
        backoff.reset(key);
      } catch (error) {
        // What is mounted stays as it was: a running container must not lose its files.
        const level = isStatus(error, "NotFound") ? "debug" : "warn";
        deps.logger[level]("cannot update a volume", { pod: uid, volume: entry.name, error: messageOf(error) });
        plan(entry, clock.now() + backoff.next(key));
        return;
      }
      await clock.sleep(UPDATE_SPACING, { signal: abort.signal }).catch(() => {});
    }
  };
  const plan = (entry: Entry, at: number | undefined): void => {
    entry.timer?.clear();
    if (at === undefined || abort.signal.aborted) return;
    entry.timer = clock.setTimer(() => update(entry), Math.max(0, at - clock.now()));
  };
  const setUp = async (entry: Entry): Promise<void> => {
    entry.stale = false;
    try {
      entry.mounted = await entry.source.setUp(pod);
    } catch (error) {
      entry.stale = true;
      throw error;
    }
    plan(entry, entry.source.renewAt?.());
  };

  const entries = new Map<string, Entry>();
  /** Begins with the volumes that a container uses, also one that was added later. */
  const follow = (): void => {
    const used = usedVolumes(pod);
    for (const volume of pod.spec.volumes ?? []) {
      if (!used.has(volume.name) || entries.has(volume.name)) continue;
      const context = { pod, volume, directory, changed: () => update(entry) };
      const entry: Entry = {
        name: volume.name,
        source: makerOf(volume)(context, deps),
        mounted: undefined,
        stale: false,
        updating: undefined,
        timer: undefined,
      };
      entries.set(volume.name, entry);
    }
  };

  const setUpMissing = async (): Promise<VolumesOutcome> => {
    await mkdir(directory.path, { recursive: true, mode: 0o750 });
    const missing = [...entries.values()].filter((entry) => !entry.mounted);
    const faults: VolumeFault[] = [];
    await Promise.all(
      missing.map((entry) => setUp(entry).catch((error: unknown) => void faults.push({ volume: entry.name, error }))),
    );
    // What changed while it was being set up.
    for (const entry of missing) if (entry.mounted && entry.stale) update(entry);
    if (faults.length === 0) {
      failingSince = undefined;
      backoff.reset(uid);
      return { state: "ready" };
    }
    failingSince ??= clock.now();
    const late = clock.now() - failingSince >= MOUNT_TIMEOUT;
    const inOrder = missing.flatMap(({ name }) => faults.filter(({ volume }) => volume === name));
    return { state: "waiting", events: mountEvents(inOrder, late), retryAfterMs: backoff.next(uid) };
  };

  return {
    mounted: () => new Map([...entries].flatMap(([name, { mounted }]) => (mounted ? [[name, mounted] as const] : []))),
    async prepare(current) {
      pod = current;
      if (abort.signal.aborted) return { state: "waiting", events: [], retryAfterMs: 100 };
      follow();
      if ([...entries.values()].every((entry) => entry.mounted)) return { state: "ready" };
      const outcome = tail.then(setUpMissing);
      tail = outcome.catch(() => {});
      return outcome;
    },
    refresh(current) {
      const { labels, annotations } = pod.metadata;
      pod = current;
      if (deepEqual([labels, annotations], [current.metadata.labels, current.metadata.annotations])) return;
      for (const entry of entries.values()) if (entry.source.followsPod) update(entry);
    },
    async close() {
      abort.abort();
      for (const { name, source, timer } of entries.values()) {
        source.dispose?.();
        timer?.clear();
        backoff.reset(`${uid}/${name}`);
      }
      backoff.reset(uid);
      await tail;
      await Promise.all([...entries.values()].map((entry) => entry.updating));
    },
  };
}

/** Names of the volumes that any container mounts; the others are not set up, as in the kubelet. */
function usedVolumes(pod: ReadonlyPod): ReadonlySet<string> {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const all = [...initContainers, ...containers, ...ephemeralContainers];
  return new Set(
    all.flatMap(({ volumeMounts = [], volumeDevices = [] }) =>
      [...volumeMounts, ...volumeDevices].map(({ name }) => name),
    ),
  );
}
