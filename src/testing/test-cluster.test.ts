import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { resources } from "#kinds";
import { useCluster } from "./mod.ts";

const env = useCluster({ before, after });

const pod = (name: string, image: string, more = "") =>
  `{ apiVersion: v1, kind: Pod, metadata: { name: ${name} }, spec: { containers: [{ name: main, image: "${image}" ${more} }] } }`;

test("a container does what was said of its image, and something else at its next start", async () => {
  const namespace = await env.namespace();
  env.play({ image: "worker" }, (_container, run) =>
    run === 0 ? { runMs: 5, exitCode: 1, output: [{ text: "first try" }] } : { output: [{ text: "running" }] },
  );
  await env.cluster.apply(pod("w", "worker:3"), { namespace });
  await env.cluster.waitFor("pod/w", {
    namespace,
    jsonPath: "{.status.containerStatuses[0].restartCount}=1",
    timeoutMs: 30_000,
  });
  await env.cluster.waitFor("pod/w", { namespace });
  assert.deepEqual(env.output("w", { namespace }), ["running"]);
});

test("moved time ends a back-off of minutes at once", async () => {
  const namespace = await env.namespace();
  env.play({ image: "looper" }, { runMs: 10, exitCode: 1 });
  await env.cluster.apply(pod("l", "looper"), { namespace });
  const restarts = async () => {
    const { status } = await env.cluster.client.get(resources.pods, "l", { namespace });
    return status?.containerStatuses?.[0]?.restartCount ?? 0;
  };
  await env.advance(600_000);
  // 0, 10, 30, 70, 150, 310 s, then every five minutes
  const count = await restarts();
  assert.ok(count >= 5 && count <= 8, `${count} restarts in ten minutes`);
});

test("a CronJob runs when its hour comes", async () => {
  const namespace = await env.namespace();
  env.play({ image: "nightly" }, { runMs: 1000 });
  await env.cluster.apply(
    `{ apiVersion: batch/v1, kind: CronJob, metadata: { name: c }, spec: { schedule: "0 * * * *", jobTemplate: { spec: { template: { spec: { restartPolicy: Never, containers: [{ name: main, image: nightly }] } } } } } }`,
    { namespace },
  );
  await env.advance(3600_000 + 5000);
  const { items } = await env.cluster.client.list(resources.jobs, { namespace });
  assert.deepEqual(
    items.map((job) => job.status?.succeeded),
    [1],
  );
});

test("a crash from outside and a pull that fails until it is mended", async () => {
  const namespace = await env.namespace();
  const broken = env.pull("flaky", { code: "pull-not-found", error: "flaky: not found" });
  await env.cluster.apply(pod("f", "flaky"), { namespace });
  await assert.rejects(env.cluster.waitFor("pod/f", { namespace }), /the image "flaky" .* does not exist/);
  broken[Symbol.dispose]();
  await env.advance(30_000);
  await env.cluster.waitFor("pod/f", { namespace });
  env.crash("f", { namespace, exitCode: 9 });
  await env.cluster.waitFor("pod/f", {
    namespace,
    jsonPath: "{.status.containerStatuses[0].lastState.terminated.exitCode}=9",
  });
});

test("reset leaves an empty cluster", async () => {
  await env.cluster.apply(pod("left", "app"));
  await env.reset();
  const { items } = await env.cluster.client.list(resources.pods);
  assert.deepEqual(
    items.filter(({ metadata }) => !metadata.deletionTimestamp),
    [],
  );
});
