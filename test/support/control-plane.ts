import { generateKeyPairSync } from "node:crypto";
import { createSeededRandom, type Logger, silentLogger, systemClock } from "#base";
import { type Client, createRecorder, type Informers } from "#client";
import { type ControllersOptions, startControllers } from "#controllers";
import type { DeepReadonly } from "#base";
import { isStatus, type Node, type Pod, type PodStatus, resources } from "#kinds";
import { type Scheduler, startScheduler } from "#scheduler";
import { componentUser, serviceAccountUser } from "#apiserver";
import { reconcilePolicy } from "../../src/cluster/bootstrap-policy.ts";
import { createControlPlane } from "../../src/cluster/control-plane.ts";
import { createMemoryStore } from "../../src/store/memory/mod.ts";

const USER = { username: "system:apiserver", groups: ["system:authenticated", "system:masters"] };

export interface TestPlane extends AsyncDisposable {
  readonly client: Client;
  readonly informers: Informers;
  readonly scheduler: Scheduler;
  /** Resources of requests that the API server handled, by the name of the client. */
  until<T>(what: string, check: () => Promise<T> | T, timeoutMs?: number): Promise<NonNullable<T>>;
  /** `reason: message (xcount)` of the events about an object, or about all. */
  events(name?: string): Promise<string[]>;
}

export interface TestPlaneOptions extends ControllersOptions {
  nodes?: readonly Node[];
  /** What becomes of a pod on its node; default: it runs and is ready. Undefined: nothing. */
  fate?(pod: DeepReadonly<Pod>): PodStatus | undefined;
  logger?: Logger;
}

/** A node that pods can go to at once: a new one has a taint until a controller, which not every test runs, finds it ready. */
export async function addNode(client: Client, node: Node): Promise<void> {
  await client.create(resources.nodes, node);
  const body = { spec: { taints: node.spec.taints ?? null } };
  const made = await client.patch(resources.nodes, node.metadata.name, { type: "merge", body });
  const { status } = node;
  await client.update(resources.nodes, { ...(made as Node), ...(status ? { status } : {}) }, { subresource: "status" });
}

/** The real API server on a memory store with scheduler and controllers, and nodes that only report. */
export async function startPlane(options: TestPlaneOptions = {}): Promise<TestPlane> {
  const deps = {
    clock: systemClock,
    random: createSeededRandom(Math.floor(performance.now())),
    logger: options.logger ?? silentLogger,
  };
  const stack = new AsyncDisposableStack();
  const store = stack.use(createMemoryStore());
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const plane = createControlPlane(
    { store, ...deps },
    {
      serviceCIDR: "10.96.0.0/16",
      serviceAccountKey: privateKey,
      serverAddress: () => "127.0.0.1:6443",
      health: {},
      connector: () => undefined,
    },
  );
  const client = plane.clientAs(USER, "kube-controller-manager");
  const informers = stack.use(plane.informersOf(client));
  for (const name of ["default", "kube-system", "kube-public"]) {
    await client.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name }, spec: {} });
  }
  await reconcilePolicy(client, plane.reader);
  for (const node of options.nodes ?? [nodeNamed("n1")]) await addNode(client, node);
  fakeNodes(client, informers, options.fate);
  const acting = (acts: Client) => ({
    client: acts,
    recorder: (component: string) => createRecorder({ client: acts, clock: deps.clock }, { component }),
  });
  const schedulerClient = plane.clientAs(componentUser("kube-scheduler"), "kube-scheduler");
  const scheduler = stack.use(startScheduler({ client: schedulerClient, informers, ...deps }));
  // each as its own ServiceAccount, so that a role which lacks what its controller does is noticed
  const identity = (name: string) => acting(plane.clientAs(serviceAccountUser("kube-system", name), name));
  const controllers = stack.use(
    startControllers({ ...acting(client), informers, ...deps }, { rootCA: "PEM", identity, ...options }),
  );
  await Promise.all([scheduler.started, controllers.started]);
  return {
    client,
    informers,
    scheduler,
    async until(what, check, timeoutMs = 10_000) {
      const end = performance.now() + timeoutMs;
      for (;;) {
        const value = await check();
        if (value) return value;
        if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
        await deps.clock.sleep(10);
      }
    },
    async events(name) {
      const { items } = await client.list(resources.events);
      return items
        .filter(({ involvedObject }) => !name || involvedObject.name === name)
        .map(({ reason, message }) => `${reason}: ${message}`);
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export function nodeNamed(
  name: string,
  more: { pods?: string; cpu?: string; labels?: Record<string, string> } = {},
): Node {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name, ...more.labels } },
    spec: {},
    status: {
      capacity: { cpu: more.cpu ?? "16", memory: "64Gi", pods: more.pods ?? "110" },
      allocatable: { cpu: more.cpu ?? "16", memory: "64Gi", pods: more.pods ?? "110" },
      conditions: [{ type: "Ready", status: "True" }],
    },
  };
}

/** `2026-01-01T00:00:00Z` */
const stamp = (): string => `${new Date().toISOString().slice(0, 19)}Z`;

function fakeNodes(client: Client, informers: Informers, fate?: TestPlaneOptions["fate"]): void {
  const seen = new Set<string>();
  const ignore = (error: unknown) => {
    if (!isStatus(error, "NotFound", "Conflict") && !(error instanceof Error && error.message.includes("stop")))
      throw error;
  };
  const look = (pod: DeepReadonly<Pod>) => {
    const { namespace, name, uid = "", deletionTimestamp } = pod.metadata;
    if (!pod.spec.nodeName) return;
    if (deletionTimestamp)
      return void client.delete(resources.pods, name, { namespace, gracePeriodSeconds: 0 }).catch(ignore);
    if (seen.has(uid)) return;
    seen.add(uid);
    const status = fate ? fate(pod) : running(seen.size);
    if (!status) return;
    void client
      .patch(resources.pods, name, { type: "strategic", body: { status } }, { namespace, subresource: "status" })
      .catch(ignore);
  };
  informers.for(resources.pods).onChange({ add: look, update: look });
}

/** The status of a pod that runs and is ready. */
export function running(number: number): PodStatus {
  const lastTransitionTime = stamp();
  const ip = `10.244.${number >> 8}.${number & 255}`;
  return {
    phase: "Running",
    startTime: lastTransitionTime,
    podIP: ip,
    podIPs: [{ ip }],
    conditions: ["Initialized", "Ready", "ContainersReady"].map((type) => ({
      type,
      status: "True",
      lastTransitionTime,
    })),
  };
}
