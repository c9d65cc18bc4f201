import assert from "node:assert/strict";
import test from "node:test";
import { condition, containerStatus, createHarness, type Harness } from "./harness.test-support.ts";

const small = { requests: { cpu: "50m", memory: "32Mi" }, limits: { cpu: "100m", memory: "64Mi" } };
const resize = (node: Harness, resources: object, name = "p") =>
  node.patch(name, { spec: { containers: [{ name: "c", resources }] } }, "resize");
const runOf = (node: Harness, name = "c") => node.engine.containers().find((run) => run.config.name === name)!;

test("cpu and memory change in place: the cgroups, then the status, without a restart", async () => {
  await using node = await createHarness();
  await node.run("p", { containers: [{ name: "c", resources: small }, { name: "d" }] });
  const before = await node.until("p", (p) => condition(p, "Ready")?.status === "True");
  assert.deepEqual(containerStatus(before)?.allocatedResources, small.requests);
  const seen: string[] = [];
  using _watch = await node.watchPods((pod) => {
    const started = condition(pod, "PodResizeInProgress");
    seen.push(
      `${started?.status} ${containerStatus(pod)?.allocatedResources?.["cpu"]} ${containerStatus(pod)?.resources?.requests?.["cpu"]}`,
    );
  });
  await resize(node, { requests: { cpu: "60m" }, limits: { memory: "128Mi" } });
  const after = await node.until("p", (p) => containerStatus(p)?.resources?.requests?.["cpu"] === "60m");
  assert.deepEqual(containerStatus(after)?.resources, {
    requests: { cpu: "60m", memory: "32Mi" },
    limits: { cpu: "100m", memory: "128Mi" },
  });
  assert.equal(containerStatus(after)?.restartCount, 0);
  assert.equal(condition(after, "PodResizeInProgress"), undefined);
  assert.equal(after.status?.observedGeneration, 2);
  assert.deepEqual(after.status?.allocatedResources, { cpu: "60m", memory: "32Mi" });
  assert.ok(seen.includes("True 60m 50m"), seen.join("\n"));
  assert.equal(runOf(node).resources.cpuShares, 61);
  assert.equal(runOf(node).resources.memoryLimitBytes, 128 * 1024 ** 2);
  assert.equal(node.engine.sandboxes()[0]?.config.resources.cpuShares, 61);
  const detail =
    '{"containers":[{"name":"c","resources":{"limits":{"cpu":"100m","memory":"128Mi"},"requests":{"cpu":"60m","memory":"32Mi"}}},{"name":"d","resources":{}}],"generation":2}';
  const events = await node.events("p");
  assert.ok(events.includes(`ResizeStarted Pod resize started: ${detail}`), events.join("\n"));
  assert.ok(events.includes(`ResizeCompleted Pod resize completed: ${detail}`), events.join("\n"));
});

test("a resize policy of RestartContainer restarts that container alone", async () => {
  await using node = await createHarness();
  const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
  await node.run("p", { containers: [{ name: "c", resources: small, resizePolicy }, { name: "d" }] });
  await node.until("p", (p) => condition(p, "Ready")?.status === "True");
  await resize(node, { requests: { memory: "40Mi" } });
  await node.advanceUntil(
    "p",
    (p) => containerStatus(p)?.restartCount === 1 && condition(p, "Ready")?.status === "True",
  );
  const pod = await node.until("p", (p) => !condition(p, "PodResizeInProgress"));
  assert.equal(containerStatus(pod)?.resources?.requests?.["memory"], "40Mi");
  assert.equal(containerStatus(pod, "d")?.restartCount, 0);
  assert.ok((await node.events("p")).includes("Killing Container c resize requires restart"));
});

