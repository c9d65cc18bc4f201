/**
 * Many pods on the fake engine, all in this process: `node bench/scale.ts [--pods 5000] [--json]`. Needs neither root nor Linux. One
 * Deployment over as many nodes as it takes, from its creation to all pods ready, what that costs at rest, and to the last pod gone.
 */
import { parseArgs } from "node:util";
import { resources, startCluster } from "../src/mod.ts";
import { report } from "./support/table.ts";

const PODS_PER_NODE = 100;
const { values } = parseArgs({
  options: { pods: { type: "string", default: "5000" }, json: { type: "boolean", default: false } },
});
const { row } = report(values.json);
const pods = Number(values.pods);
const resident = () => process.memoryUsage().rss / 2 ** 20;
const seconds = (from: number) => (performance.now() - from) / 1000;

const starting = performance.now();
await using cluster = await startCluster({ engine: "fake", nodes: Math.ceil(pods / PODS_PER_NODE), keepProcess: true });
row("start", performance.now() - starting, "ms");
const before = resident();

const template = { metadata: { labels: { app: "many" } }, spec: { containers: [{ name: "main", image: "app:1" }] } };
const began = performance.now();
await cluster.apply([
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "many" },
    spec: { replicas: pods, selector: { matchLabels: { app: "many" } }, template },
  },
]);
// the cause of a failure is looked for in every pod: too much for this many
await cluster.waitFor("deployment/many", { timeoutMs: 900_000, failFast: false });
row(`${pods} pods created to all Ready`, seconds(began), "s");
row("  pods a second", pods / seconds(began), "/s");
row("resident memory", resident(), "MiB");
row("  of each pod", ((resident() - before) / pods) * 1024, "KiB");

const REST_SECONDS = 10;
const cpu = process.cpuUsage();
await new Promise((resolve) => setTimeout(resolve, REST_SECONDS * 1000));
const { user, system } = process.cpuUsage(cpu);
row("CPU at rest", (user + system) / 1e4 / REST_SECONDS, "% of a core");

const deleted = performance.now();
const where = { namespace: "default" };
await cluster.client.delete(resources.deployments, "many", { ...where, propagationPolicy: "Foreground" });
await cluster.waitFor("deployment/many", { deleted: true, timeoutMs: 900_000, failFast: false });
row("deleted to all gone", seconds(deleted), "s");
