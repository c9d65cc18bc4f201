import { mkdir } from "node:fs/promises";
import { type Clock, type DeepReadonly, deepEqual, type Logger, messageOf, type Timer } from "#base";
import type { Client, Recorder } from "#client";
import type { Engine } from "#engine";
import {
  isStatus,
  type Lease,
  type Node,
  type NodeCondition,
  type NodeStatus,
  type ObjectReference,
  resources,
} from "#kinds";
import { wholeValue } from "../container-config/quantity.ts";
import { timestamp } from "../status/container-statuses.ts";
import { type HostFacts, readHostFacts } from "./host-facts.ts";

export interface NodeOptions {
  readonly nodeName: string;
  /** Addresses of the node, first the main one. */
  readonly nodeIPs: readonly string[];
  /** Written to `spec.podCIDR` when the node is registered. */
  readonly podCIDR?: string;
  /** Directory of everything that the kubelet keeps. */
  readonly dataDir: string;
  /** Overrides of `cpu`, `memory`, `ephemeral-storage`, `pods` (default 110); further resources. */
  readonly capacity?: Readonly<Record<string, string>>;
  /** More labels of the node. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly { key: string; value?: string; effect: string }[];
  /** `status.nodeInfo.kubeletVersion`. Default `v1.36.3`. */
  readonly version?: string;
  /** The port of `daemonEndpoints`; absent: none is told. */
  readonly port?: number;
}

/** The node's object: registered, reported, and kept alive by its lease. */
export interface NodeAgent {
  start(): Promise<void>;
  stop(): Promise<void>;
  current(): DeepReadonly<Node> | undefined;
}

const LEASE_RENEWAL = 10_000;
const LEASE_SECONDS = 40;
/** How often the status is looked at; written when it changed, or when REPORT has passed. */
const CHECK = 10_000;
const REPORT = 300_000;
const FIRST_RETRY = 50;
const MAX_RETRY = 5_000;
const MAX_IMAGES = 50;
/** What is kept free for evictions: memory 100 MiB, ten percent of the disk. */
const MEMORY_RESERVE = 100 * 2 ** 20;

interface Deps {
  readonly client: Client;
  readonly clock: Clock;
  readonly engine: Engine;
  readonly logger: Logger;
  readonly recorder: Recorder;
}

