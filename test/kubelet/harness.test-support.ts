import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ADMIN, createApiServer, createMastersAuthorizer, createReader, versionInfo } from "../../src/apiserver/mod.ts";
import {
  createFakeClock,
  createLogger,
  createSeededRandom,
  type DeepReadonly,
  type FakeClock,
  silentLogger,
} from "../../src/base/mod.ts";
import { type Client, createClient, createInformers, type Informers } from "../../src/client/mod.ts";
import { createFakeEngine, type FakeEngine, type FakeEngineOptions } from "../../src/engine/fake/mod.ts";
import {
  type ContainerStatus,
  createScheme,
  type EphemeralContainer,
  type Event,
  isStatus,
  type Namespace,
  type Pod,
  type PodCondition,
  type PodSpec,
  resources,
} from "../../src/kinds/mod.ts";
import { createKubelet, type Kubelet } from "../../src/kubelet/kubelet.ts";
import { createMemoryStore } from "../../src/store/memory/mod.ts";
import { type TestVolumes, testConfigs, testVolumes } from "./doubles.test-support.ts";

/** A whole node on the fake engine, against the real API server in this process, on a clock that the test moves. */
export interface Harness extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly client: Client;
  readonly engine: FakeEngine;
  readonly volumes: TestVolumes;
  readonly configErrors: Map<string, string>;
  kubelet: Kubelet;
  /** Creates a pod that is bound to the node; containers get an image and policy unless they have one. */
  run(
    name: string,
    spec: Partial<PodSpec> & { containers: Partial<PodSpec["containers"][number]>[] },
    metadata?: object,
  ): Promise<DeepReadonly<Pod>>;
  get(name: string): Promise<DeepReadonly<Pod> | undefined>;
  /** Waits, without moving the clock (what is due now happens), until the pod is as wanted. */
  until(name: string, wanted: (pod: DeepReadonly<Pod>) => unknown): Promise<DeepReadonly<Pod>>;
  gone(name: string): Promise<void>;
  /** Moves the clock in steps until the pod is as wanted; gives how long it took, milliseconds. */
  advanceUntil(
    name: string,
    wanted: (pod: DeepReadonly<Pod>) => unknown,
    options?: { step?: number; most?: number },
  ): Promise<number>;
  /** Moves the clock, letting everything follow at each step. */
  pass(ms: number, step?: number): Promise<void>;
  /** `reason message` of the events of a pod, in order; repeated ones with their count. */
  events(name: string): Promise<string[]>;
  delete(name: string, gracePeriodSeconds?: number): Promise<void>;
  /** Every state of every pod that the API tells of. */
  watchPods(seen: (pod: DeepReadonly<Pod>) => void): Promise<Disposable>;
  addEphemeral(name: string, container: EphemeralContainer): Promise<void>;
  /** Changes a running pod through one of its subresources, or none. */
  patch(name: string, body: object, subresource?: string): Promise<void>;
  /** Stops the kubelet and starts another one on the same engine. */
  restart(): Promise<void>;
}

export const NODE = "node-1";