test("what the node lacks for now is deferred, and given when others leave", async () => {
  await using node = await createHarness();
  await node.run("other", { containers: [{ name: "c", resources: { requests: { cpu: "3" } } }] });
  await node.run("p", { containers: [{ name: "c", resources: small }] });
  await node.until("p", (p) => condition(p, "Ready")?.status === "True");
  await resize(node, { requests: { cpu: "2" }, limits: { cpu: "2" } });
  const waiting = await node.until("p", (p) => condition(p, "PodResizePending"));
  assert.equal(condition(waiting, "PodResizePending")?.reason, "Deferred");
  assert.equal(
    condition(waiting, "PodResizePending")?.message,
    "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
  );
  assert.deepEqual(containerStatus(waiting)?.allocatedResources, small.requests);
  const events = await node.events("p");
  const started = "ResizeDeferred Pod resize OutOfcpu: ";
  assert.ok(
    events.some((event) => event.startsWith(started)),
    events.join("\n"),
  );
  await node.restart();
  await node.pass(2000);
  assert.equal(condition((await node.get("p"))!, "PodResizePending")?.reason, "Deferred");
  await node.delete("other", 0);
  await node.advanceUntil("p", (p) => containerStatus(p)?.resources?.requests?.["cpu"] === "2", { most: 20_000 });
  assert.equal(runOf(node).resources.cpuQuota, 200_000);
  assert.equal(containerStatus((await node.get("p"))!)?.restartCount, 0);
});

test("what no node of this size has is infeasible, and taken back", async () => {
  await using node = await createHarness();
  await node.run("p", { containers: [{ name: "c", resources: small }] });
  await node.until("p", (p) => condition(p, "Ready")?.status === "True");
  await resize(node, { requests: { cpu: "200" }, limits: { cpu: "200" } });
  const pod = await node.until("p", (p) => condition(p, "PodResizePending"));
  assert.equal(condition(pod, "PodResizePending")?.reason, "Infeasible");
  assert.equal(
    condition(pod, "PodResizePending")?.message,
    "Node didn't have enough capacity: cpu, requested: 200000, capacity: 4000",
  );
  await resize(node, small);
  await node.until("p", (p) => !condition(p, "PodResizePending"));
  assert.equal(runOf(node).resources.cpuShares, 51);
});

test("a memory limit is not set below what is used", async () => {
  await using node = await createHarness();
  await node.run("p", { containers: [{ name: "c", resources: small }] });
  await node.until("p", (p) => condition(p, "Ready")?.status === "True");
  await resize(node, { requests: { memory: "1Ki" }, limits: { memory: "512Ki" } });
  const pod = await node.until("p", (p) => condition(p, "PodResizeInProgress")?.reason === "Error");
  assert.match(
    condition(pod, "PodResizeInProgress")?.message ?? "",
    /^cannot decrease memory limits: attempting to set container "c" memory limit \(524288\) below current usage \(1048576\)$/,
  );
  assert.equal(containerStatus(pod)?.resources?.limits?.["memory"], "64Mi");
  assert.equal(containerStatus(pod)?.restartCount, 0);
});

test("resources of the pod as a whole change in its control group, and in containers that have no limit of their own", async () => {
  await using node = await createHarness();
  await node.run("p", {
    resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { cpu: "200m", memory: "64Mi" } },
    containers: [{ name: "c" }, { name: "own", resources: { limits: { memory: "32Mi" } } }],
  });
  await node.until("p", (p) => condition(p, "Ready")?.status === "True");
  await node.patch("p", { spec: { resources: { limits: { cpu: "400m", memory: "128Mi" } } } }, "resize");
  const pod = await node.until(
    "p",
    (p) => p.status?.resources?.limits?.["cpu"] === "400m" && !condition(p, "PodResizeInProgress"),
  );
  assert.equal(node.engine.sandboxes()[0]?.config.resources.cpuQuota, 40_000);
  assert.equal(node.engine.sandboxes()[0]?.config.resources.memoryLimitBytes, 128 * 1024 ** 2);
  assert.equal(runOf(node).resources.memoryLimitBytes, 128 * 1024 ** 2);
  assert.equal(runOf(node, "own").resources.memoryLimitBytes, 32 * 1024 ** 2);
  assert.equal(containerStatus(pod)?.restartCount, 0);
});
