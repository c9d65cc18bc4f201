import assert from "node:assert/strict";
import test from "node:test";
import { containerStatus, createHarness } from "./harness.test-support.ts";

test("restart delays double from 10 s to 5 min, and a long run begins them afresh", async () => {
  let runs = 0;
  await using node = await createHarness({
    script: () => (runs++ === 7 ? { runMs: 660_000, exitCode: 1 } : { runMs: 0, exitCode: 1 }),
  });
  await node.run("crash", { containers: [{ name: "c" }] });
  const delays: number[] = [];
  let ended = node.clock.now();
  for (let count = 1; count <= 8; count++) {
    await node.advanceUntil("crash", (p) => containerStatus(p)?.restartCount === count, { step: 2000, most: 700_000 });
    const id = containerStatus((await node.get("crash"))!)?.containerID?.slice("slim://".length) ?? "";
    const run = node.engine.container(id)!;
    delays.push(Math.floor((run.createdAt - ended) / 10_000) * 10);
    if (count === 7) break;
    ended = run.finishedAt ?? run.createdAt;
  }
  assert.deepEqual(delays, [0, 10, 20, 40, 80, 160, 300]);
  await node.advanceUntil("crash", (p) => containerStatus(p)?.restartCount === 8, { step: 5000, most: 700_000 });
  const waiting = await node.until("crash", (p) => containerStatus(p)?.state?.waiting?.reason === "CrashLoopBackOff");
  assert.match(
    containerStatus(waiting)?.state?.waiting?.message ?? "",
    /^back-off 10s restarting failed container=c pod=crash_default\([0-9a-f-]{36}\)$/,
  );
});

test("what becomes of an exit, by policy", async (t) => {
  const cases = [
    { policy: "Always", code: 0, phase: "Running", again: true, reason: "Completed" },
    { policy: "Always", code: 3, phase: "Running", again: true, reason: "Error" },
    { policy: "OnFailure", code: 0, phase: "Succeeded", again: false, reason: "Completed" },
    { policy: "OnFailure", code: 3, phase: "Running", again: true, reason: "Error" },
    { policy: "Never", code: 0, phase: "Succeeded", again: false, reason: "Completed" },
    { policy: "Never", code: 3, phase: "Failed", again: false, reason: "Error" },
  ] as const;
  for (const { policy, code, phase, again, reason } of cases) {
    await t.test(`${policy}, exit ${code}`, async () => {
      await using node = await createHarness({ script: () => ({ runMs: 0, exitCode: code }) });
      await node.run("p", { restartPolicy: policy, containers: [{ name: "c" }] });
      await node.advanceUntil("p", (p) =>
        again ? containerStatus(p)?.state?.waiting?.reason === "CrashLoopBackOff" : p.status?.phase === phase,
      );
      const pod = (await node.get("p"))!;
      const status = containerStatus(pod);
      const ended = again ? status?.lastState?.terminated : status?.state?.terminated;
      assert.equal(pod.status?.phase, phase);
      assert.equal(ended?.exitCode, code);
      assert.equal(ended?.reason, reason);
      assert.equal(status?.ready, false);
      assert.equal(status?.restartCount, again ? 1 : 0);
    });
  }
});

test("a container's own restart policy and rules come before the pod's", async (t) => {
  const rules = [{ action: "Restart" as const, exitCodes: { operator: "In" as const, values: [42] } }];
  const cases = [
    { name: "own policy restarts under Never", own: { restartPolicy: "Always" }, code: 1, count: 1 },
    {
      name: "a rule restarts under Never",
      own: { restartPolicy: "Never", restartPolicyRules: rules },
      code: 42,
      count: 1,
    },
    {
      name: "another code follows the policy",
      own: { restartPolicy: "Never", restartPolicyRules: rules },
      code: 41,
      count: 0,
    },
  ];
  for (const { name, own, code, count } of cases) {
    await t.test(name, async () => {
      let runs = 0;
      await using node = await createHarness({
        script: ({ config }) => (config.name === "c" && runs++ === 0 ? { runMs: 1000, exitCode: code } : {}),
      });
      await node.run("p", { restartPolicy: "Never", containers: [{ name: "c", ...own }, { name: "other" }] });
      await node.until("p", (p) => containerStatus(p)?.state?.running);
      await node.pass(15_000, 1000);
      const pod = (await node.get("p"))!;
      assert.equal(containerStatus(pod)?.restartCount, count);
      assert.equal(containerStatus(pod, "other")?.restartCount, 0);
      assert.equal(pod.status?.phase, "Running");
    });
  }
});

test("RestartAllContainers starts the whole pod again in its sandbox", async () => {
  let failed = false;
  await using node = await createHarness({
    script({ config }) {
      if (config.name === "init") return { runMs: 0 };
      if (config.name !== "c" || failed) return {};
      failed = true;
      return { runMs: 1000, exitCode: 42 };
    },
  });
  await node.run("p", {
    restartPolicy: "Never",
    initContainers: [{ name: "init", image: "slim/busybox:latest" }],
    containers: [
      {
        name: "c",
        restartPolicy: "Never",
        restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [42] } }],
      },
      { name: "other" },
    ],
  });
  const before = await node.until(
    "p",
    (p) => containerStatus(p, "other")?.state?.running && containerStatus(p)?.state?.running,
  );
  await node.advanceUntil(
    "p",
    (p) => containerStatus(p, "other")?.restartCount === 1 && containerStatus(p, "other")?.ready,
  );
  const after = (await node.get("p"))!;
  assert.equal(containerStatus(after)?.restartCount, 1);
  assert.equal(containerStatus(after, "init")?.restartCount, 1);
  assert.equal(after.status?.podIP, before.status?.podIP);
  assert.equal(after.status?.phase, "Running");
});

