import type { ContainerStatus, Engine, SandboxStatus } from "#engine";
import { ANNOTATION, LABEL } from "../container-config/labels.ts";
import { nothingObserved, type ObservedContainer, type ObservedPod } from "./observe.ts";

/** What the engine has, by pod: kept current by events, checked now and then. */
export interface EngineView extends Disposable {
  observe(uid: string): ObservedPod;
  /** UIDs of all pods of which the engine has something. */
  uids(): readonly string[];
  /** Looks at everything again, for events that were lost. Calls `changed` for pods that differ. */
  rescan(): void;
}

interface PodParts {
  readonly sandboxes: Map<string, SandboxStatus>;
  readonly containers: Map<string, ObservedContainer>;
  sorted: ObservedPod | undefined;
}

export function createEngineView(engine: Engine, changed: (uid: string) => void): EngineView {
  const pods = new Map<string, PodParts>();
  const uidOf = new Map<string, string>();

  const partsOf = (uid: string): PodParts => {
    const known = pods.get(uid);
    if (known) return known;
    const fresh: PodParts = { sandboxes: new Map(), containers: new Map(), sorted: undefined };
    pods.set(uid, fresh);
    return fresh;
  };
  const touch = (uid: string, parts: PodParts) => {
    parts.sorted = undefined;
    if (parts.sandboxes.size === 0 && parts.containers.size === 0) pods.delete(uid);
    changed(uid);
  };
  const putContainer = (status: ContainerStatus) => {
    const run = observedOf(engine, status);
    if (!run) return;
    const parts = partsOf(run.uid);
    const before = parts.containers.get(status.id);
    if (before && same(before, run.container)) return;
    uidOf.set(status.id, run.uid);
    parts.containers.set(status.id, run.container);
    touch(run.uid, parts);
  };
  const dropContainer = (id: string) => {
    const uid = uidOf.get(id);
    const parts = uid === undefined ? undefined : pods.get(uid);
    uidOf.delete(id);
    if (uid !== undefined && parts?.containers.delete(id)) touch(uid, parts);
  };
  const putSandbox = (sandbox: SandboxStatus) => {
    const uid = sandbox.config.uid;
    const parts = partsOf(uid);
    const before = parts.sandboxes.get(sandbox.id);
    if (before === sandbox || (before?.state === sandbox.state && before.ips.join() === sandbox.ips.join())) return;
    uidOf.set(sandbox.id, uid);
    parts.sandboxes.set(sandbox.id, sandbox);
    touch(uid, parts);
  };
  const scanSandboxes = () => {
    const present = new Set<string>();
    for (const sandbox of engine.sandboxes()) {
      present.add(sandbox.id);
      putSandbox(sandbox);
    }
    for (const [uid, parts] of pods) {
      for (const id of parts.sandboxes.keys()) {
        if (present.has(id)) continue;
        parts.sandboxes.delete(id);
        uidOf.delete(id);
        touch(uid, parts);
      }
    }
  };
  const rescan = () => {
    const present = new Set<string>();
    for (const status of engine.containers()) {
      present.add(status.id);
      putContainer(status);
    }
    for (const parts of [...pods.values()]) {
      for (const id of [...parts.containers.keys()]) if (!present.has(id)) dropContainer(id);
    }
    scanSandboxes();
  };

  let stale = false;
  const subscription = engine.onEvent((event) => {
    if (event.containerId !== undefined) {
      const status = engine.container(event.containerId);
      if (status) putContainer(status);
      else dropContainer(event.containerId);
      return;
    }
    const uid = uidOf.get(event.sandboxId);
    stale = true;
    if (uid !== undefined) changed(uid);
    else settle();
  });
  /** Many sandbox events in a row cost one scan. */
  const settle = () => {
    if (!stale) return;
    stale = false;
    scanSandboxes();
  };
  rescan();

  return {
    observe(uid) {
      settle();
      const parts = pods.get(uid);
      if (!parts) return nothingObserved;
      parts.sorted ??= {
        sandboxes: [...parts.sandboxes.values()].sort(
          (a, b) => b.createdAt - a.createdAt || b.config.attempt - a.config.attempt,
        ),
        containers: [...parts.containers.values()].sort(
          (a, b) => b.createdAt - a.createdAt || b.restartCount - a.restartCount,
        ),
      };
      return parts.sorted;
    },
    uids: () => [...pods.keys()],
    rescan,
    [Symbol.dispose]() {
      subscription[Symbol.dispose]();
    },
  };
}

const same = (a: ObservedContainer, b: ObservedContainer): boolean =>
  a.state === b.state &&
  a.exitCode === b.exitCode &&
  a.startedAt === b.startedAt &&
  a.finishedAt === b.finishedAt &&
  a.resources === b.resources;

function observedOf(
  engine: Engine,
  status: ContainerStatus,
): { uid: string; container: ObservedContainer } | undefined {
  const { labels, annotations } = status.config;
  const uid = labels[LABEL.podUid];
  const name = labels[LABEL.containerName];
  if (!uid || !name) return undefined;
  return {
    uid,
    container: {
      id: status.id,
      sandboxId: status.sandboxId,
      name,
      state: status.state,
      createdAt: status.createdAt,
      ...(status.startedAt === undefined ? {} : { startedAt: status.startedAt }),
      ...(status.finishedAt === undefined ? {} : { finishedAt: status.finishedAt }),
      exitCode: status.exitCode ?? 0,
      reason: status.reason ?? "",
      message: status.message ?? "",
      restartCount: Number(annotations[ANNOTATION.restartCount] ?? status.config.attempt) || 0,
      hash: annotations[ANNOTATION.hash] ?? "",
      image: status.config.imageRef,
      imageID: engine.images.get(status.imageId)?.digests[0] ?? status.imageId,
      ...(status.user ? { user: status.user } : {}),
      resources: status.resources,
    },
  };
}
