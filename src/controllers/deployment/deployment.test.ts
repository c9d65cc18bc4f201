import assert from "node:assert/strict";
import test from "node:test";
import { deepClone } from "#base";
import { type Deployment, resources } from "#kinds";
import { startScheduler } from "../../scheduler/mod.ts";
import { createReplicaSetController } from "../replicaset/replicaset.ts";
import { createHarness, fakeKubelet, type Harness, makeNode } from "../testing/harness.ts";
import { createDeploymentController } from "./deployment.ts";
import { planNew, planOld, planScaling, type RS } from "./plan.ts";

function makeDeployment(spec: Partial<Deployment["spec"]> = {}): Deployment {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default" },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "c", image: "one" }], schedulerName: "default-scheduler" },
      },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      ...spec,
    },
  };
}

async function withControllers(body: (harness: Harness) => Promise<void>): Promise<void> {
  await using harness = createHarness();
  await harness.client.create(resources.nodes, makeNode("n", { cpu: "64" }));
  fakeKubelet(harness);
  await using scheduler = startScheduler(harness.deps);
  await using rs = createReplicaSetController(harness.deps);
  await using deployment = createDeploymentController(harness.deps);
  await Promise.all([scheduler.started, rs.start(), deployment.start()]);
  await body(harness);
}

const get = ({ client }: Harness) => client.get(resources.deployments, "web", { namespace: "default" });
const complete = (harness: Harness, revision = "1") =>
  harness.until(`revision ${revision} is complete`, async () => {
    const d = await get(harness);
    const done = d.status?.conditions?.find(({ type }) => type === "Progressing")?.reason === "NewReplicaSetAvailable";
    const here = d.metadata.annotations?.["deployment.kubernetes.io/revision"] === revision;
    return done && here && d.status?.availableReplicas === d.spec.replicas && d.status?.replicas === d.spec.replicas
      ? d
      : undefined;
  });
const setImage = async (harness: Harness, image: string, more: Partial<Deployment["spec"]> = {}) => {
  for (;;) {
    const d = deepClone<Deployment>(await get(harness));
    d.spec.template.spec.containers[0]!.image = image;
    Object.assign(d.spec, more);
    try {
      return await harness.client.update(resources.deployments, d);
    } catch {}
  }
};

test("a Deployment makes a ReplicaSet, the ReplicaSet its pods; status, conditions and events follow", () =>
  withControllers(async (harness) => {
    await harness.client.create(resources.deployments, makeDeployment());
    const d = await complete(harness);
    const [rs] = (await harness.client.list(resources.replicaSets)).items;
    const hash = rs!.metadata.labels!["pod-template-hash"]!;
    assert.match(hash, /^[bcdfghjklmnpqrstvwxz2456789]{8,10}$/);
    assert.equal(rs!.metadata.name, `web-${hash}`);
    const pods = (await harness.client.list(resources.pods)).items;
    assert.equal(pods.length, 2);
    for (const pod of pods) assert.match(pod.metadata.name, new RegExp(`^web-${hash}-.{5}$`));
    const { conditions, ...counts } = d.status!;
    assert.deepEqual(counts, {
      observedGeneration: 1,
      replicas: 2,
      updatedReplicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      terminatingReplicas: 0,
    });
    assert.deepEqual(
      conditions!.map(({ type, status, reason, message }) => [type, status, reason, message]),
      [
        ["Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability."],
        ["Progressing", "True", "NewReplicaSetAvailable", `ReplicaSet "web-${hash}" has successfully progressed.`],
      ],
    );
    const messages = await harness.messages();
    assert.ok(messages.includes(`ScalingReplicaSet: Scaled up replica set web-${hash} from 0 to 2`));
    assert.ok(messages.includes(`SuccessfulCreate: Created pod: ${pods[0]!.metadata.name}`));
    assert.equal(
      harness.client.writes.filter((write) => write.startsWith("create pods web-") || write.startsWith("create pods "))
        .length,
      2,
    );
  }));

test("a new template rolls, undo returns to the old ReplicaSet under a new revision", () =>
  withControllers(async (harness) => {
    await harness.client.create(resources.deployments, makeDeployment());
    await complete(harness);
    await setImage(harness, "two");
    await complete(harness, "2");
    await setImage(harness, "one");
    await complete(harness, "3");
    const sets = (await harness.client.list(resources.replicaSets)).items;
    assert.equal(sets.length, 2);
    const back = sets.find(({ spec }) => spec.replicas === 2)!;
    assert.equal(back.metadata.annotations!["deployment.kubernetes.io/revision"], "3");
    assert.equal(back.metadata.annotations!["deployment.kubernetes.io/revision-history"], "1");
  }));