test("a lost sandbox is replaced, init containers run again", async () => {
  await using node = await createHarness({
    script: ({ config }) => (config.name === "init" ? { runMs: 0 } : {}),
  });
  await node.run("p", {
    initContainers: [{ name: "init", image: "slim/busybox:latest" }],
    containers: [{ name: "c" }],
  });
  const before = await node.until("p", (p) => containerStatus(p)?.ready);
  const [sandbox] = node.engine.sandboxes();
  node.engine.loseSandbox(sandbox!.id);
  await node.advanceUntil("p", (p) => containerStatus(p)?.restartCount === 1 && containerStatus(p)?.ready);
  const after = (await node.get("p"))!;
  assert.equal(node.engine.sandboxes().filter((s) => s.state === "ready").length, 1);
  assert.equal(containerStatus(after, "init")?.restartCount, 1);
  assert.notEqual(containerStatus(after)?.containerID, containerStatus(before)?.containerID);
  assert.equal(containerStatus(after)?.lastState?.terminated?.exitCode, 137);
  assert.ok((await node.events("p")).includes("SandboxChanged Pod sandbox changed, it will be killed and re-created."));
});

test("after a lost sandbox nothing starts under OnFailure when all had succeeded, nor under Never", async (t) => {
  await t.test("OnFailure", async () => {
    await using node = await createHarness({ script: () => ({ runMs: 0 }) });
    await node.run("p", { restartPolicy: "OnFailure", containers: [{ name: "c" }] });
    await node.until("p", (p) => p.status?.phase === "Succeeded");
    for (const sandbox of node.engine.sandboxes()) node.engine.loseSandbox(sandbox.id);
    await node.pass(20_000, 2000);
    assert.equal((await node.get("p"))?.status?.phase, "Succeeded");
    assert.equal(node.engine.containers().length, 1);
  });
  await t.test("Never", async () => {
    await using node = await createHarness();
    await node.run("p", { restartPolicy: "Never", containers: [{ name: "c" }] });
    await node.until("p", (p) => containerStatus(p)?.ready);
    node.engine.loseSandbox(node.engine.sandboxes()[0]!.id);
    await node.advanceUntil("p", (p) => p.status?.phase === "Failed", { most: 30_000 });
    assert.equal(containerStatus((await node.get("p"))!)?.state?.terminated?.exitCode, 137);
    assert.equal(node.engine.containers().length, 1);
  });
});

test("the restart count only grows: over restarts of the kubelet and when dead runs were removed", async () => {
  let runs = 0;
  await using node = await createHarness({ script: () => (runs++ < 2 ? { runMs: 0, exitCode: 1 } : {}) });
  await node.run("p", { containers: [{ name: "c" }] });
  await node.advanceUntil("p", (p) => containerStatus(p)?.restartCount === 2 && containerStatus(p)?.ready);
  const before = (await node.get("p"))!;
  await node.restart();
  await node.pass(3000);
  const after = (await node.get("p"))!;
  assert.deepEqual(after.status, before.status);
  assert.equal(containerStatus(after)?.lastState?.terminated?.exitCode, 1);
  const id = containerStatus(after)?.containerID?.slice("slim://".length) ?? "";
  await node.kubelet.stop();
  for (const run of node.engine.containers()) if (run.id !== id) await node.engine.removeContainer(run.id);
  await node.restart();
  node.engine.crash(id, 9);
  await node.advanceUntil("p", (p) => containerStatus(p)?.restartCount === 3);
  assert.equal(containerStatus((await node.get("p"))!)?.lastState?.terminated?.exitCode, 9);
});

test("a container whose image changes is replaced without the pod ever being seen unready", async () => {
  await using node = await createHarness({ images: ["slim/busybox:latest", "slim/other:latest"] });
  await node.run("p", { containers: [{ name: "c" }] });
  await node.until("p", (p) => containerStatus(p)?.ready);
  const seen: string[] = [];
  using _watch = await node.watchPods((pod) => {
    const status = containerStatus(pod);
    seen.push(
      `${status?.restartCount} ${status?.ready} ${pod.status?.conditions?.find(({ type }) => type === "Ready")?.status}`,
    );
  });
  await node.patch("p", { spec: { containers: [{ name: "c", image: "slim/other:latest" }] } });
  await node.advanceUntil("p", (p) => containerStatus(p)?.restartCount === 1 && containerStatus(p)?.ready);
  const pod = (await node.get("p"))!;
  assert.equal(containerStatus(pod)?.image, "docker.io/slim/other:latest");
  assert.equal(containerStatus(pod)?.lastState?.terminated?.exitCode, 143);
  assert.deepEqual([...new Set(seen)], ["0 true True", "1 true True"]);
  assert.ok((await node.events("p")).includes("Killing Container c definition changed, will be restarted"));
});
