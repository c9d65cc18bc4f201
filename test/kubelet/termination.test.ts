import assert from "node:assert/strict";
import test from "node:test";
import { resources } from "../../src/kinds/mod.ts";
import { condition, containerStatus, createHarness, type Harness } from "./harness.test-support.ts";

const image = "slim/busybox:latest";

/** When each container got its end, milliseconds after `began`, by name. */
const ends = (node: Harness, began: number): Record<string, number> =>
  Object.fromEntries(node.engine.containers().map((run) => [run.config.name, (run.finishedAt ?? Number.NaN) - began]));

test("a deleted pod's object goes as soon as all have stopped, with its codes told before", async () => {
  await using node = await createHarness({ script: () => ({ onStop: { exitCode: 0, afterMs: 3000 } }) });
  const statuses: string[] = [];
  await node.run("p", { containers: [{ name: "c" }] });
  await node.until("p", (p) => containerStatus(p)?.ready);
  using _watch = await node.watchPods((pod) => {
    statuses.push(`${pod.status?.phase} ${containerStatus(pod)?.state?.terminated?.exitCode ?? "-"}`);
  });
  await node.delete("p", 60);
  const pod = (await node.get("p"))!;
  assert.equal(pod.status?.phase, "Running");
  await node.pass(2500);
  assert.ok(await node.get("p"));
  await node.pass(1000);
  await node.gone("p");
  assert.equal(statuses.at(-1), "Succeeded 0");
  assert.deepEqual(node.engine.sandboxes(), []);
  assert.deepEqual(node.engine.containers(), []);
  assert.deepEqual(node.volumes.tornDown.includes(pod.metadata.uid ?? ""), true);
});

test("a stubborn container gets KILL at the end of the grace period; a second, shorter deletion cuts it", async (t) => {
  await t.test("its own time", async () => {
    await using node = await createHarness({ script: () => ({ onStop: "ignore" }) });
    await node.run("p", { terminationGracePeriodSeconds: 7, containers: [{ name: "c" }] });
    await node.until("p", (p) => containerStatus(p)?.ready);
    await node.delete("p");
    await node.pass(6500);
    assert.ok(await node.get("p"));
    await node.pass(1000);
    await node.gone("p");
  });
  await t.test("a shorter one", async () => {
    await using node = await createHarness({ script: () => ({ onStop: "ignore" }) });
    await node.run("p", { terminationGracePeriodSeconds: 600, containers: [{ name: "c" }] });
    await node.until("p", (p) => containerStatus(p)?.ready);
    await node.delete("p");
    await node.pass(3000);
    await node.delete("p", 1);
    await node.pass(5000);
    await node.gone("p");
  });
  await t.test("forced", async () => {
    await using node = await createHarness({ script: () => ({ onStop: "ignore" }) });
    await node.run("p", { terminationGracePeriodSeconds: 600, containers: [{ name: "c" }] });
    await node.until("p", (p) => containerStatus(p)?.ready);
    await node.delete("p", 0);
    await node.gone("p");
    await node.pass(3000);
    assert.deepEqual(node.engine.containers(), []);
  });
});

