import assert from "node:assert/strict";
import test from "node:test";
import { condition, containerStatus, createHarness } from "./harness.test-support.ts";

test("a pull that fails: ErrImagePull, then ImagePullBackOff, then the pod runs; Never does not fail it", async () => {
  let pulls = 0;
  await using node = await createHarness({
    pull: () => (pulls++ < 2 ? { error: "registry says no", code: "pull-failed" } : { afterMs: 500 }),
  });
  await node.run("p", { restartPolicy: "Never", containers: [{ name: "c", image: "example.com/app:v1" }] });
  const first = await node.until("p", (p) => containerStatus(p)?.state?.waiting?.reason === "ErrImagePull");
  assert.equal(containerStatus(first)?.state?.waiting?.message, "registry says no");
  assert.equal(first.status?.phase, "Pending");
  await node.advanceUntil("p", (p) => containerStatus(p)?.state?.waiting?.reason === "ImagePullBackOff");
  assert.equal(
    containerStatus((await node.get("p"))!)?.state?.waiting?.message,
    'Back-off pulling image "example.com/app:v1": ErrImagePull: registry says no',
  );
  await node.advanceUntil("p", (p) => p.status?.phase === "Running");
  assert.equal(pulls, 3);
  const events = (await node.events("p")).join("\n");
  for (const line of [
    /^Pulling Pulling image "example.com\/app:v1"/m,
    /^Failed Failed to pull image "example.com\/app:v1": registry says no/m,
    /^Failed Error: ErrImagePull/m,
    /^BackOff Back-off pulling image "example.com\/app:v1"/m,
    /^Failed Error: ImagePullBackOff/m,
    /^Pulled Successfully pulled image "example.com\/app:v1" in 500ms \(500ms including waiting\)\. Image size: \d+ bytes\./m,
  ]) {
    assert.match(events, line);
  }
});

test("pull policies", async (t) => {
  const present = "slim/busybox:latest";
  const absent = "example.com/app:v1";
  const cases = [
    { policy: "Always", image: present, pulls: 1, waiting: undefined },
    { policy: "IfNotPresent", image: present, pulls: 0, waiting: undefined },
    { policy: "IfNotPresent", image: absent, pulls: 1, waiting: undefined },
    { policy: "Never", image: present, pulls: 0, waiting: undefined },
    { policy: "Never", image: absent, pulls: 0, waiting: "ErrImageNeverPull" },
    { policy: "IfNotPresent", image: "Bad//NAME", pulls: 0, waiting: "InvalidImageName" },
  ];
  for (const { policy, image, pulls, waiting } of cases) {
    await t.test(`${policy}, ${image}`, async () => {
      let pulled = 0;
      await using node = await createHarness({
        pull() {
          pulled++;
          return {};
        },
      });
      await node.run("p", { containers: [{ name: "c", image, imagePullPolicy: policy as "Never" }] });
      const pod = await node.until("p", (p) =>
        waiting ? containerStatus(p)?.state?.waiting?.reason === waiting : containerStatus(p)?.ready,
      );
      assert.equal(pulled, pulls);
      if (waiting === "ErrImageNeverPull") {
        assert.equal(
          containerStatus(pod)?.state?.waiting?.message,
          'Container image "example.com/app:v1" is not present with pull policy of Never',
        );
      }
    });
  }
});

test("a configuration that cannot be made holds the container, which starts once it can", async () => {
  await using node = await createHarness();
  node.configErrors.set("c", 'configmap "settings" not found');
  await node.run("p", { containers: [{ name: "c" }, { name: "d" }] });
  const pod = await node.until("p", (p) => containerStatus(p)?.state?.waiting?.reason === "CreateContainerConfigError");
  assert.equal(containerStatus(pod)?.state?.waiting?.message, 'configmap "settings" not found');
  await node.until("p", (p) => containerStatus(p, "d")?.ready);
  assert.equal(condition((await node.get("p"))!, "Ready")?.message, "containers with unready status: [c]");
  assert.ok((await node.events("p")).includes('Failed Error: configmap "settings" not found'));
  node.configErrors.clear();
  await node.advanceUntil("p", (p) => condition(p, "Ready")?.status === "True", { most: 20_000 });
  assert.equal(containerStatus((await node.get("p"))!)?.restartCount, 0);
});