test("Recreate waits until every old pod is gone; history is cut to revisionHistoryLimit", () =>
  withControllers(async (harness) => {
    let most = 0;
    harness.informers.for(resources.pods).onChange({
      add() {
        most = Math.max(most, harness.informers.for(resources.pods).list().length);
      },
    });
    await harness.client.create(
      resources.deployments,
      makeDeployment({ strategy: { type: "Recreate" }, revisionHistoryLimit: 1 }),
    );
    await complete(harness);
    await setImage(harness, "two");
    await complete(harness, "2");
    await setImage(harness, "three");
    await complete(harness, "3");
    assert.equal(most, 2);
    await harness.until(
      "one old ReplicaSet is left",
      async () => (await harness.client.list(resources.replicaSets)).items.length === 2,
    );
  }));

test("pause stops a rollout but not scaling; resuming goes on", () =>
  withControllers(async (harness) => {
    await harness.client.create(resources.deployments, makeDeployment());
    await complete(harness);
    await setImage(harness, "two", { paused: true, replicas: 4 });
    await harness.until("scaled while paused", async () => {
      const d = await get(harness);
      return d.status?.replicas === 4 && d.status.conditions?.some(({ reason }) => reason === "DeploymentPaused");
    });
    assert.equal((await harness.client.list(resources.replicaSets)).items.length, 1);
    await setImage(harness, "two", { paused: false });
    await complete(harness, "2");
  }));

test("a ReplicaSet whose pods are refused says so, and recovers", () =>
  withControllers(async (harness) => {
    harness.client.failNext((verb, resource) => verb === "create" && resource === "pods", new Error("no quota"), 2);
    await harness.client.create(resources.deployments, makeDeployment());
    await complete(harness);
    assert.ok((await harness.messages()).includes("FailedCreate: Error creating: no quota"));
    const [rs] = (await harness.client.list(resources.replicaSets)).items;
    assert.equal(rs!.status?.conditions, undefined);
  }));

const rs = (name: string, replicas: number, available: number, max = 13): RS => ({
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  metadata: {
    name,
    creationTimestamp: `2026-01-01T00:00:0${name.length}Z`,
    annotations: {
      "deployment.kubernetes.io/max-replicas": String(max),
      "deployment.kubernetes.io/desired-replicas": "10",
    },
  },
  spec: { replicas, selector: {} },
  status: { replicas, availableReplicas: available },
});
const rolling = (replicas: number, maxSurge: number | string, maxUnavailable: number | string) =>
  makeDeployment({
    replicas,
    strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge, maxUnavailable } } as never,
  });
const sizes = (plan: { rs: RS; replicas: number }[]) => plan.map((step) => [step.rs.metadata.name, step.replicas]);

test("planNew() and planOld(): a rollout step by step", () => {
  const d = rolling(10, 3, 2);
  assert.deepEqual(sizes(planNew(d, rs("bb", 0, 0), [rs("a", 10, 10), rs("bb", 0, 0)])), [["bb", 3]]);
  assert.deepEqual(sizes(planOld(d, rs("bb", 3, 0), [rs("a", 10, 10)])), [["a", 8]]);
  assert.deepEqual(sizes(planNew(d, rs("bb", 3, 0), [rs("a", 8, 8), rs("bb", 3, 0)])), [["bb", 5]]);
  assert.deepEqual(sizes(planOld(d, rs("bb", 5, 0), [rs("a", 8, 8)])), []);
  assert.deepEqual(sizes(planOld(d, rs("bb", 5, 5), [rs("a", 8, 8)])), [["a", 3]]);
  assert.deepEqual(sizes(planOld(d, rs("ccc", 0, 0), [rs("a", 8, 8), rs("bb", 5, 0)])), [["bb", 0]]);
  assert.deepEqual(sizes(planNew(rolling(4, 0, "1%"), rs("bb", 0, 0), [rs("a", 4, 4), rs("bb", 0, 0)])), []);
  assert.deepEqual(sizes(planOld(rolling(4, 0, "1%"), rs("bb", 0, 0), [rs("a", 4, 4)])), [["a", 3]]);
});

test("planScaling(): every ReplicaSet takes its share in the middle of a rollout", () => {
  assert.deepEqual(sizes(planScaling(rolling(20, 3, 2), rs("bb", 5, 0), [rs("a", 8, 8)])), [
    ["a", 14],
    ["bb", 9],
  ]);
  assert.deepEqual(sizes(planScaling(rolling(0, 3, 2), rs("bb", 5, 0), [rs("a", 8, 8)])), [
    ["a", 0],
    ["bb", 0],
  ]);
  assert.deepEqual(sizes(planScaling(rolling(5, 1, 1), rs("bb", 10, 10), [])), [["bb", 5]]);
});