export async function createHarness(options: FakeEngineOptions & { start?: boolean } = {}): Promise<Harness> {
  const clock = createFakeClock();
  const random = createSeededRandom(7);
  const logger = process.env.DEBUG
    ? createLogger((line) => console.error(line), { level: "debug", now: clock.now })
    : silentLogger;
  const store = createMemoryStore();
  const scheme = createScheme();
  const reader = createReader(store, scheme);
  const server = createApiServer(
    {
      store,
      scheme,
      reader,
      clock,
      random,
      logger,
      authorizer: createMastersAuthorizer(),
      admission: [],
      connector: () => undefined,
    },
    { version: versionInfo({ platform: "linux/amd64", runtime: "v26" }), serverAddress: () => "127.0.0.1:6443" },
  );
  const client = createClient({ call: (request) => server.handle({ ...request, user: ADMIN }) }, { userAgent: "test" });
  for (const name of ["default", "kube-node-lease"]) {
    await client.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name } } as Namespace);
  }
  const engine = createFakeEngine({ clock, random }, options);
  const dataDir = mkdtempSync(join(tmpdir(), "kubelet-"));
  const volumes = testVolumes();
  const configErrors = new Map<string, string>();
  const configs = testConfigs(dataDir, configErrors);
  let informers: Informers;
  const make = () => {
    informers = createInformers({ client, clock, random, logger });
    return createKubelet(
      {
        client,
        informers,
        engine,
        clock,
        random,
        logger,
        volumes,
        configs,
        dial: (host, port) => engine.dial(host, port),
      },
      { nodeName: NODE, nodeIPs: ["192.0.2.1"], dataDir, capacity: { cpu: "4", memory: "8Gi" } },
    );
  };

  const harness: Harness = {
    clock,
    client,
    engine,
    volumes,
    configErrors,
    kubelet: make(),
    async run(name, spec, metadata = {}) {
      const complete = (container: object) => ({
        image: "slim/busybox:latest",
        imagePullPolicy: "IfNotPresent",
        ...container,
      });
      const pod = {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace: "default", ...metadata },
        spec: {
          nodeName: NODE,
          ...spec,
          containers: spec.containers.map(complete),
          ...(spec.initContainers ? { initContainers: spec.initContainers.map(complete) } : {}),
        },
      };
      return client.create(resources.pods, pod as Pod);
    },
    async get(name) {
      return client.get(resources.pods, name, { namespace: "default" }).catch((error: unknown) => {
        if (isStatus(error, "NotFound")) return undefined;
        throw error;
      });
    },
    async until(name, wanted) {
      let pod: DeepReadonly<Pod> | undefined;
      for (let i = 0; i < 400; i++) {
        pod = await harness.get(name);
        if (pod && wanted(pod)) return pod;
        await clock.advance(0);
        await settle();
      }
      throw new Error(
        `pod ${name} did not become as wanted: ${JSON.stringify(pod?.status, null, 1)}\n${(await harness.events(name)).join("\n")}`,
      );
    },
    async gone(name) {
      for (let i = 0; i < 400; i++) {
        if (!(await harness.get(name))) return;
        await settle();
      }
      throw new Error(`pod ${name} is still there: ${JSON.stringify((await harness.get(name))?.status, null, 1)}`);
    },
    async advanceUntil(name, wanted, { step = 500, most = 600_000 } = {}) {
      const began = clock.now();
      for (;;) {
        await drain();
        const pod = await harness.get(name);
        if (pod && wanted(pod)) return clock.now() - began;
        if (clock.now() - began >= most) {
          throw new Error(
            `pod ${name} did not become as wanted: ${JSON.stringify(pod?.status, null, 1)}\n${(await harness.events(name)).join("\n")}`,
          );
        }
        await clock.advance(step);
      }
    },
    async pass(ms, step = 500) {
      const end = clock.now() + ms;
      await drain();
      while (clock.now() < end) {
        await clock.advance(Math.min(step, end - clock.now()));
        await drain();
      }
    },
    async events(name) {
      const { items } = await client.list(resources.events, { namespace: "default" });
      const own = (items as readonly DeepReadonly<Event>[]).filter((event) => event.involvedObject.name === name);
      return own
        .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
        .map((event) => `${event.reason} ${event.message}${(event.count ?? 1) > 1 ? ` x${event.count}` : ""}`);
    },
    async delete(name, gracePeriodSeconds) {
      await client.delete(resources.pods, name, {
        namespace: "default",
        ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      });
    },
    async patch(name, body, subresource) {
      await client.patch(
        resources.pods,
        name,
        { type: "strategic", body },
        { namespace: "default", ...(subresource ? { subresource } : {}) },
      );
    },
    async watchPods(seen) {
      const { metadata } = await client.list(resources.pods, { namespace: "default" });
      const watch = client.watch(resources.pods, {
        namespace: "default",
        resourceVersion: metadata.resourceVersion ?? "",
        onEvent: (event) => seen(event.object),
        onEnd: () => undefined,
      });
      return { [Symbol.dispose]: () => watch.stop() };
    },
    addEphemeral: (name, container) =>
      harness.patch(name, { spec: { ephemeralContainers: [container] } }, "ephemeralcontainers"),
    async restart() {
      await harness.kubelet.stop();
      await informers[Symbol.asyncDispose]();
      harness.kubelet = make();
      await harness.kubelet.start();
    },
    async [Symbol.asyncDispose]() {
      await harness.kubelet.stop();
      await informers[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
  if (options.start !== false) await harness.kubelet.start();
  return harness;
}

/** File reads need real time; nothing else does. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise<void>((resolve) => setImmediate(resolve));
  await wait(1);
}

async function drain(): Promise<void> {
  for (let i = 0; i < 3; i++) await settle();
}

/** The status of one container, by name. */
export const containerStatus = (pod: DeepReadonly<Pod>, name = "c"): DeepReadonly<ContainerStatus> | undefined =>
  [
    ...(pod.status?.containerStatuses ?? []),
    ...(pod.status?.initContainerStatuses ?? []),
    ...(pod.status?.ephemeralContainerStatuses ?? []),
  ].find((status) => status.name === name);

export const condition = (pod: DeepReadonly<Pod>, type: string): DeepReadonly<PodCondition> | undefined =>
  pod.status?.conditions?.find((item) => item.type === type);