test("a container that cannot be started", async (t) => {
  for (const policy of ["Never", "Always"] as const) {
    await t.test(policy, async () => {
      await using node = await createHarness({ script: () => ({ startError: 'exec: "nothing": not found' }) });
      await node.run("p", { restartPolicy: policy, containers: [{ name: "c", command: ["nothing"] }] });
      await node.advanceUntil("p", (p) =>
        policy === "Never"
          ? p.status?.phase === "Failed"
          : containerStatus(p)?.state?.waiting?.reason === "CrashLoopBackOff",
      );
      const pod = (await node.get("p"))!;
      const status = containerStatus(pod);
      const ended = policy === "Never" ? status?.state?.terminated : status?.lastState?.terminated;
      assert.equal(ended?.reason, "StartError");
      assert.equal(ended?.exitCode, 128);
      assert.equal(ended?.startedAt, "1970-01-01T00:00:00Z");
      assert.match(ended?.message ?? "", /exec: "nothing": not found/);
      assert.ok((await node.events("p")).some((event) => event.startsWith('Failed Error: exec: "nothing": not found')));
    });
  }
});

test("ends and their reasons", async (t) => {
  const cases = [
    { script: { runMs: 5, exitCode: 0 }, exitCode: 0, reason: "Completed", phase: "Succeeded" },
    { script: { runMs: 5, exitCode: 2 }, exitCode: 2, reason: "Error", phase: "Failed" },
    { script: { runMs: 5, oomKilled: true }, exitCode: 137, reason: "OOMKilled", phase: "Failed" },
  ];
  for (const { script, exitCode, reason, phase } of cases) {
    await t.test(reason, async () => {
      await using node = await createHarness({ script: () => script });
      await node.run("p", { restartPolicy: "Never", containers: [{ name: "c" }] });
      await node.advanceUntil("p", (p) => p.status?.phase === phase, { step: 5 });
      const ended = containerStatus((await node.get("p"))!)?.state?.terminated;
      assert.equal(ended?.exitCode, exitCode);
      assert.equal(ended?.reason, reason);
    });
  }
});

test("termination messages: the file, cut at 4096 bytes; the log only on error and when asked", async (t) => {
  const log = Array.from({ length: 100 }, (_, i) => ({ text: `line ${i}` }));
  const tail = log
    .slice(-80)
    .map(({ text }) => `${text}\n`)
    .join("");
  const cases = [
    { name: "file", script: { writes: { "/dev/termination-log": "bye" } }, message: "bye" },
    {
      name: "long",
      script: { writes: { "/dev/termination-log": `${"x".repeat(10)}${"y".repeat(4096)}` } },
      message: "y".repeat(4096),
    },
    { name: "own path", path: "/tmp/last", script: { writes: { "/tmp/last": "here" } }, message: "here" },
    { name: "log", policy: "FallbackToLogsOnError", script: { output: log }, message: tail },
    { name: "log, success", policy: "FallbackToLogsOnError", script: { output: log, exitCode: 0 }, message: undefined },
    { name: "log not asked for", script: { output: log }, message: undefined },
    {
      name: "long lines",
      policy: "FallbackToLogsOnError",
      script: { output: [{ text: "a".repeat(3000) }] },
      message: `${"a".repeat(2047)}\n`,
    },
  ];
  for (const { name, policy = "File", path, script, message } of cases) {
    await t.test(name, async () => {
      await using node = await createHarness({
        logFiles: true,
        script: () => ({ runMs: 100, exitCode: 1, ...script }),
      });
      await node.run("p", {
        restartPolicy: "Never",
        containers: [
          {
            name: "c",
            terminationMessagePolicy: policy as "File",
            ...(path ? { terminationMessagePath: path } : {}),
          },
        ],
      });
      await node.advanceUntil("p", (p) => containerStatus(p)?.state?.terminated, { step: 50 });
      assert.equal(containerStatus((await node.get("p"))!)?.state?.terminated?.message, message);
    });
  }
});

