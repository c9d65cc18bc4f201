import type { DeepReadonly } from "#base";
import { type Cluster, type ClusterOptions, startCluster } from "#cluster";
import type { FakeContainer, FakeEngine, FakePull, FakeScript } from "#engine/fake";
import { type ApiObject, isStatus, resources } from "#kinds";
import { createMovableClock } from "./movable-clock.ts";

/** Which containers a script is for; all that is given has to fit. */
export interface ContainerMatch {
  readonly image?: string | RegExp;
  /** Name of the container. */
  readonly container?: string | RegExp;
  readonly pod?: string | RegExp;
  readonly namespace?: string;
}

/** What a container does; a function is asked at every start: `run` counts from 0 for each container of each pod. */
export type Play = FakeScript | ((container: FakeContainer, run: number) => FakeScript | undefined);

export interface TestClusterOptions extends Omit<ClusterOptions, "engine" | "clock" | "join"> {
  /** Default `fake`. */
  readonly engine?: "fake" | "native";
}

/** A cluster for tests: fake containers that do what the test says, and time that the test can move on. */
export interface TestCluster extends AsyncDisposable {
  readonly cluster: Cluster;
  /** What matching containers do when they start from now on; the newest match wins. Disposing takes it back. */
  play(match: ContainerMatch, script: Play): Disposable;
  /** How pulling matching images goes from now on. */
  pull(image: string | RegExp, outcome: FakePull): Disposable;
  /** Ends a running container from outside, as an out-of-memory killer or an administrator would. */
  crash(pod: string, options?: { namespace?: string; container?: string; exitCode?: number; reason?: string }): void;
  /** Lines that a container has written so far. */
  output(pod: string, options?: { namespace?: string; container?: string }): readonly string[];
  /** Moves the cluster's time on: back-offs, deadlines, schedules, time-outs. */
  advance(ms: number): Promise<void>;
  /** A new namespace of its own for one test. */
  namespace(prefix?: string): Promise<string>;
  /** Deletes everything that tests made: namespaces but for the built-in ones, and what is in `default`. Scripts too. */
  reset(): Promise<void>;
}

/** Starts a test cluster: the fake engine, no sockets, in some 50 milliseconds. */
export async function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const clock = createMovableClock();
  const plays = new Set<{ match: ContainerMatch; script: Play }>();
  const pulls = new Set<{ image: string | RegExp; outcome: FakePull }>();
  const runs = new Map<string, number>();
  const { engine = "fake", fake } = options;
  const cluster = await startCluster({
    listen: false,
    ...options,
    engine,
    clock,
    ...(engine === "fake"
      ? {
          fake: {
            ...fake,
            script(container: FakeContainer) {
              const found = [...plays].findLast(({ match }) => fits(match, container));
              if (!found) return fake?.script?.(container);
              if (typeof found.script !== "function") return found.script;
              const key = `${container.sandbox.uid} ${container.config.name}`;
              const run = runs.get(key) ?? 0;
              runs.set(key, run + 1);
              return found.script(container, run);
            },
            pull(reference: string) {
              const found = [...pulls].findLast(({ image }) => isLike(image, reference));
              return found?.outcome ?? fake?.pull?.(reference) ?? {};
            },
          },
        }
      : {}),
  });
  const held = <T>(set: Set<T>, item: T): Disposable => {
    set.add(item);
    return { [Symbol.dispose]: () => void set.delete(item) };
  };
  return {
    cluster,
    play: (match, script) => held(plays, { match, script }),
    pull: (image, outcome) => held(pulls, { image, outcome }),
    crash(pod, { namespace = "default", container, exitCode, reason } = {}) {
      const found = runOf(cluster, namespace, pod, container);
      if (!found) throw new Error(`no container of pod ${namespace}/${pod} is running`);
      found.engine.crash(found.id, exitCode, reason);
    },
    output(pod, { namespace = "default", container } = {}) {
      const found = runOf(cluster, namespace, pod, container);
      return found ? found.engine.output(found.id).map((line) => line.text) : [];
    },
    advance: (ms) => clock.advance(ms),
    async namespace(prefix = "test") {
      const metadata = { generateName: `${prefix}-` } as ApiObject["metadata"];
      const made = await cluster.client.create(resources.namespaces, { metadata } as never);
      const { name } = made.metadata;
      await untilThere(cluster, name);
      return name;
    },
    async reset() {
      plays.clear();
      pulls.clear();
      await clear(cluster);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(cluster[Symbol.asyncDispose]()),
  };
}

/** The hooks of the test runner: `{ before, after }` of node:test, `{ beforeAll, afterAll }` of vitest. */
export type Hooks =
  | { readonly before: (fn: () => Promise<void>) => void; readonly after: (fn: () => Promise<void>) => void }
  | { readonly beforeAll: (fn: () => Promise<void>) => void; readonly afterAll: (fn: () => Promise<void>) => void };

