import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex } from "node:stream";
import test from "node:test";
import { KubeConfig, CoreV1Api } from "@kubernetes/client-node";
import { type Cluster, type kinds, resources, startCluster, StatusError, WaitError } from "./mod.ts";

const web = (replicas = 2, image = "web:1") => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, labels: { app: web } }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
      - { name: app, image: "${image}", ports: [{ name: http, containerPort: 8080 }] }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ port: 80, targetPort: http }] }
`;

test("a cluster on the fake engine: apply, wait, read back, delete", async () => {
  await using cluster = await startCluster({ engine: "fake" });
  const applied = await cluster.apply(web());
  assert.deepEqual(
    applied.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ["Deployment web", "Service web"],
  );
  const ready = (await cluster.waitFor("deployment/web")) as unknown as kinds.Deployment;
  assert.equal(ready.status?.availableReplicas, 2);
  const { items } = await cluster.client.list(resources.pods, { namespace: "default", labelSelector: "app=web" });
  assert.deepEqual(
    items.map((pod) => pod.status?.phase),
    ["Running", "Running"],
  );
  await cluster.delete(web());
  await cluster.waitFor("deploy/web", { deleted: true });
});

test("the kubeconfig serves the official client library", async () => {
  await using cluster = await startCluster({ engine: "fake" });
  const config = new KubeConfig();
  config.loadFromString(cluster.kubeconfig ?? "");
  const { items } = await config.makeApiClient(CoreV1Api).listNamespace();
  assert.ok(items.some((namespace) => namespace.metadata?.name === "kube-system"));
});

test("logs, exec, connections and forwarded ports reach a fake container", async () => {
  await using cluster = await startCluster({
    engine: "fake",
    listen: false,
    fake: {
      script: () => ({
        output: [{ text: "listening" }, { text: "ready" }],
        exec: (command) => ({ stdout: `ran ${command.join(" ")}`, stderr: "careful", exitCode: 3 }),
        connect: (port) => (port === 8080 ? echo() : undefined),
      }),
    },
  });
  assert.equal(cluster.kubeconfig, undefined);
  await cluster.apply(web(1));
  await cluster.waitFor("deployment/web");
  assert.deepEqual(await Array.fromAsync(cluster.logs("deployment/web")), ["listening", "ready"]);
  assert.deepEqual(await cluster.exec("deployment/web", ["date", "-u"]), {
    exitCode: 3,
    stdout: "ran date -u",
    stderr: "careful",
  });
  await using forward = await cluster.portForward("service/web", { port: 80 });
  assert.equal(await converse(createConnection(forward.port, forward.host), "hello"), "HELLO");
  assert.equal(await converse(await cluster.connect("service/web", 80), "again"), "AGAIN");
  await assert.rejects(cluster.connect("service/web", 81), /service\/web has no port 81/);
});

test("events and watches are loops that end when they are left or aborted", async () => {
  await using cluster = await startCluster({ engine: "fake", listen: false });
  await cluster.apply(web(1));
  for await (const event of cluster.events()) if (event.reason === "Started") break;
  const end = new AbortController();
  const names: string[] = [];
  for await (const { object } of cluster.watch(resources.services, { namespace: "default", signal: end.signal })) {
    names.push(object.metadata.name);
    if (names.length === 2) end.abort();
  }
  assert.deepEqual(names.sort(), ["kubernetes", "web"]);
});

test("informers and metrics", async () => {
  await using cluster = await startCluster({ engine: "fake", listen: false, nodes: 2 });
  await cluster.apply(web(3));
  await cluster.waitFor("deployment/web");
  const pods = cluster.informers.for(resources.pods, { namespace: "default" });
  await pods.synced();
  assert.equal(pods.list().length, 3);
  const metrics = await cluster.metrics();
  assert.deepEqual(
    metrics.nodes.map((node) => node.name),
    ["node", "node-2"],
  );
  assert.equal(metrics.pods.flatMap((pod) => pod.containers).length, 3);
});

test("a wait that can't succeed ends at once and names the cause", async () => {
  await using cluster = await startCluster({
    engine: "fake",
    listen: false,
    fake: { pull: () => ({ code: "pull-not-found", error: "docker.io/library/web:2: not found" }) },
  });
  await cluster.apply(web(1, "web:2"));
  const error = await cluster.waitFor("deployment/web").catch((reason: unknown) => reason);
  assert.ok(error instanceof WaitError, String(error));
  assert.equal(error.code, "wait-hopeless");
  assert.match(
    error.message.split("\n")[0] ?? "",
    /^deployment\/web in namespace default can't come to be ready: the image "web:2" of container "app" of pod "web-[^"]+" does not exist\.$/,
  );
  assert.equal((await cluster.why("deployment/web")).causes[0]?.code, "image");
});

test("a wait for what does not exist ends with its time", async () => {
  await using cluster = await startCluster({ engine: "fake", listen: false });
  await assert.rejects(cluster.waitFor("pod/nobody", { timeoutMs: 100 }), {
    message: "waited 0.1 s in vain for pod/nobody in namespace default to be ready: it does not exist.",
  });
});

test("objects in a data directory outlive the cluster, and a second cluster on it is refused meanwhile", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "slim-test-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  {
    await using cluster = await startCluster({ engine: "fake", dataDir });
    await cluster.client.create(resources.configMaps, { metadata: { name: "kept" } } as kinds.ConfigMap, {
      namespace: "default",
    });
    await assert.rejects(startCluster({ engine: "fake", dataDir }), { code: "already-running" });
  }
  await using again = await startCluster({ engine: "fake", dataDir });
  assert.equal((await again.client.get(resources.configMaps, "kept", { namespace: "default" })).metadata.name, "kept");
});

test("joining a cluster by its kubeconfig gives the same view over HTTP", async () => {
  await using cluster = await startCluster({
    engine: "fake",
    fake: { script: () => ({ output: [{ text: "hi" }], exec: () => ({ stdout: "out" }), connect: echo }) },
  });
  await using joined = await startCluster({ join: { kubeconfig: cluster.kubeconfig ?? "" } });
  await joined.apply(web(1));
  await joined.waitFor("deployment/web");
  assert.deepEqual(await Array.fromAsync(joined.logs("deployment/web")), ["hi"]);
  assert.deepEqual(await joined.exec("deployment/web", ["x"]), { exitCode: 0, stdout: "out", stderr: "" });
  assert.equal(await converse(await joined.connect("service/web", 80), "over websocket"), "OVER WEBSOCKET");
  await assert.rejects(joined.exec("deployment/web", ["x"], { container: "nobody" }), StatusError);
});

test("a start that fails half-way leaves nothing", async (t) => {
  const parent = mkdtempSync(join(tmpdir(), "slim-test-"));
  const former = process.env.TMPDIR;
  process.env.TMPDIR = parent;
  t.after(() => {
    if (former === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = former;
    rmSync(parent, { recursive: true, force: true });
  });
  await using other = await startCluster({ engine: "fake" });
  const port = Number(new URL(other.server ?? "").port);
  await assert.rejects(startCluster({ engine: "fake", listen: { port } }), { code: "address-unavailable" });
  await assert.rejects(
    startCluster({ engine: "fake", manifests: ["kind: Pod\napiVersion: v1\nmetadata: { name: Bad_Name }\n"] }),
    StatusError,
  );
  await other[Symbol.asyncDispose]();
  assert.deepEqual(readdirSync(parent), []);
});

test("options that contradict each other are refused", async () => {
  await assert.rejects(startCluster({ fake: {} }), { code: "invalid-option" });
  await assert.rejects(startCluster({ engine: "fake", keepWorkloads: true }), { code: "invalid-option" });
  await assert.rejects(startCluster({ engine: "other" as never }), { code: "invalid-option" });
});

test("ten clusters in one process know nothing of each other", async () => {
  const clusters = await Promise.all(Array.from({ length: 10 }, () => startCluster({ engine: "fake" })));
  try {
    await Promise.all(clusters.map((cluster, i) => cluster.apply(web((i % 3) + 1))));
    await Promise.all(clusters.map((cluster) => cluster.waitFor("deployment/web")));
    const counts = await Promise.all(clusters.map(podCount));
    assert.deepEqual(counts, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]);
  } finally {
    await Promise.all(clusters.map((cluster) => cluster[Symbol.asyncDispose]()));
  }
});

test("an embedding program prints nothing, keeps its directory clean, and ends by itself", () => {
  const program = `
    import { startCluster } from ${JSON.stringify(join(import.meta.dirname, "mod.ts"))};
    const cluster = await startCluster({ engine: "fake" });
    await cluster.apply(${JSON.stringify(web(1))});
    await cluster.waitFor("deployment/web");
    // never disposed
  `;
  const cwd = mkdtempSync(join(tmpdir(), "slim-test-"));
  try {
    const output = execFileSync(process.execPath, ["--no-warnings", "--input-type=module", "-e", program], {
      cwd,
      encoding: "utf8",
      timeout: 60_000,
    });
    assert.equal(output, "");
    assert.deepEqual(readdirSync(cwd), []);
  } finally {
    rmSync(cwd, { recursive: true });
  }
});

async function podCount(cluster: Cluster): Promise<number> {
  return (await cluster.client.list(resources.pods, { namespace: "default" })).items.length;
}

/** Gives back in upper case what it is told. */
function echo(): Duplex {
  return new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      this.push(chunk.toString("utf8").toUpperCase());
      done();
    },
  });
}

async function converse(stream: Duplex, text: string): Promise<string> {
  stream.write(text);
  let answer = "";
  for await (const chunk of stream) {
    answer += (chunk as Buffer).toString("utf8");
    if (answer.length >= text.length) break;
  }
  return answer;
}