test("termination messages of many containers share 12 KiB", async () => {
  await using node = await createHarness({
    script: () => ({ runMs: 10, writes: { "/dev/termination-log": "é".repeat(2000) } }),
  });
  const names = ["a", "b", "c", "d", "e", "f"];
  await node.run("p", { restartPolicy: "Never", containers: names.map((name) => ({ name })) });
  await node.advanceUntil("p", (p) => p.status?.phase === "Succeeded", { step: 10 });
  const pod = (await node.get("p"))!;
  for (const name of names) {
    assert.equal(containerStatus(pod, name)?.state?.terminated?.message, "é".repeat(1024));
  }
});

test("volumes that are not ready hold the pod with their event", async () => {
  await using node = await createHarness();
  let ready = false;
  node.volumes.outcome = () =>
    ready
      ? { state: "ready" }
      : {
          state: "waiting",
          events: [{ type: "Warning", reason: "FailedMount", message: "not yet" }],
          retryAfterMs: 60_000,
        };
  await node.run("p", { containers: [{ name: "c" }] });
  await node.pass(3000);
  const pod = (await node.get("p"))!;
  assert.equal(pod.status?.phase, "Pending");
  assert.equal(containerStatus(pod)?.state?.waiting?.reason, "ContainerCreating");
  assert.deepEqual(await node.events("p"), ["FailedMount not yet"]);
  ready = true;
  node.volumes.wake(pod.metadata.uid ?? "");
  await node.until("p", (p) => containerStatus(p)?.ready);
});

test("a sandbox that cannot be made is tried again", async () => {
  let tries = 0;
  await using node = await createHarness({ sandbox: () => (tries++ === 0 ? { error: "no network" } : {}) });
  await node.run("p", { containers: [{ name: "c" }] });
  await node.pass(2000);
  const pod = (await node.get("p"))!;
  assert.equal(condition(pod, "PodReadyToStartContainers")?.status, "False");
  assert.deepEqual(await node.events("p"), ["FailedCreatePodSandBox Failed to create pod sandbox: no network"]);
  await node.advanceUntil("p", (p) => containerStatus(p)?.ready, { most: 20_000 });
  assert.equal(condition((await node.get("p"))!, "PodReadyToStartContainers")?.status, "True");
});

test("readiness gates hold Ready until somebody else sets them, and their conditions are left alone", async () => {
  await using node = await createHarness();
  await node.run("p", { readinessGates: [{ conditionType: "example.com/ok" }], containers: [{ name: "c" }] });
  const pod = await node.until("p", (p) => condition(p, "ContainersReady")?.status === "True");
  assert.equal(condition(pod, "Ready")?.status, "False");
  assert.equal(condition(pod, "Ready")?.reason, "ReadinessGatesNotReady");
  assert.equal(
    condition(pod, "Ready")?.message,
    'corresponding condition of pod readiness gate "example.com/ok" does not exist.',
  );
  await node.pass(5000);
  const since = condition((await node.get("p"))!, "ContainersReady")?.lastTransitionTime;
  await node.patch("p", { status: { conditions: [{ type: "example.com/ok", status: "True" }] } }, "status");
  const ready = await node.until("p", (p) => condition(p, "Ready")?.status === "True");
  assert.equal(condition(ready, "Ready")?.lastTransitionTime, "2026-01-01T00:00:05Z");
  assert.equal(condition(ready, "ContainersReady")?.lastTransitionTime, since);
  assert.equal(condition(ready, "example.com/ok")?.status, "True");
});