test("preStop and the stop signal share one budget", async (t) => {
  await t.test("a hook that ends leaves the rest", async () => {
    const runs: { at: number; what: string }[] = [];
    await using node = await createHarness({
      script: () => ({
        onStop: "ignore",
        exec(command) {
          runs.push({ at: node.clock.now(), what: command.join(" ") });
          return { afterMs: 4000 };
        },
      }),
    });
    await node.run("p", {
      terminationGracePeriodSeconds: 10,
      containers: [{ name: "c", lifecycle: { preStop: { exec: { command: ["bye"] } } } }],
    });
    await node.until("p", (p) => containerStatus(p)?.ready);
    const began = node.clock.now();
    await node.delete("p");
    await node.pass(9500);
    assert.ok(await node.get("p"));
    await node.pass(1000);
    await node.gone("p");
    assert.deepEqual(
      runs.map(({ what, at }) => [what, at - began]),
      [["bye", 0]],
    );
  });
  await t.test("one that takes it all leaves two seconds", async () => {
    await using node = await createHarness({
      script: () => ({ onStop: "ignore", exec: () => ({ afterMs: 3_600_000 }) }),
    });
    await node.run("p", {
      terminationGracePeriodSeconds: 5,
      containers: [{ name: "c", lifecycle: { preStop: { exec: { command: ["bye"] } } } }],
    });
    await node.until("p", (p) => containerStatus(p)?.ready);
    await node.delete("p");
    await node.pass(6500);
    assert.ok(await node.get("p"));
    await node.pass(1000);
    await node.gone("p");
  });
  await t.test("sleep", async () => {
    await using node = await createHarness({ script: () => ({ onStop: { exitCode: 0 } }) });
    await node.run("p", { containers: [{ name: "c", lifecycle: { preStop: { sleep: { seconds: 6 } } } }] });
    await node.until("p", (p) => containerStatus(p)?.ready);
    await node.delete("p");
    await node.pass(5500);
    assert.ok(await node.get("p"));
    await node.pass(1000);
    await node.gone("p");
  });
});

test("preStop runs before a probe's kill, not when a container ends by itself", async () => {
  const hooks: string[] = [];
  await using node = await createHarness({
    script: ({ sandbox }) => ({
      ...(sandbox.name === "self" ? { runMs: 2000 } : {}),
      exec(command) {
        if (command[0] === "bye") hooks.push(sandbox.name);
        return { exitCode: command[0] === "live" ? 1 : 0 };
      },
    }),
  });
  const lifecycle = { preStop: { exec: { command: ["bye"] } } };
  await node.run("self", { restartPolicy: "Never", containers: [{ name: "c", lifecycle }] });
  await node.run("probed", {
    containers: [
      { name: "c", lifecycle, livenessProbe: { exec: { command: ["live"] }, periodSeconds: 1, failureThreshold: 1 } },
    ],
  });
  await node.advanceUntil("self", (p) => p.status?.phase === "Succeeded");
  await node.advanceUntil("probed", (p) => (containerStatus(p)?.restartCount ?? 0) >= 1);
  assert.deepEqual([...new Set(hooks)], ["probed"]);
});

test("postStart keeps the container waiting until it ends, and kills it when it fails", async (t) => {
  await t.test("ends", async () => {
    await using node = await createHarness({ script: () => ({ exec: () => ({ afterMs: 3000 }) }) });
    await node.run("p", { containers: [{ name: "c", lifecycle: { postStart: { exec: { command: ["hi"] } } } }] });
    await node.pass(2000);
    const waiting = (await node.get("p"))!;
    assert.equal(containerStatus(waiting)?.state?.waiting?.reason, "ContainerCreating");
    assert.equal(waiting.status?.phase, "Pending");
    await node.advanceUntil("p", (p) => p.status?.phase === "Running");
  });
  await t.test("fails", async () => {
    await using node = await createHarness({ script: () => ({ exec: () => ({ exitCode: 5, stderr: "oh" }) }) });
    await node.run("p", { containers: [{ name: "c", lifecycle: { postStart: { exec: { command: ["hi"] } } } }] });
    await node.advanceUntil("p", (p) => containerStatus(p)?.state?.waiting?.reason === "PostStartHookError");
    await node.advanceUntil("p", (p) => containerStatus(p)?.state?.waiting?.reason === "CrashLoopBackOff");
    const events = await node.events("p");
    assert.ok(
      events.some((event) => event.startsWith("FailedPostStartHook PostStartHook failed")),
      events.join("\n"),
    );
    assert.ok(
      events.some((event) => event.startsWith("Killing FailedPostStartHook")),
      events.join("\n"),
    );
  });
});

