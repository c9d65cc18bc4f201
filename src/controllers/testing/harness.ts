import { createSeededRandom, type DeepReadonly, silentLogger, systemClock } from "#base";
import { createInformers, createRecorder, type Informers } from "#client";
import { type Node, type Pod, type PodSpec, resources } from "#kinds";
import type { ControllerDeps } from "../runtime/controller.ts";
import { createMemoryClient, type MemoryClient } from "./memory-client.ts";

export interface Harness extends AsyncDisposable {
  readonly deps: ControllerDeps;
  readonly client: MemoryClient;
  readonly informers: Informers;
  /** Waits until `check` gives something truthy; fails with `what` after five seconds. */
  until<T>(what: string, check: () => Promise<T> | T): Promise<NonNullable<T>>;
  messages(): Promise<string[]>;
}

/** A client with informers on it, for tests of controllers against the memory client. */
export function createHarness(): Harness {
  const random = createSeededRandom(7);
  const clock = systemClock;
  const client = createMemoryClient({ clock, random });
  const informers = createInformers({ client, clock, random, logger: silentLogger });
  return {
    client,
    informers,
    deps: {
      client,
      informers,
      clock,
      random,
      logger: silentLogger,
      recorder: (component) => createRecorder({ client, clock }, { component }),
    },
    async until(what, check) {
      const end = clock.monotonic() + 5000;
      for (;;) {
        const value = await check();
        if (value) return value;
        if (clock.monotonic() > end) throw new Error(`waited in vain until ${what}`);
        await clock.sleep(5);
      }
    },
    async messages() {
      return (await client.list(resources.events)).items.map(({ reason, message }) => `${reason}: ${message}`);
    },
    async [Symbol.asyncDispose]() {
      await informers[Symbol.asyncDispose]();
    },
  };
}

export function makeNode(
  name: string,
  more: { labels?: Record<string, string>; cpu?: string; taints?: Node["spec"]["taints"]; pods?: string } = {},
): Node {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name, ...more.labels } },
    spec: more.taints ? { taints: more.taints } : {},
    status: {
      allocatable: { cpu: more.cpu ?? "4", memory: "8Gi", pods: more.pods ?? "110" },
      conditions: [{ type: "Ready", status: "True" }],
    },
  };
}

export function makePod(name: string, spec: Partial<PodSpec> = {}, labels: Record<string, string> = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", labels },
    spec: { containers: [{ name: "c", image: "busybox" }], schedulerName: "default-scheduler", ...spec },
  };
}

/** Reports pods as a node agent would: running and ready once they have a node, gone once they are deleted. */
export function fakeKubelet(
  { client, informers, deps }: Harness,
  options: { phase?: (pod: DeepReadonly<Pod>) => string } = {},
): void {
  const pods = informers.for(resources.pods);
  const seen = new Set<string>();
  const look = (pod: DeepReadonly<Pod>) => {
    const { namespace, name, uid, deletionTimestamp } = pod.metadata;
    if (!pod.spec.nodeName) return;
    if (deletionTimestamp)
      return void client.delete(resources.pods, name, { namespace, gracePeriodSeconds: 0 }).catch(() => {});
    if (seen.has(uid!)) return;
    seen.add(uid!);
    const phase = options.phase?.(pod) ?? "Running";
    const now = new Date(deps.clock.now()).toISOString().replace(/\.\d+/, "");
    const ready = phase === "Running" ? "True" : "False";
    const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status: ready, lastTransitionTime: now }));
    const ip = `10.0.0.${seen.size}`;
    const status = { phase, conditions, podIP: ip, podIPs: [{ ip }], startTime: now };
    void client
      .patch(resources.pods, name, { type: "merge", body: { status } }, { namespace, subresource: "status" })
      .catch(() => {});
  };
  pods.onChange({ add: look, update: look });
}
