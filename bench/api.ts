/**
 * Reads, writes, lists and watches of an API server: `node bench/api.ts [--kubeconfig FILE] [--pods 10000] [--watchers 1000] [--json]`.
 * Without a kubeconfig it starts a slimd of its own (root). Plain HTTPS with kept-alive connections from this one process, so part of each
 * figure is the client's. Pods are never scheduled: this is about the API alone.
 */
import { parseArgs } from "node:util";
import { agentOf, type BenchCluster, openCluster } from "./support/cluster.ts";
import { pace, quantile, report } from "./support/table.ts";

const { values } = parseArgs({
  options: {
    kubeconfig: { type: "string" },
    pods: { type: "string", default: "10000" },
    watchers: { type: "string", default: "1000" },
    json: { type: "boolean", default: false },
  },
});
const { row } = report(values.json);
const pods = Number(values.pods);
const watchers = Number(values.watchers);
const namespace = `bench-${process.pid}`;
const base = `/api/v1/namespaces/${namespace}`;
const one = agentOf(1);
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

const configMap = (name: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels: { app: "bench" } },
  data: { text: "x".repeat(200) },
});

const pod = (i: number) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: `pod-${i}`, labels: { app: "bench", shard: String(i % 10) } },
  spec: {
    schedulerName: "nobody",
    containers: [
      {
        name: "main",
        image: "example.test/app:1",
        env: [{ name: "A", value: "b" }],
        ports: [{ containerPort: 80 }],
        resources: { requests: { cpu: "10m", memory: "16Mi" } },
        readinessProbe: { httpGet: { path: "/", port: 80 } },
      },
    ],
  },
});

function memory(cluster: BenchCluster, when: string, target?: number): void {
  const usage = cluster.processes?.daemon();
  if (usage) row(`resident memory, ${when}`, usage.residentMiB, "MiB", target);
}

async function writesAndReads(cluster: BenchCluster): Promise<void> {
  const patch = (type: string) => ({ "content-type": `application/${type}` });
  const alone = await pace(500, 1, (i) => cluster.call(one, "POST", `${base}/configmaps`, configMap(`alone-${i}`)));
  row("create, one at a time, p50", quantile(alone.times, 0.5), "ms", 2.5);
  row("create, one at a time, p99", quantile(alone.times, 0.99), "ms");
  const wide = agentOf(16);
  const at16 = async (what: string, total: number, target: number, call: (i: number) => Promise<unknown>) =>
    row(`${what}, 16 in parallel`, (await pace(total, 16, call)).rate, "/s", target);
  await at16("create", 4000, 1347, (i) => cluster.call(wide, "POST", `${base}/configmaps`, configMap(`c-${i}`)));
  await at16("get", 8000, 2817, (i) => cluster.call(wide, "GET", `${base}/configmaps/c-${i % 4000}`));
  await at16("merge patch", 2000, 1392, (i) =>
    cluster.call(wide, "PATCH", `${base}/configmaps/c-${i}`, { data: { more: "y" } }, patch("merge-patch+json")),
  );
  await at16("server-side apply", 1000, 1275, (i) => {
    const config = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}` }, data: { applied: "z" } };
    const path = `${base}/configmaps/c-${i}?fieldManager=bench&force=true`;
    return cluster.call(wide, "PATCH", path, config, patch("apply-patch+yaml"));
  });
  wide.destroy();
}

async function lists(cluster: BenchCluster): Promise<void> {
  const creators = agentOf(32);
  const { rate } = await pace(pods, 32, (i) => cluster.call(creators, "POST", `${base}/pods`, pod(i)));
  creators.destroy();
  row(`create ${pods} pods, 32 in parallel`, rate, "/s");
  memory(cluster, `${pods} pods`, pods === 10_000 ? 200 : undefined);
  const list = async (what: string, query: string, headers: Record<string, string>, target?: number) => {
    const times: number[] = [];
    let bytes = 0;
    for (let i = 0; i < 7; i++) {
      const began = performance.now();
      bytes = (await cluster.call(one, "GET", `${base}/pods${query}`, undefined, headers)).bytes;
      times.push(performance.now() - began);
    }
    row(`list ${what} (${(bytes / 1e6).toFixed(1)} MB)`, quantile(times, 0.5), "ms", target);
  };
  await list("all pods", "", {}, 130);
  await list("all pods, gzip", "", { "accept-encoding": "gzip" }, 200);
  await list("all pods as Table", "", { accept: TABLE }, 130);
  await list("by label, a tenth", "?labelSelector=shard%3D3", {});
  await list("by field, none", "?fieldSelector=status.phase%3DRunning", {});
  const began = performance.now();
  let token = "";
  do {
    const path = `${base}/pods?limit=500&continue=${encodeURIComponent(token)}`;
    const page: { metadata: { continue?: string } } = JSON.parse((await cluster.call(one, "GET", path)).text());
    token = page.metadata.continue ?? "";
  } while (token);
  row("all pods in pages of 500", performance.now() - began, "ms");
}

async function fanOut(cluster: BenchCluster): Promise<void> {
  const first = await cluster.call(one, "GET", `${base}/configmaps?limit=1`);
  const { resourceVersion }: { resourceVersion: string } = JSON.parse(first.text()).metadata;
  const path = `${base}/configmaps?watch=1&resourceVersion=${resourceVersion}`;
  let seen = () => {};
  const agent = agentOf(Number.POSITIVE_INFINITY);
  const open = await Promise.all(Array.from({ length: watchers }, () => cluster.watch(path, () => seen(), agent)));
  memory(cluster, `${watchers} watchers besides`, watchers === 1000 ? 260 : undefined);
  const times: number[] = [];
  for (let i = 0; i < 10; i++) {
    let left = watchers;
    const all = new Promise<void>((resolve) => {
      seen = () => --left === 0 && resolve();
    });
    const began = performance.now();
    await cluster.call(one, "POST", `${base}/configmaps`, configMap(`seen-${i}`));
    await all;
    times.push(performance.now() - began);
  }
  row(`one write seen by ${watchers} watchers, p50`, quantile(times, 0.5), "ms", 25);
  row(`one write seen by ${watchers} watchers, worst`, Math.max(...times), "ms");
  for (const watch of open) watch.close();
}

await using cluster = await openCluster(values.kubeconfig);
const space = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
await cluster.call(one, "POST", "/api/v1/namespaces", space);
try {
  memory(cluster, "at start");
  await writesAndReads(cluster);
  await lists(cluster);
  await fanOut(cluster);
} finally {
  await cluster.call(one, "DELETE", `/api/v1/namespaces/${namespace}`);
  one.destroy();
}