/**
 * A cluster for a test file, started before its first test and disposed after its last.
 *
 * ```ts
 * import { after, before, test } from "node:test";      // vitest: { beforeAll, afterAll }
 * const env = useCluster({ before, after });
 * test("…", async () => { await env.cluster.apply(yaml); … });
 * ```
 */
export function useCluster(hooks: Hooks, options: TestClusterOptions = {}): TestCluster {
  let running: TestCluster | undefined;
  const start = async () => {
    running = await startTestCluster(options);
  };
  const end = async () => {
    await running?.[Symbol.asyncDispose]();
    running = undefined;
  };
  if ("before" in hooks) {
    hooks.before(start);
    hooks.after(end);
  } else {
    hooks.beforeAll(start);
    hooks.afterAll(end);
  }
  const now = (): TestCluster => {
    if (!running)
      throw new Error("the cluster runs only during the tests: use it inside of test() or a beforeEach hook");
    return running;
  };
  return {
    get cluster() {
      return now().cluster;
    },
    play: (match, script) => now().play(match, script),
    pull: (image, outcome) => now().pull(image, outcome),
    crash: (pod, more) => now().crash(pod, more),
    output: (pod, more) => now().output(pod, more),
    advance: (ms) => now().advance(ms),
    namespace: (prefix) => now().namespace(prefix),
    reset: () => now().reset(),
    [Symbol.asyncDispose]: end,
  };
}

function fits(match: ContainerMatch, { config, sandbox }: FakeContainer): boolean {
  return (
    (match.image === undefined || isLike(match.image, config.imageRef)) &&
    (match.container === undefined || isLike(match.container, config.name)) &&
    (match.pod === undefined || isLike(match.pod, sandbox.name)) &&
    (match.namespace === undefined || match.namespace === sandbox.namespace)
  );
}

/** A text fits whole, but an image without its tag fits all of its tags. */
function isLike(pattern: string | RegExp, text: string): boolean {
  if (typeof pattern !== "string") return pattern.test(text);
  const short = text.replace(/^docker\.io\/(library\/)?/, "");
  return [text, short].some((one) => one === pattern || one.startsWith(`${pattern}:`) || one.startsWith(`${pattern}@`));
}

/** The newest run of a pod's container. */
function runOf(
  cluster: Cluster,
  namespace: string,
  pod: string,
  container: string | undefined,
): { engine: FakeEngine; id: string } | undefined {
  for (const engine of cluster.fakeEngines.values()) {
    const sandboxes = new Set(
      engine
        .sandboxes()
        .flatMap(({ id, config }) => (config.namespace === namespace && config.name === pod ? [id] : [])),
    );
    const found = engine
      .containers()
      .filter(
        ({ sandboxId, config }) => sandboxes.has(sandboxId) && (container === undefined || config.name === container),
      )
      .sort((a, b) => b.createdAt - a.createdAt)[0];
    if (found) return { engine, id: found.id };
  }
  return undefined;
}

/** Pods of a namespace need its ServiceAccount. */
async function untilThere(cluster: Cluster, namespace: string): Promise<void> {
  for await (const { object } of cluster.watch(resources.serviceAccounts, { namespace }))
    if (object.metadata.name === "default") return;
}

const BUILT_IN = new Set(["default", "kube-system", "kube-public", "kube-node-lease"]);

async function clear(cluster: Cluster): Promise<void> {
  const { client, discovery } = cluster;
  const { items } = await client.list(resources.namespaces);
  const made = items.filter(({ metadata }) => !BUILT_IN.has(metadata.name));
  for (const { metadata } of made) await client.delete(resources.namespaces, metadata.name);
  const kinds = (await discovery.preferred()).filter(
    (one) =>
      one.namespaced &&
      one.verbs.includes("deletecollection") &&
      one.resource !== "events" &&
      one.resource !== "endpointslices",
  );
  for (const kind of kinds) {
    for (const { metadata } of (await client.list(kind, { namespace: "default" })).items) {
      if (isKept(kind.resource, metadata)) continue;
      await client
        .delete(kind, metadata.name, { namespace: "default", gracePeriodSeconds: 0, propagationPolicy: "Background" })
        .catch(ignoreAbsent); // its owner may have taken it along
    }
  }
  await Promise.all(made.map(({ metadata }) => cluster.waitFor(`namespace/${metadata.name}`, { deleted: true })));
}

function isKept(resource: string, { name }: DeepReadonly<ApiObject["metadata"]>): boolean {
  return (
    (resource === "serviceaccounts" && name === "default") ||
    (resource === "configmaps" && name === "kube-root-ca.crt") ||
    (["services", "endpoints"].includes(resource) && name === "kubernetes")
  );
}

function ignoreAbsent(error: unknown): void {
  if (!isStatus(error, "NotFound")) throw error;
}
