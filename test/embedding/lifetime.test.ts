import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { startCluster } from "../../src/mod.ts";
import { instanceIdOf } from "#cluster";
import { tracesOf } from "../support/instance.ts";

const pod = `
apiVersion: v1
kind: Pod
metadata: { name: hello }
spec:
  terminationGracePeriodSeconds: 0
  containers: [{ name: main, image: "slim/busybox:latest", command: [sh, -c, "echo hello; sleep 1000"] }]
`;

/** Clusters without a directory of their own make theirs in here. */
function ownTemporaryDirectory(t: TestContext): string {
  const parent = mkdtempSync(join(tmpdir(), "slim-test-"));
  const former = process.env.TMPDIR;
  process.env.TMPDIR = parent;
  t.after(() => {
    if (former === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = former;
    rmSync(parent, { recursive: true, force: true });
  });
  return parent;
}

/** What the process holds open: descriptors by kind, and the resources that keep its loop turning. */
function holdings() {
  const open = process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
  const active = process.getActiveResourcesInfo().filter((kind) => /TCP|Pipe|Server|Timeout|Process/.test(kind));
  return { open, active: active.length };
}

test("a hundred fake clusters, one after another, leave nothing in the process", async (t) => {
  const parent = ownTemporaryDirectory(t);
  const round = async () => {
    await using cluster = await startCluster({ engine: "fake" });
    await cluster.apply(pod);
    await cluster.waitFor("pod/hello");
  };
  // what is loaded and compiled once does not count
  for (let i = 0; i < 10; i++) await round();
  const before = { ...holdings(), heap: await settledHeap() };
  for (let i = 0; i < 100; i++) await round();
  const after = { ...holdings(), heap: await settledHeap() };
  assert.deepEqual(readdirSync(parent), []);
  assert.ok(after.open <= before.open, `descriptors: ${before.open}, then ${after.open}`);
  assert.ok(after.active <= before.active, `active resources: ${before.active}, then ${after.active}`);
  const grown = (after.heap - before.heap) / 2 ** 20;
  t.diagnostic(`heap grew by ${grown.toFixed(2)} MiB`);
  // a cluster that stayed would be several MiB
  assert.ok(grown < 10, `the heap grew by ${grown} MiB`);
});

async function settledHeap(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  return process.memoryUsage().heapUsed;
}

const root = process.platform === "linux" && process.getuid?.() === 0;

test("a native cluster in memory runs containers, and takes all of it away", {
  skip: !root && "needs root on Linux",
}, async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), "slim-test-"));
  const parent = ownTemporaryDirectory(t);
  const former = process.cwd();
  process.chdir(cwd);
  t.after(() => {
    process.chdir(former);
    rmSync(cwd, { recursive: true, force: true });
  });
  const dataDir = await (async () => {
    await using cluster = await startCluster();
    await cluster.apply(pod);
    await cluster.waitFor("pod/hello");
    assert.deepEqual(await Array.fromAsync(cluster.logs("pod/hello")), ["hello"]);
    assert.deepEqual(await cluster.exec("pod/hello", ["cat"], { stdin: "through" }), {
      exitCode: 0,
      stdout: "through",
      stderr: "",
    });
    return readdirSync(parent).map((name) => join(parent, name))[0];
  })();
  assert.ok(dataDir, "it had a directory while it ran");
  assert.deepEqual(readdirSync(parent), []);
  assert.deepEqual(tracesOf(dataDir, instanceIdOf(dataDir)), []);
  assert.deepEqual(readdirSync(cwd), []);
});

test("with a data directory workloads can be kept, and the next cluster takes them over", {
  skip: !root && "needs root on Linux",
}, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "slim-test-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const started = async (cluster: Awaited<ReturnType<typeof startCluster>>) => {
    const [engine] = cluster.engines.values();
    return engine?.containers().map(({ id, state }) => `${id} ${state}`);
  };
  let kept: string[] | undefined;
  {
    await using cluster = await startCluster({ dataDir, keepWorkloads: true });
    await cluster.apply(pod);
    await cluster.waitFor("pod/hello");
    kept = await started(cluster);
  }
  {
    await using cluster = await startCluster({ dataDir });
    await cluster.waitFor("pod/hello");
    assert.deepEqual(await started(cluster), kept);
  }
  assert.deepEqual(tracesOf(dataDir, instanceIdOf(dataDir)), []);
});