export function createNodeAgent(deps: Deps, options: NodeOptions): NodeAgent {
  const { client, clock, logger } = deps;
  const timers = new Set<Timer>();
  let stopped = false;
  let node: DeepReadonly<Node> | undefined;
  let facts: HostFacts | undefined;
  let lease: DeepReadonly<Lease> | undefined;
  let reportedAt = 0;

  const every = (ms: number, work: () => Promise<void>) => {
    const timer = clock.setTimer(() => {
      timers.delete(timer);
      if (stopped) return;
      work()
        .catch((error: unknown) =>
          logger.warn("reporting the node failed; it is tried again", { error: messageOf(error) }),
        )
        .finally(() => {
          if (!stopped) every(ms, work);
        });
    }, ms);
    timers.add(timer);
  };

  const event = (reason: string, message: string) => {
    const reference: ObjectReference = {
      kind: "Node",
      name: options.nodeName,
      uid: options.nodeName,
      apiVersion: "v1",
    };
    deps.recorder.event(reference, "Normal", reason, message);
  };

  async function register(): Promise<void> {
    const wanted = nodeObject(options, facts as HostFacts);
    try {
      node = await client.get(resources.nodes, options.nodeName);
      const labels = wanted.metadata?.labels ?? {};
      const have = node.metadata?.labels ?? {};
      if (Object.entries(labels).some(([key, value]) => have[key] !== value)) {
        node = await client.patch(resources.nodes, options.nodeName, {
          type: "strategic",
          body: { metadata: { labels } },
        });
      }
    } catch (error) {
      if (!isStatus(error, "NotFound")) throw error;
      node = await client.create(resources.nodes, wanted);
    }
  }

  async function report(force: boolean): Promise<void> {
    const status = await nodeStatus(deps, options, facts as HostFacts, node?.status, clock.now());
    const due = force || clock.now() - reportedAt >= REPORT;
    if (!due && deepEqual(withoutHeartbeat(status), withoutHeartbeat(node?.status ?? {}))) return;
    const before = new Map((node?.status?.conditions ?? []).map((condition) => [condition.type, condition.status]));
    const body = { status: { ...status, conditions: status.conditions, images: status.images } };
    node = await client.patch(
      resources.nodes,
      options.nodeName,
      { type: "strategic", body },
      { subresource: "status" },
    );
    reportedAt = clock.now();
    announce(before, status.conditions ?? []);
  }

  /** Somebody deleted the node: it is made anew, with all that is known of it. */
  async function registerAgain(error: unknown): Promise<void> {
    if (!isStatus(error, "NotFound")) throw error;
    await register();
    await report(true);
  }

  function announce(before: ReadonlyMap<string, string>, conditions: readonly NodeCondition[]): void {
    for (const { type, status } of conditions) {
      if (before.get(type) === status) continue;
      const name = EVENT_OF[type]?.[status === "True" ? 0 : 1];
      if (name) event(name, `Node ${options.nodeName} status is now: ${name}`);
    }
  }

  async function renew(): Promise<void> {
    const renewTime = `${new Date(clock.now()).toISOString().slice(0, -1)}000Z`;
    const spec = { holderIdentity: options.nodeName, leaseDurationSeconds: LEASE_SECONDS, renewTime };
    try {
      lease ??= await client.get(resources.leases, options.nodeName, { namespace: LEASES });
      lease = await client.update(resources.leases, { ...lease, spec: { ...lease.spec, ...spec } } as Lease);
    } catch (error) {
      lease = undefined;
      if (!isStatus(error, "NotFound")) throw error;
      lease = await client.create(resources.leases, newLease(options.nodeName, node, spec));
    }
  }

  /** At the start the API may not be there yet. */
  async function untilDone(work: () => Promise<void>): Promise<void> {
    for (let delay = FIRST_RETRY; !stopped; delay = Math.min(MAX_RETRY, delay * 2)) {
      try {
        return await work();
      } catch (error) {
        logger.warn("registering the node failed; it is tried again", { delay, error: messageOf(error) });
        await clock.sleep(delay);
      }
    }
  }

  return {
    async start() {
      await mkdir(options.dataDir, { recursive: true });
      facts = await readHostFacts(options.dataDir);
      event("Starting", "Starting kubelet.");
      await untilDone(register);
      await untilDone(() => report(true));
      event("NodeAllocatableEnforced", "Updated Node Allocatable limit across pods");
      renew().catch((error: unknown) => logger.debug("the lease is not there yet", { error: messageOf(error) }));
      every(LEASE_RENEWAL, renew);
      every(CHECK, () => report(false).catch(registerAgain));
    },
    async stop() {
      stopped = true;
      for (const timer of timers) timer.clear();
    },
    current: () => node,
  };
}

const LEASES = "kube-node-lease";

const EVENT_OF: Readonly<Record<string, readonly [string, string]>> = {
  Ready: ["NodeReady", "NodeNotReady"],
  MemoryPressure: ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"],
  DiskPressure: ["NodeHasDiskPressure", "NodeHasNoDiskPressure"],
  PIDPressure: ["NodeHasInsufficientPID", "NodeHasSufficientPID"],
};

function newLease(nodeName: string, node: DeepReadonly<Node> | undefined, spec: NonNullable<Lease["spec"]>): Lease {
  const owner = { apiVersion: "v1", kind: "Node", name: nodeName, uid: node?.metadata?.uid ?? "" };
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: nodeName, namespace: LEASES, ...(owner.uid ? { ownerReferences: [owner] } : {}) },
    spec,
  };
}

