import { type Clock, type DeepReadonly, type Logger, messageOf, type Random, type Timer } from "#base";
import { type Client, createRecorder, type Informer, type Informers, type Recorder } from "#client";
import type { Engine } from "#engine";
import { isStatus, type Node, type Pod, resources } from "#kinds";
import { createImageManager } from "./images/image-manager.ts";
import { createAdmission, createFit } from "./node/admission.ts";
import { createNodeAgent, type NodeOptions } from "./node/node-agent.ts";
import { createEngineView } from "./pods/engine-view.ts";
import { newest } from "./pods/observe.ts";
import { createRestartBackoff } from "./pods/restart-backoff.ts";
import { createPodWorker, type PodWorker } from "./pods/worker.ts";
import { recordEvent, type WorkerDeps } from "./pods/worker-deps.ts";
import type { ConfigBuilder, PodRuntime, ReadonlyPod, VolumeManager } from "./ports.ts";
import { type Dial, dialTcp } from "./probes/dial.ts";
import { createProbeManager } from "./probes/probe-manager.ts";
import { createStatusWriter } from "./status/status-writer.ts";

export interface KubeletDeps {
  readonly client: Client;
  readonly informers: Informers;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly volumes: VolumeManager;
  readonly configs: ConfigBuilder;
  /** How probes and HTTP hooks reach pods. Default: the network. */
  readonly dial?: Dial;
  readonly recorder?: Recorder;
}

export interface KubeletOptions extends NodeOptions {}

/** The agent of one node: runs the pods that are bound to it, and tells the API how they and the node are. */
export interface Kubelet {
  /** Registers the node and begins. Resolves when the pods of the node are known and being worked on. */
  start(): Promise<void>;
  /** Ends the agent; containers go on. */
  stop(): Promise<void>;
  /** What streaming, logs and exec need to know of pods. */
  readonly runtime: PodRuntime;
  /** This node's object as it is now. */
  node(): DeepReadonly<Node> | undefined;
}

const RESYNC = 1000;

export function createKubelet(deps: KubeletDeps, options: KubeletOptions): Kubelet {
  const { client, clock, engine, logger } = deps;
  const workers = new Map<string, PodWorker>();
  const recorder = deps.recorder ?? createRecorder(deps, { component: "kubelet", host: options.nodeName });
  const pods: Informer<Pod> = deps.informers.for(resources.pods, {
    fieldSelector: `spec.nodeName=${options.nodeName}`,
  });
  const wake = (uid: string) => {
    const worker = workers.get(uid);
    if (worker) worker.wake();
    else if (started) follow(uid, undefined);
  };
  let started = false;
  const view = createEngineView(engine, wake);
  const dial = deps.dial ?? dialTcp;
  const hostIPs = options.nodeIPs;
  const writer = createStatusWriter(deps, { current: (uid) => workers.get(uid)?.pod() });
  const probes = createProbeManager({
    engine,
    clock,
    random: deps.random,
    dial,
    addressOf: (pod) => (pod.spec?.hostNetwork ? hostIPs[0] : view.observe(uidOf(pod)).sandboxes[0]?.ips[0]) ?? "",
    event: (pod, container, type, reason, message) =>
      recordEvent({ recorder }, pod, { type, reason, message }, container),
    changed: wake,
  });
  const node = createNodeAgent({ client, clock, engine, logger, recorder }, options);
  const capacity = {
    node: () => node.current(),
    pods: () => [...workers.values()].flatMap((worker) => worker.given() ?? []),
  };
  const admission = createAdmission({
    ...capacity,
    refusal: (pod) => deps.configs.refusal(pod),
  });
  const workerDeps: WorkerDeps = {
    client,
    engine,
    view,
    clock,
    random: deps.random,
    logger,
    recorder,
    writer,
    probes,
    images: createImageManager({ engine, clock }),
    backoff: createRestartBackoff(clock),
    volumes: deps.volumes,
    configs: deps.configs,
    dial,
    hostIPs,
    admit: async (pod) => admission(pod),
    fits: createFit(capacity),
    runtimeHandler: (pod) => runtimeHandler(client, pod),
  };

  function follow(uid: string, pod: ReadonlyPod | undefined): void {
    const known = workers.get(uid);
    const worker = known ?? createPodWorker(workerDeps, uid, { finished: () => void workers.delete(uid) });
    if (!known) workers.set(uid, worker);
    worker.setPod(pod);
  }

  const subscriptions = new DisposableStack();
  let resync: Timer | undefined;
  const tick = () => {
    view.rescan();
    resync = clock.setTimer(tick, RESYNC);
  };

  return {
    async start() {
      await node.start();
      await pods.synced();
      subscriptions.use(
        pods.onChange({
          add: (pod) => follow(uidOf(pod), pod),
          update: (pod, previous) => {
            // The same name can be another pod.
            if (uidOf(previous) !== uidOf(pod)) workers.get(uidOf(previous))?.setPod(undefined);
            follow(uidOf(pod), pod);
          },
          delete: (pod) => workers.get(uidOf(pod))?.setPod(undefined),
        }),
      );
      subscriptions.use(deps.volumes.onChange((uid) => workers.get(uid)?.retry()));
      started = true;
      // What the engine or the disk still has of pods that are gone from the API.
      const left = new Set([...view.uids(), ...(await deps.volumes.listPodUIDs())]);
      for (const uid of left) if (!workers.has(uid)) follow(uid, undefined);
      tick();
    },
    async stop() {
      started = false;
      resync?.clear();
      subscriptions.dispose();
      for (const worker of workers.values()) worker.stop();
      probes.stop();
      view[Symbol.dispose]();
      await writer.flush();
      writer.stop();
      await node.stop();
      await recorder.flush();
    },
    runtime: {
      pod: (ref) => {
        const pod = workers.get(ref.uid)?.pod();
        return pod ?? [...workers.values()].map((w) => w.pod()).find((p) => isCalled(p, ref));
      },
      pods: () => [...workers.values()].flatMap((worker) => worker.pod() ?? []),
      sandbox: (uid) => view.observe(uid).sandboxes[0],
      container(uid, name, { previous = false } = {}) {
        const observed = view.observe(uid);
        const runs = observed.containers.filter((run) => run.name === name);
        const run = previous ? runs[1] : newest(observed, name);
        return run ? engine.container(run.id) : undefined;
      },
    },
    node: () => node.current(),
  };
}

const uidOf = (pod: ReadonlyPod): string => pod.metadata?.uid ?? "";

const isCalled = (pod: ReadonlyPod | undefined, ref: { namespace: string; name: string; uid: string }): boolean =>
  ref.uid === "" && pod?.metadata?.name === ref.name && pod.metadata.namespace === ref.namespace;

/** @throws Error in the words that `FailedCreatePodSandBox` shows */
async function runtimeHandler(client: Client, pod: ReadonlyPod): Promise<string | undefined> {
  const name = pod.spec?.runtimeClassName;
  if (!name) return undefined;
  try {
    return (await client.get(resources.runtimeClasses, name)).handler;
  } catch (error) {
    const why = isStatus(error, "NotFound") ? `RuntimeClass "${name}" not found` : messageOf(error);
    throw new Error(`failed to get sandbox runtime: ${why}`, { cause: error });
  }
}
