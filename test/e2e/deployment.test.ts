import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import test from "node:test";
import { startInstance, tracesOf, until } from "../support/instance.ts";

const hello = join(import.meta.dirname, "../../examples/hello.yaml");

test("a Deployment and a Job run from kubectl apply to slim down", { timeout: 180_000 }, async (t) => {
  const slim = await startInstance();
  const { kubectl, tryKubectl } = slim;
  const id = createHash("sha256").update(slim.dir).digest("hex").slice(0, 6);
  try {
    await t.test("apply, rollout status, wait", async () => {
      const applied = await kubectl("apply", "-f", hello);
      assert.equal(applied, "deployment.apps/hello created\nservice/hello created\njob.batch/hello-once created\n");
      assert.match(
        await kubectl("rollout", "status", "deployment/hello", "--timeout", "60s"),
        /deployment "hello" successfully rolled out\n$/,
      );
      await kubectl("wait", "--for", "condition=Complete", "job/hello-once", "--timeout", "60s");
      assert.equal(
        await kubectl("apply", "-f", hello),
        "deployment.apps/hello unchanged\nservice/hello unchanged\njob.batch/hello-once unchanged\n",
      );
    });

    await t.test("get shows what kubectl shows of real pods", async () => {
      const pods = await kubectl("get", "pods", "-l", "app=hello");
      assert.match(
        pods,
        /^NAME +READY +STATUS +RESTARTS +AGE\n(hello-[0-9a-z]+-[0-9a-z]{5} +1\/1 +Running +0 +\d+s\n){2}$/,
      );
      assert.match(
        await kubectl("get", "deployment", "hello"),
        /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nhello +2\/2 +2 +2 +\d+s\n$/,
      );
      assert.match(
        await kubectl("get", "job"),
        /^NAME +STATUS +COMPLETIONS +DURATION +AGE\nhello-once +Complete +1\/1 +\d+s +\d+s\n$/,
      );
      const job = await kubectl(
        "get",
        "pods",
        "-l",
        "job-name=hello-once",
        "-o",
        "jsonpath={.items[0].status.phase} {.items[0].status.containerStatuses[0].state.terminated.reason}",
      );
      assert.equal(job, "Succeeded Completed");
    });

    await t.test("logs, exec with exit code, standard input", async () => {
      assert.equal(await kubectl("logs", "deployment/hello"), "serving on port 8080\n");
      assert.equal(await kubectl("logs", "job/hello-once"), "hello from a Job\n");
      const exit = await tryKubectl(["exec", "deployment/hello", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
      assert.deepEqual([exit.code, exit.stdout], [7, "out\n"]);
      assert.match(exit.stderr, /err\ncommand terminated with exit code 7\n$/);
      assert.equal(
        (await tryKubectl(["exec", "-i", "deployment/hello", "--", "cat"], { stdin: "text" })).stdout,
        "text",
      );
    });

    await t.test("scale, set image, history, undo", async () => {
      await kubectl("scale", "deployment/hello", "--replicas", "3");
      await kubectl("rollout", "status", "deployment/hello", "--timeout", "60s");
      await kubectl("set", "env", "deployment/hello", "A=b");
      await kubectl("rollout", "status", "deployment/hello", "--timeout", "60s");
      assert.match(
        await kubectl("rollout", "history", "deployment/hello"),
        /REVISION +CHANGE-CAUSE\n1 +<none>\n2 +<none>\n/,
      );
      await kubectl("rollout", "undo", "deployment/hello");
      await kubectl("rollout", "status", "deployment/hello", "--timeout", "60s");
      assert.match(await kubectl("rollout", "history", "deployment/hello"), /2 +<none>\n3 +<none>\n/);
      await until(
        async () => (await kubectl("get", "pods", "-l", "app=hello", "-o", "name")).trim().split("\n").length === 3,
        "three pods",
      );
    });

    await t.test("a crash of slimd disturbs no workload, and the next start adopts it", async () => {
      const state = () =>
        kubectl(
          "get",
          "pods",
          "-l",
          "app=hello",
          "-o",
          "jsonpath={range .items[*]}{.metadata.name} {.status.podIP} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}{'\\n'}{end}",
        );
      const before = await state();
      await slim.crash();
      await slim.start();
      assert.equal(await state(), before);
      await kubectl("rollout", "status", "deployment/hello", "--timeout", "60s");
      assert.equal(await kubectl("logs", "deployment/hello"), "serving on port 8080\n");
    });

    await t.test("delete removes the Deployment with its pods", async () => {
      await kubectl("delete", "deployment/hello", "job/hello-once", "service/hello");
      await until(async () => (await kubectl("get", "pods", "-o", "name")) === "", "the end of all pods");
    });
  } finally {
    await slim[Symbol.asyncDispose]();
  }
  assert.deepEqual(tracesOf(slim.dir, id), []);
});
