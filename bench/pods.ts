/**
 * Pods seen from outside: `node bench/pods.ts [--kubeconfig FILE] [--image REF] [--serial 20] [--batch 30] [--idle SECONDS] [--json]`.
 * Created to Running and to Ready, deleted to gone, many at once, and what idle pods cost. Without a kubeconfig it starts a slimd of its own
 * (root). The image must be present and have `sh` and `sleep`.
 */
import { parseArgs } from "node:util";
import { agentOf, type BenchCluster, openCluster } from "./support/cluster.ts";
import { quantile, report } from "./support/table.ts";

const { values } = parseArgs({
  options: {
    kubeconfig: { type: "string" },
    image: { type: "string", default: "slim/busybox:latest" },
    serial: { type: "string", default: "20" },
    batch: { type: "string", default: "30" },
    idle: { type: "string", default: "20" },
    json: { type: "boolean", default: false },
  },
});
const { row } = report(values.json);
const batch = Number(values.batch);
const namespace = `bench-${process.pid}`;
const base = `/api/v1/namespaces/${namespace}`;
const agent = agentOf(8);

interface PodEvent {
  readonly type: string;
  readonly object: {
    readonly metadata: { readonly name: string };
    readonly status?: {
      readonly phase?: string;
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    };
  };
}

const running = ({ object }: PodEvent) => object.status?.phase === "Running";
const ready = ({ object }: PodEvent) =>
  object.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
const gone = ({ type }: PodEvent) => type === "DELETED";

/** Times at which something was first seen of pods, by one watch. */
function createSightings(): { see(event: PodEvent): void; of(name: string, test: Test): Promise<number> } {
  const waiting = new Map<string, Set<{ test: Test; found: (at: number) => void }>>();
  return {
    see(event) {
      for (const wait of waiting.get(event.object.metadata.name) ?? []) {
        if (!wait.test(event)) continue;
        waiting.get(event.object.metadata.name)?.delete(wait);
        wait.found(performance.now());
      }
    },
    of: (name, test) =>
      new Promise((found) => {
        const waits = waiting.get(name) ?? new Set();
        waiting.set(name, waits.add({ test, found }));
      }),
  };
}
type Test = (event: PodEvent) => boolean;

const pod = (name: string, container: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      { name: "main", image: values.image, command: ["sh", "-c", "trap exit TERM; sleep 3600 & wait"], ...container },
    ],
  },
});

const sightings = createSightings();
const create = (cluster: BenchCluster, body: object) => cluster.call(agent, "POST", `${base}/pods`, body);
const remove = (cluster: BenchCluster, name: string) => cluster.call(agent, "DELETE", `${base}/pods/${name}`);

async function oneByOne(cluster: BenchCluster): Promise<void> {
  const times = { running: [] as number[], ready: [] as number[], gone: [] as number[] };
  for (let i = 0; i < Number(values.serial); i++) {
    const name = `alone-${i}`;
    const seen = Promise.all([sightings.of(name, running), sightings.of(name, ready)]);
    const began = performance.now();
    await create(cluster, pod(name));
    const [runningAt, readyAt] = await seen;
    times.running.push(runningAt - began);
    times.ready.push(readyAt - began);
    const left = sightings.of(name, gone);
    const deleted = performance.now();
    await remove(cluster, name);
    times.gone.push((await left) - deleted);
  }
  row("created to Running, p50", quantile(times.running, 0.5), "ms", 60);
  row("created to Running, worst", Math.max(...times.running), "ms", 200);
  row("created to Ready, p50", quantile(times.ready, 0.5), "ms");
  row("deleted to gone, p50", quantile(times.gone, 0.5), "ms", 100);
}

async function probed(cluster: BenchCluster): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const name = `probed-${i}`;
    const seen = sightings.of(name, ready);
    const began = performance.now();
    await create(cluster, pod(name, { readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 } }));
    times.push((await seen) - began);
    await remove(cluster, name);
  }
  row("created to Ready with an exec probe, p50", quantile(times, 0.5), "ms", 100);
}

async function atOnce(cluster: BenchCluster): Promise<void> {
  const names = Array.from({ length: batch }, (_, i) => `batch-${i}`);
  const before = cluster.processes?.all();
  const allRun = Promise.all(names.map((name) => sightings.of(name, running)));
  const began = performance.now();
  await Promise.all(names.map((name) => create(cluster, pod(name))));
  row(
    `${batch} pods created to all Running`,
    Math.max(...(await allRun)) - began,
    "ms",
    batch === 30 ? 1000 : undefined,
  );
  await idle(cluster, `${batch} pods`);
  const after = cluster.processes?.all();
  if (before && after) row("private memory of each pod", (after.privateMiB - before.privateMiB) / batch, "MiB", 4);
  const allGone = Promise.all(names.map((name) => sightings.of(name, gone)));
  const deleted = performance.now();
  await Promise.all(names.map((name) => remove(cluster, name)));
  row(
    `${batch} pods deleted to all gone`,
    Math.max(...(await allGone)) - deleted,
    "ms",
    batch === 30 ? 1000 : undefined,
  );
}

/** What the daemon costs while nothing happens. */
async function idle(cluster: BenchCluster, when: string): Promise<void> {
  if (!cluster.processes) return;
  const seconds = Number(values.idle);
  const sleep = (s: number) => new Promise((resolve) => setTimeout(resolve, s * 1000));
  await sleep(3); // what was begun before has ended
  const before = cluster.processes.daemon();
  await sleep(seconds);
  const after = cluster.processes.daemon();
  const target = when === "no pods";
  row(`idle CPU, ${when}`, (after.cpuMs - before.cpuMs) / seconds / 10, "% of a core", target ? 0.3 : undefined);
  row(`idle disk writes, ${when}`, (after.writtenKiB - before.writtenKiB) / seconds, "KiB/s", target ? 0 : undefined);
  row(`resident memory, ${when}`, after.residentMiB, "MiB", target ? 90 : undefined);
}

await using cluster = await openCluster(values.kubeconfig);
const space = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
await cluster.call(agent, "POST", "/api/v1/namespaces", space);
for (;;) {
  const accounts = await cluster.call(agent, "GET", `${base}/serviceaccounts?fieldSelector=metadata.name%3Ddefault`);
  if (JSON.parse(accounts.text()).items.length > 0) break;
}
const watch = await cluster.watch(`${base}/pods?watch=1`, (line) => sightings.see(JSON.parse(line)));
try {
  await idle(cluster, "no pods");
  await oneByOne(cluster);
  await probed(cluster);
  await atOnce(cluster);
} finally {
  watch.close();
  await cluster.call(agent, "DELETE", `/api/v1/namespaces/${namespace}`);
  agent.destroy();
}
