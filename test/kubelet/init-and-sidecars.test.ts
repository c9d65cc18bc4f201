import assert from "node:assert/strict";
import test from "node:test";
import { condition, containerStatus, createHarness } from "./harness.test-support.ts";

const image = "slim/busybox:latest";

test("init containers run one after the other, and the main ones after them", async () => {
  const starts: string[] = [];
  await using node = await createHarness({
    script({ config }) {
      starts.push(config.name);
      return config.name.startsWith("i") ? { runMs: 2000 } : {};
    },
  });
  await node.run("p", {
    initContainers: [
      { name: "i1", image },
      { name: "i2", image },
    ],
    containers: [{ name: "a" }, { name: "b" }],
  });
  const first = await node.until("p", (p) => containerStatus(p, "i1")?.state?.running);
  assert.equal(first.status?.phase, "Pending");
  assert.equal(containerStatus(first, "i2")?.state?.waiting?.reason, "PodInitializing");
  assert.equal(containerStatus(first, "a")?.state?.waiting?.reason, "PodInitializing");
  assert.equal(condition(first, "Initialized")?.status, "False");
  assert.equal(condition(first, "Initialized")?.reason, "ContainersNotInitialized");
  assert.equal(condition(first, "Initialized")?.message, "containers with incomplete status: [i1 i2]");
  assert.equal(condition(first, "Ready")?.message, "containers with unready status: [a b]");
  await node.advanceUntil("p", (p) => p.status?.phase === "Running" && condition(p, "Ready")?.status === "True");
  const done = (await node.get("p"))!;
  assert.deepEqual(starts, ["i1", "i2", "a", "b"]);
  assert.equal(containerStatus(done, "i1")?.ready, true);
  assert.equal(containerStatus(done, "i1")?.started, false);
  assert.equal(containerStatus(done, "i1")?.state?.terminated?.reason, "Completed");
  assert.equal(condition(done, "Initialized")?.status, "True");
});

test("a failing init container backs off under Always and fails the pod under Never", async (t) => {
  await t.test("Always", async () => {
    let runs = 0;
    await using node = await createHarness({
      script: ({ config }) => (config.name === "i" ? { runMs: 0, exitCode: runs++ < 2 ? 1 : 0 } : {}),
    });
    await node.run("p", { initContainers: [{ name: "i", image }], containers: [{ name: "c" }] });
    await node.advanceUntil("p", (p) => containerStatus(p, "i")?.state?.waiting?.reason === "CrashLoopBackOff");
    assert.equal((await node.get("p"))?.status?.phase, "Pending");
    await node.advanceUntil("p", (p) => p.status?.phase === "Running");
    assert.equal(containerStatus((await node.get("p"))!, "i")?.restartCount, 2);
  });
  await t.test("Never", async () => {
    await using node = await createHarness({ script: () => ({ runMs: 0, exitCode: 1 }) });
    await node.run("p", {
      restartPolicy: "Never",
      initContainers: [{ name: "i", image }],
      containers: [{ name: "c" }],
    });
    const pod = await node.until("p", (p) => p.status?.phase === "Failed");
    assert.equal(containerStatus(pod, "i")?.state?.terminated?.exitCode, 1);
    assert.equal(containerStatus(pod, "c")?.state?.waiting?.reason, "PodInitializing");
    assert.equal(node.engine.containers().length, 1);
  });
});

test("init containers that were removed do not run again while the main ones do", async () => {
  let inits = 0;
  await using node = await createHarness({
    script({ config }) {
      if (config.name !== "i") return {};
      inits++;
      return { runMs: 0 };
    },
  });
  await node.run("p", { initContainers: [{ name: "i", image }], containers: [{ name: "c" }] });
  await node.until("p", (p) => p.status?.phase === "Running");
  await node.kubelet.stop();
  const run = node.engine.containers().find((item) => item.config.name === "i")!;
  await node.engine.removeContainer(run.id);
  await node.restart();
  await node.pass(15_000, 1000);
  assert.equal(inits, 1);
  const pod = (await node.get("p"))!;
  assert.equal(pod.status?.phase, "Running");
  assert.equal(containerStatus(pod, "i")?.state?.terminated?.reason, "Completed");
});

