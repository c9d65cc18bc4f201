import type { Clock, Logger, Random } from "#base";
import { type Client, createRecorder, type Informers } from "#client";
import { isStatus, resources } from "#kinds";
import { createBinder } from "./binder.ts";
import { type ClusterState, createClusterState } from "./cluster-state.ts";
import { createEvaluator } from "./evaluator.ts";
import { createPodInfo, type PodInfo } from "./pod-info.ts";
import { createSchedulingQueue, type QueuedPod, type SchedulingQueue, type WakeEvent } from "./queue.ts";
import type { Node, Pod } from "./types.ts";
import { keyOf } from "./types.ts";
import { createVolumes } from "./volumes.ts";

export interface SchedulerDeps {
  client: Client;
  informers: Informers;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** Called after each attempt, for metrics. */
  onAttempt?(result: "scheduled" | "unschedulable" | "error", milliseconds: number): void;
}

export interface SchedulerOptions {
  /** Pods with this `spec.schedulerName` are ours. Default `default-scheduler`. */
  schedulerName?: string;
  /** Part of `reportingInstance` in events. Default: empty. */
  host?: string;
}

export interface Scheduler extends AsyncDisposable {
  /** Resolves when the caches are filled and scheduling has begun. */
  readonly started: Promise<void>;
  readonly pending: SchedulingQueue["counts"];
}

/** Pods decided on between two turns of the event loop, so that a burst does not starve everything else. */
const BATCH = 32;
/** Bindings under way at once. */
const MAX_BINDING = 128;

/** Assigns pods to nodes: decides on one at a time, writes bindings behind. */
export function startScheduler(deps: SchedulerDeps, options: SchedulerOptions = {}): Scheduler {
  const schedulerName = options.schedulerName ?? "default-scheduler";
  const stopping = new AbortController();
  const { informers } = deps;
  const sources = {
    pods: informers.for(resources.pods),
    nodes: informers.for(resources.nodes),
    namespaces: informers.for(resources.namespaces),
    claims: informers.for(resources.persistentVolumeClaims),
    volumes: informers.for(resources.persistentVolumes),
    classes: informers.for(resources.storageClasses),
    budgets: informers.for(resources.podDisruptionBudgets),
  };
  const recorder = createRecorder(deps, {
    component: schedulerName,
    instance: options.host ? `${schedulerName}-${options.host}` : schedulerName,
  });
  const state = createClusterState();
  const evaluator = createEvaluator({
    state,
    random: deps.random,
    volumes: createVolumes({ ...deps, ...sources }),
    namespaceLabels: (name) => sources.namespaces.get(undefined, name)?.metadata.labels,
    budgets: () => sources.budgets.list(),
  });
  const binder = createBinder({ ...deps, recorder, schedulerName });
  let scheduled = false;
  let running = false;
  let binding = 0;
  const queue = createSchedulingQueue(deps.clock, () => kick());

  function kick(): void {
    if (!running || scheduled || stopping.signal.aborted) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      run();
    });
  }
  function run(): void {
    for (let i = 0; i < BATCH && binding < MAX_BINDING; i++) {
      const entry = stopping.signal.aborted ? undefined : queue.pop();
      if (!entry) return;
      schedule(entry);
    }
    kick();
  }
  function schedule(entry: QueuedPod): void {
    const since = deps.clock.monotonic();
    const { info } = entry;
    const decision = evaluator.decide(info);
    if ("node" in decision) {
      state.assume(info, decision.node.name);
      binding++;
      void binder
        .bind(info, decision.node.node!, decision.volumes, stopping.signal)
        .then(
          () => deps.onAttempt?.("scheduled", deps.clock.monotonic() - since),
          (error: unknown) => bindingFailed(entry, error, since),
        )
        .finally(() => {
          binding--;
          kick();
        });
      return;
    }
    deps.onAttempt?.("unschedulable", deps.clock.monotonic() - since);
    queue.refused(entry, decision.waitsFor);
    void binder.refused(info, decision).catch((error: unknown) => writeFailed(info, error));
  }
  function bindingFailed(entry: QueuedPod, error: unknown, since: number): void {
    state.forget(entry.info.uid);
    queue.wake("pod-gone");
    if (stopping.signal.aborted || isStatus(error, "NotFound")) return;
    deps.onAttempt?.("error", deps.clock.monotonic() - since);
    deps.logger.warn("binding a pod failed; it is tried again", { pod: entry.info.key, error });
    if (sources.pods.get(entry.info.pod.metadata.namespace, entry.info.pod.metadata.name)?.spec.nodeName) return;
    queue.retry(entry);
    void binder.failed(entry.info, error).catch((failed: unknown) => writeFailed(entry.info, failed));
  }
  function writeFailed({ key }: PodInfo, error: unknown): void {
    if (isStatus(error, "NotFound", "Conflict") || stopping.signal.aborted) return;
    deps.logger.warn("writing why a pod is not scheduled failed", { pod: key, error });
  }

  const subscriptions = new DisposableStack();
  const started = (async () => {
    await Promise.all(Object.values(sources).map((informer) => informer.synced(stopping.signal)));
    subscriptions.use(sources.nodes.onChange(nodeHandler(state, queue)));
    subscriptions.use(sources.pods.onChange({ delete: (pod) => evaluator.forget(pod.metadata.uid ?? "") }));
    subscriptions.use(sources.pods.onChange(podHandler(state, queue, schedulerName)));
    const wake = (event: WakeEvent) => ({
      add: () => queue.wake(event),
      update: () => queue.wake(event),
      delete: () => queue.wake(event),
    });
    for (const informer of [sources.claims, sources.volumes, sources.classes]) {
      subscriptions.use((informer as typeof sources.claims).onChange(wake("volume")));
    }
    subscriptions.use(sources.namespaces.onChange({ update: () => queue.wake("namespace") }));
    running = true;
    kick();
  })();
  started.catch(() => {});

  return {
    started,
    get pending() {
      return queue.counts;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("the scheduler stops"));
      subscriptions.dispose();
      queue.stop();
      await recorder.flush();
    },
  };
}