function nodeObject(options: NodeOptions, facts: HostFacts): Node {
  const { architecture, operatingSystem } = facts.info;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: options.nodeName,
      annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
      labels: {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": operatingSystem,
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": options.nodeName,
        "kubernetes.io/os": operatingSystem,
        ...options.labels,
      },
    },
    spec: {
      ...(options.podCIDR ? { podCIDR: options.podCIDR, podCIDRs: [options.podCIDR] } : {}),
      ...(options.taints ? { taints: options.taints.map((taint) => ({ ...taint })) } : {}),
    },
  };
}

async function nodeStatus(
  { engine }: Deps,
  options: NodeOptions,
  facts: HostFacts,
  previous: DeepReadonly<NodeStatus> | undefined,
  now: number,
): Promise<NodeStatus> {
  const capacity: Record<string, string> = {
    ...facts.capacity,
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    pods: "110",
    ...options.capacity,
  };
  const usage = await engine.images.usage();
  const diskPressure = usage.capacityBytes > 0 && usage.availableBytes < usage.capacityBytes * 0.1;
  return {
    addresses: [
      ...options.nodeIPs.map((address) => ({ type: "InternalIP", address })),
      { type: "Hostname", address: options.nodeName },
    ],
    capacity,
    allocatable: allocatableOf(capacity),
    conditions: conditionsOf(diskPressure, previous, now),
    ...(options.port === undefined ? {} : { daemonEndpoints: { kubeletEndpoint: { Port: options.port } } }),
    images: imagesOf(engine),
    nodeInfo: {
      ...facts.info,
      containerRuntimeVersion: `${engine.info.scheme}://${engine.info.version}`,
      kubeletVersion: options.version ?? "v1.36.3",
      kubeProxyVersion: "",
    },
    runtimeHandlers: ["", ...engine.info.runtimes].map((name) => ({
      name,
      features: { recursiveReadOnlyMounts: true, userNamespaces: false },
    })),
    features: { supplementalGroupsPolicy: true },
    declaredFeatures: [
      "ExtendWebSocketsToKubelet",
      "InPlacePodLevelResourcesVerticalScaling",
      "InPlacePodVerticalScalingInitContainers",
      "RestartAllContainersOnContainerExits",
    ],
  } as NodeStatus;
}

function allocatableOf(capacity: Readonly<Record<string, string>>): Record<string, string> {
  const memory = Math.max(0, wholeValue(capacity.memory) - MEMORY_RESERVE);
  const disk = Math.floor(wholeValue(capacity["ephemeral-storage"]) * 0.9);
  return {
    ...capacity,
    memory: memory % 1024 === 0 ? `${memory / 1024}Ki` : String(memory),
    "ephemeral-storage": String(disk),
  };
}

function conditionsOf(
  diskPressure: boolean,
  previous: DeepReadonly<NodeStatus> | undefined,
  now: number,
): NodeCondition[] {
  const condition = (type: string, status: boolean, reason: string, message: string): NodeCondition => {
    const before = previous?.conditions?.find((item) => item.type === type);
    const state = status ? "True" : "False";
    return {
      type,
      status: state,
      reason,
      message,
      lastHeartbeatTime: timestamp(now),
      lastTransitionTime: (before?.status === state ? before.lastTransitionTime : undefined) ?? timestamp(now),
    };
  };
  return [
    condition("MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    diskPressure
      ? condition("DiskPressure", true, "KubeletHasDiskPressure", "kubelet has disk pressure")
      : condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    condition("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    condition("Ready", true, "KubeletReady", "kubelet is posting ready status"),
  ];
}

/** The largest images, as the scheduler's image locality wants them. */
function imagesOf(engine: Engine): NonNullable<NodeStatus["images"]> {
  return [...engine.images.list()]
    .sort((a, b) => b.size - a.size)
    .slice(0, MAX_IMAGES)
    .map((image) => ({ names: [...image.digests, ...image.tags], sizeBytes: image.size }));
}

function withoutHeartbeat(status: DeepReadonly<NodeStatus>): unknown {
  const { conditions = [], volumesAttached: _a, volumesInUse: _b, config: _c, phase: _d, ...rest } = status;
  const bare = conditions.map(({ type, status: state, reason, message }) => ({ type, state, reason, message }));
  return { ...rest, conditions: bare };
}