test("a sidecar gates the next by its startup probe, counts as ready, and restarts by itself", async () => {
  const starts: string[] = [];
  await using node = await createHarness({
    script({ config }) {
      starts.push(config.name);
      return { exec: (_command, { runningMs }) => ({ exitCode: runningMs >= 5000 ? 0 : 1 }) };
    },
  });
  await node.run("p", {
    initContainers: [
      {
        name: "s",
        image,
        restartPolicy: "Always",
        startupProbe: { exec: { command: ["x"] }, periodSeconds: 1, failureThreshold: 30 },
      },
    ],
    containers: [{ name: "c" }],
  });
  await node.until("p", (p) => containerStatus(p, "s")?.state?.running);
  await node.pass(3000);
  assert.deepEqual(starts, ["s"]);
  await node.advanceUntil("p", (p) => p.status?.phase === "Running" && condition(p, "Ready")?.status === "True");
  const pod = (await node.get("p"))!;
  assert.deepEqual(starts, ["s", "c"]);
  assert.equal(containerStatus(pod, "s")?.ready, true);
  assert.equal(containerStatus(pod, "s")?.started, true);
  const id = containerStatus(pod, "s")?.containerID?.slice("slim://".length) ?? "";
  node.engine.crash(id, 1);
  await node.advanceUntil("p", (p) => containerStatus(p, "s")?.restartCount === 1 && containerStatus(p, "s")?.ready);
  assert.equal(containerStatus((await node.get("p"))!, "c")?.restartCount, 0);
});

test("sidecars end after the main containers, in reverse order, and do not decide how the pod ended", async () => {
  await using node = await createHarness({
    script: ({ config }) => (config.name === "c" ? { runMs: 3000 } : { onStop: { exitCode: 7, afterMs: 1000 } }),
  });
  await node.run("p", {
    restartPolicy: "Never",
    initContainers: [
      { name: "s1", image, restartPolicy: "Always" },
      { name: "s2", image, restartPolicy: "Always" },
    ],
    containers: [{ name: "c" }],
  });
  await node.advanceUntil("p", (p) => p.status?.phase === "Succeeded");
  const runs = new Map(node.engine.containers().map((run) => [run.config.name, run]));
  const pod = (await node.get("p"))!;
  assert.equal(containerStatus(pod, "s1")?.state?.terminated?.exitCode, 7);
  assert.ok(runs.get("c")!.finishedAt! < runs.get("s2")!.finishedAt!);
  assert.equal(runs.get("s1")!.finishedAt! - runs.get("s2")!.finishedAt!, 1000);
});

test("a pod of twenty containers and one of ten init containers", async () => {
  await using node = await createHarness({
    script: ({ config }) => (config.name.startsWith("i") ? { runMs: 5 } : {}),
  });
  const names = Array.from({ length: 20 }, (_, i) => `c${i}`);
  await node.run("many", { containers: names.map((name) => ({ name })) });
  const inits = Array.from({ length: 10 }, (_, i) => ({ name: `i${i}`, image }));
  await node.run("inits", { initContainers: inits, containers: [{ name: "c" }] });
  await node.until("many", (p) => condition(p, "Ready")?.status === "True");
  await node.advanceUntil("inits", (p) => condition(p, "Ready")?.status === "True", { step: 50 });
  assert.deepEqual(
    (await node.get("inits"))?.status?.initContainerStatuses?.map((status) => status.name),
    inits.map(({ name }) => name),
  );
});

test("an ephemeral container is added to a running pod and never restarted", async () => {
  await using node = await createHarness({
    script: ({ config }) => (config.name === "debug" ? { runMs: 2000, exitCode: 3 } : {}),
  });
  const pod = await node.run("p", { containers: [{ name: "c" }] });
  await node.until("p", (p) => containerStatus(p)?.ready);
  await node.addEphemeral("p", { name: "debug", image, targetContainerName: "c" });
  await node.until("p", (p) => containerStatus(p, "debug")?.state?.running);
  await node.pass(30_000, 1000);
  const after = (await node.get("p"))!;
  assert.equal(after.metadata.uid, pod.metadata.uid);
  assert.equal(containerStatus(after, "debug")?.state?.terminated?.exitCode, 3);
  assert.equal(containerStatus(after, "debug")?.restartCount, 0);
  assert.equal(after.status?.phase, "Running");
  assert.equal(condition(after, "Ready")?.status, "True");
});