function nodeHandler(
  state: ClusterState,
  queue: SchedulingQueue,
): {
  add(node: Node): void;
  update(node: Node, previous: Node): void;
  delete(node: Node): void;
} {
  return {
    add(node) {
      state.setNode(node);
      queue.wake("node");
    },
    update(node, previous) {
      const matters = schedulingView(node) !== schedulingView(previous);
      state.setNode(node);
      if (matters) queue.wake("node");
    },
    delete: (node) => state.removeNode(node.metadata.name),
  };
}

/** What of a node decides whether pods fit; heartbeats leave it as it is. */
const schedulingView = ({ metadata, spec, status }: Node): string =>
  JSON.stringify([metadata.labels, spec.taints, spec.unschedulable, status?.allocatable]);

const isOver = ({ status }: Pod): boolean => status?.phase === "Succeeded" || status?.phase === "Failed";

function podHandler(
  state: ClusterState,
  queue: SchedulingQueue,
  schedulerName: string,
): {
  add(pod: Pod): void;
  update(pod: Pod, previous: Pod): void;
  delete(pod: Pod): void;
} {
  const uidOf = (pod: Pod) => pod.metadata.uid ?? keyOf(pod);
  const placed = (pod: Pod) => {
    if (isOver(pod)) {
      state.removePod(uidOf(pod));
      queue.wake("pod-gone");
      return;
    }
    state.setPod(pod);
    queue.wake("pod-placed");
  };
  const waiting = (pod: Pod) => {
    const ours = (pod.spec.schedulerName ?? "default-scheduler") === schedulerName;
    if (!ours || isOver(pod)) return;
    if (pod.metadata.deletionTimestamp || pod.spec.schedulingGates?.length) return queue.remove(keyOf(pod));
    queue.add(createPodInfo(pod));
  };
  return {
    add: (pod) => (pod.spec.nodeName ? placed(pod) : waiting(pod)),
    update(pod, previous) {
      if (uidOf(pod) !== uidOf(previous)) {
        state.removePod(uidOf(previous));
        queue.remove(keyOf(previous));
      }
      if (!pod.spec.nodeName) {
        if (!state.assumed.has(uidOf(pod)) && waitingView(pod) !== waitingView(previous)) waiting(pod);
        return;
      }
      queue.remove(keyOf(pod));
      const same =
        previous.spec.nodeName && isOver(pod) === isOver(previous) && placedView(pod) === placedView(previous);
      if (!same) placed(pod);
    },
    delete(pod) {
      queue.remove(keyOf(pod));
      if (!pod.spec.nodeName && !state.assumed.has(uidOf(pod))) return;
      state.removePod(uidOf(pod));
      queue.wake("pod-gone");
    },
  };
}

/** A change of status alone (our own condition) does not bring a waiting pod back. */
const waitingView = ({ metadata, spec }: Pod): string =>
  JSON.stringify([
    metadata.uid,
    metadata.generation,
    metadata.labels,
    metadata.deletionTimestamp,
    spec.schedulingGates,
  ]);
const placedView = ({ metadata }: Pod): string =>
  JSON.stringify([metadata.uid, metadata.generation, metadata.labels, metadata.deletionTimestamp]);