test("five containers, hooks and sidecars stop in the documented order", async () => {
  await using node = await createHarness({
    script: ({ config }) => ({ onStop: { exitCode: 0, afterMs: config.name === "b" ? 2000 : 1000 } }),
  });
  await node.run("p", {
    terminationGracePeriodSeconds: 30,
    initContainers: [
      { name: "s1", image, restartPolicy: "Always" },
      { name: "s2", image, restartPolicy: "Always" },
    ],
    containers: [{ name: "a", lifecycle: { preStop: { sleep: { seconds: 4 } } } }, { name: "b" }, { name: "c" }],
  });
  await node.until("p", (p) => condition(p, "Ready")?.status === "True");
  const began = node.clock.now();
  await node.delete("p");
  let seen: Record<string, number> = {};
  node.engine.onEvent((event) => {
    if (event.type === "container-exited") seen = { ...seen, ...ends(node, began) };
  });
  await node.pass(8000, 250);
  await node.gone("p");
  assert.deepEqual(seen, { b: 2000, c: 1000, a: 5000, s2: 6000, s1: 7000 });
});

test("activeDeadlineSeconds fails the pod with its containers' ends, and it stays so", async () => {
  await using node = await createHarness({ script: () => ({ onStop: { exitCode: 0, afterMs: 1000 } }) });
  await node.run("p", { activeDeadlineSeconds: 5, containers: [{ name: "c" }] });
  await node.advanceUntil("p", (p) => p.status?.phase === "Failed", { most: 10_000 });
  await node.pass(5000);
  const pod = (await node.get("p"))!;
  assert.equal(pod.status?.reason, "DeadlineExceeded");
  assert.equal(pod.status?.message, "Pod was active on the node longer than the specified deadline");
  assert.equal(containerStatus(pod)?.state?.terminated?.exitCode, 0);
  assert.equal(pod.status?.phase, "Failed");
  assert.equal(condition(pod, "Ready")?.status, "False");
});

test("a terminal phase never changes, whatever is written or lost", async () => {
  await using node = await createHarness({ script: () => ({ runMs: 100, exitCode: 1 }) });
  await node.run("p", { restartPolicy: "Never", containers: [{ name: "c" }] });
  await node.advanceUntil("p", (p) => p.status?.phase === "Failed");
  await node.kubelet.stop();
  for (const sandbox of node.engine.sandboxes()) await node.engine.removeSandbox(sandbox.id);
  await node.restart();
  await node.pass(5000);
  const pod = (await node.get("p"))!;
  assert.equal(pod.status?.phase, "Failed");
  assert.equal(containerStatus(pod)?.state?.terminated?.exitCode, 1);
  assert.equal(node.engine.containers().length, 0);
});

test("a kubelet that starts in the middle of a deletion finishes it", async () => {
  await using node = await createHarness({ script: () => ({ onStop: { exitCode: 0, afterMs: 5000 } }) });
  await node.run("p", { containers: [{ name: "c" }] });
  await node.until("p", (p) => containerStatus(p)?.ready);
  await node.delete("p", 30);
  await node.pass(1000);
  await node.restart();
  await node.pass(6000);
  await node.gone("p");
  assert.deepEqual(node.engine.sandboxes(), []);
});

test("what ran of a pod that was deleted while no kubelet ran is removed", async () => {
  await using node = await createHarness();
  await node.run("p", { containers: [{ name: "c" }] });
  await node.until("p", (p) => containerStatus(p)?.ready);
  await node.kubelet.stop();
  await node.client.delete(resources.pods, "p", { namespace: "default", gracePeriodSeconds: 0 });
  await node.restart();
  await node.pass(5000);
  assert.deepEqual(node.engine.containers(), []);
  assert.deepEqual(node.engine.sandboxes(), []);
});

test("a hundred pods deleted at once are gone when their processes are", async () => {
  await using node = await createHarness({ script: () => ({ onStop: { exitCode: 0, afterMs: 200 } }) });
  const names = Array.from({ length: 100 }, (_, i) => `p${i}`);
  await Promise.all(names.map((name) => node.run(name, { containers: [{ name: "c" }] })));
  for (const name of names) await node.until(name, (p) => containerStatus(p)?.ready);
  await Promise.all(names.map((name) => node.delete(name)));
  await node.pass(1000, 100);
  for (const name of names) await node.gone(name);
  assert.deepEqual(node.engine.containers(), []);
});
