import assert from "node:assert/strict";
import test from "node:test";
import { startInstance, until } from "../support/instance.ts";

const pod = (name: string, command: string, more: object = {}, container: object = {}) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "c", image: "slim/busybox:latest", command: ["sh", "-c", command], ...container }],
      ...more,
    },
  });

test("how containers end is told truthfully", { timeout: 180_000 }, async (t) => {
  const slim = await startInstance();
  try {
    const apply = async (json: string) => {
      const outcome = await slim.tryKubectl(["apply", "-f", "-"], { stdin: json });
      assert.equal(outcome.code, 0, outcome.stderr);
    };
    const get = (name: string, path: string) => slim.kubectl("get", "pod", name, "-o", `jsonpath=${path}`);
    const state = async (name: string) => JSON.parse((await get(name, "{.status.containerStatuses[0].state}")) || "{}");
    const phase = async (name: string, wanted: string) =>
      until(async () => (await get(name, "{.status.phase}")) === wanted, `${name} ${wanted}`);

    await t.test("exit 0 and exit 3", async () => {
      await apply(pod("ok", "echo done > /dev/termination-log"));
      await apply(pod("bad", "exit 3"));
      await phase("ok", "Succeeded");
      await phase("bad", "Failed");
      const { terminated: ok } = await state("ok");
      assert.deepEqual([ok.exitCode, ok.reason, ok.message], [0, "Completed", "done\n"]);
      const { terminated: bad } = await state("bad");
      assert.deepEqual([bad.exitCode, bad.reason], [3, "Error"]);
    });

    await t.test("a command that is not there", async () => {
      await apply(pod("missing", "", {}, { command: ["/no/such"] }));
      await phase("missing", "Failed");
      const { terminated } = await state("missing");
      assert.deepEqual([terminated.exitCode, terminated.reason], [128, "StartError"]);
      assert.match(terminated.message, /\/no\/such.*no such file or directory/);
    });

    await t.test("out of memory", async () => {
      await apply(pod("oom", "x=a; while :; do x=$x$x; done", {}, { resources: { limits: { memory: "20Mi" } } }));
      await phase("oom", "Failed");
      const { terminated } = await state("oom");
      assert.deepEqual([terminated.exitCode, terminated.reason], [137, "OOMKilled"]);
    });

    await t.test("a crash loop backs off", async () => {
      await apply(pod("loop", "exit 4", { restartPolicy: "Always" }));
      await until(async () => (await state("loop")).waiting?.reason === "CrashLoopBackOff", "CrashLoopBackOff");
      const last = JSON.parse(await get("loop", "{.status.containerStatuses[0].lastState}"));
      assert.deepEqual([last.terminated.exitCode, last.terminated.reason], [4, "Error"]);
      assert.match(
        (await state("loop")).waiting.message,
        /^back-off 10s restarting failed container=c pod=loop_default\([0-9a-f-]{36}\)$/,
      );
    });

    await t.test("an image that may not be pulled and one with a bad name", async () => {
      await apply(pod("never", "", {}, { image: "example.test/none:1", imagePullPolicy: "Never" }));
      await until(async () => (await state("never")).waiting?.reason === "ErrImageNeverPull", "ErrImageNeverPull");
      assert.equal(
        (await state("never")).waiting.message,
        'Container image "example.test/none:1" is not present with pull policy of Never',
      );
      await apply(pod("name", "", {}, { image: "Example:::1" }));
      await until(async () => (await state("name")).waiting?.reason === "InvalidImageName", "InvalidImageName");
    });

    await t.test("a stubborn process is killed after its grace period", async () => {
      await apply(pod("stubborn", "trap '' TERM; while :; do sleep 1; done"));
      await phase("stubborn", "Running");
      await slim.kubectl("delete", "pod", "stubborn", "--grace-period", "1");
      assert.equal((await slim.tryKubectl(["get", "pod", "stubborn"])).code, 1);
    });
  } finally {
    await slim[Symbol.asyncDispose]();
  }
});
