import assert from "node:assert/strict";
import test from "node:test";
import { condition, containerStatus, createHarness } from "./harness.test-support.ts";

test("a pod with one container runs, and its status comes back", async () => {
  await using node = await createHarness();
  await node.run("one", { containers: [{ name: "c", command: ["sleep", "1000"] }] });
  const pod = await node.until("one", (p) => p.status?.phase === "Running");
  const status = containerStatus(pod);
  assert.equal(status?.ready, true);
  assert.equal(status?.started, true);
  assert.equal(status?.restartCount, 0);
  assert.equal(status?.image, "docker.io/slim/busybox:latest");
  assert.match(status?.containerID ?? "", /^slim:\/\/[0-9a-f]{64}$/);
  assert.deepEqual(status?.state, { running: { startedAt: "2026-01-01T00:00:00Z" } });
  assert.deepEqual(status?.user, { linux: { uid: 0, gid: 0, supplementalGroups: [0] } });
  assert.equal(pod.status?.podIP, "10.244.0.2");
  assert.deepEqual(pod.status?.hostIPs, [{ ip: "192.0.2.1" }]);
  assert.equal(pod.status?.qosClass, "BestEffort");
  assert.equal(pod.status?.observedGeneration, 1);
  assert.deepEqual(
    pod.status?.conditions?.map(({ type, status: state }) => `${type}=${state}`),
    ["PodReadyToStartContainers=True", "Initialized=True", "Ready=True", "ContainersReady=True", "PodScheduled=True"],
  );
  assert.equal(condition(pod, "Ready")?.observedGeneration, 1);
  assert.deepEqual(await node.events("one"), [
    'Pulled Container image "slim/busybox:latest" already present on machine and can be accessed by the pod',
    "Created Container created",
    "Started Container started",
  ]);
});
