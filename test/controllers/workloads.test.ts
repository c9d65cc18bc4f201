import assert from "node:assert/strict";
import test from "node:test";
import { type Deployment, type Pod, resources, type StatefulSet } from "#kinds";
import { addNode, nodeNamed, startPlane, type TestPlane } from "../support/control-plane.ts";

const at = { namespace: "default" };
const template = (app: string, image = "one") => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: "c", image }] },
});
const selector = (app: string) => ({ matchLabels: { app } });
const meta = (name: string) => ({ name, namespace: "default" });

const podsOf = async ({ client }: TestPlane) => (await client.list(resources.pods, at)).items;

test("Deployment: rollout, scale, undo by template, deletion takes everything along", async () => {
  await using plane = await startPlane();
  const { client, until } = plane;
  const deployment: Deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: meta("web"),
    spec: { replicas: 3, selector: selector("web"), template: template("web") },
  };
  await client.create(resources.deployments, deployment);
  const get = () => client.get(resources.deployments, "web", at);
  const complete = (revision: string) =>
    until(`revision ${revision} is complete`, async () => {
      const d = await get();
      const progressing = d.status?.conditions?.find(({ type }) => type === "Progressing");
      return (
        d.metadata.annotations?.["deployment.kubernetes.io/revision"] === revision &&
        progressing?.reason === "NewReplicaSetAvailable" &&
        d.status?.updatedReplicas === d.spec.replicas &&
        d.status?.replicas === d.spec.replicas &&
        d
      );
    });
  await complete("1");
  for (const [image, revision] of [
    ["two", "2"],
    ["one", "3"],
  ] as const) {
    await client.patch(
      resources.deployments,
      "web",
      { type: "strategic", body: { spec: { template: { spec: { containers: [{ name: "c", image }] } } } } },
      at,
    );
    await complete(revision);
  }
  await client.patch(
    resources.deployments,
    "web",
    { type: "merge", body: { spec: { replicas: 1 } } },
    { ...at, subresource: "scale" },
  );
  await until("scaled", async () => (await get()).status?.replicas === 1);
  assert.equal((await client.list(resources.replicaSets, at)).items.length, 2);
  await client.delete(resources.deployments, "web", { ...at, propagationPolicy: "Foreground" });
  await until(
    "all is gone",
    async () =>
      (await podsOf(plane)).length === 0 &&
      (await client.list(resources.replicaSets, at)).items.length === 0 &&
      (await client.list(resources.deployments, at)).items.length === 0,
  );
});

test("StatefulSet: in order up and down, rolling update from the top, claims kept", async () => {
  await using plane = await startPlane({ which: ["serviceaccount", "statefulset", "garbage-collector"] });
  const { client, until } = plane;
  const order: string[] = [];
  plane.informers.for(resources.pods).onChange({
    add: ({ metadata }) => void order.push(`+${metadata.name}`),
    delete: ({ metadata }) => void order.push(`-${metadata.name}`),
  });
  const set: StatefulSet = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: meta("db"),
    spec: {
      replicas: 3,
      serviceName: "db",
      selector: selector("db"),
      template: template("db"),
    },
  };
  await client.create(resources.statefulSets, set);
  const get = () => client.get(resources.statefulSets, "db", at);
  await until("three are ready", async () => (await get()).status?.readyReplicas === 3);
  assert.deepEqual(order, ["+db-0", "+db-1", "+db-2"]);
  const first = await client.get(resources.pods, "db-0", at);
  assert.equal(first.spec.hostname, "db-0");
  assert.equal(first.spec.subdomain, "db");
  assert.equal(first.metadata.labels?.["apps.kubernetes.io/pod-index"], "0");
  order.length = 0;
  await client.patch(
    resources.statefulSets,
    "db",
    { type: "strategic", body: { spec: { template: { spec: { containers: [{ name: "c", image: "two" }] } } } } },
    at,
  );
  const rolled = await until("rolled", async () => {
    const { status } = await get();
    return status?.observedGeneration === 2 &&
      status.updatedReplicas === 3 &&
      status.currentRevision === status.updateRevision &&
      status.readyReplicas === 3
      ? status
      : undefined;
  });
  assert.deepEqual(order, ["-db-2", "+db-2", "-db-1", "+db-1", "-db-0", "+db-0"]);
  assert.equal(
    (await client.get(resources.pods, "db-0", at)).metadata.labels?.["controller-revision-hash"],
    rolled.currentRevision,
  );
  order.length = 0;
  await client.patch(resources.statefulSets, "db", { type: "merge", body: { spec: { replicas: 1 } } }, at);
  await until("one is left", async () => (await podsOf(plane)).length === 1 && (await get()).status?.replicas === 1);
  assert.deepEqual(order, ["-db-2", "-db-1"]);
  assert.ok((await plane.events("db")).includes("SuccessfulCreate: Create Pod db-0 in StatefulSet db successful"));
  assert.equal((await client.list(resources.controllerRevisions, at)).items.length, 2);
});

test("DaemonSet: a pod on each node that suits, also on new ones; rolling update", async () => {
  await using plane = await startPlane({
    nodes: [nodeNamed("a"), nodeNamed("b"), nodeNamed("c", { labels: { skip: "yes" } })],
    which: ["serviceaccount", "daemonset", "garbage-collector"],
  });
  const { client, until } = plane;
  const notSkipped = {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: "skip", operator: "DoesNotExist" }] }],
    },
  };
  const { metadata, spec } = template("agent");
  await client.create(resources.daemonSets, {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: meta("agent"),
    spec: {
      selector: selector("agent"),
      template: { metadata, spec: { ...spec, affinity: { nodeAffinity: notSkipped } } },
    },
  });
  const get = () => client.get(resources.daemonSets, "agent", at);
  await until("two are ready", async () => (await get()).status?.numberReady === 2);
  await addNode(client, nodeNamed("d"));
  await until("three are ready", async () => (await get()).status?.numberReady === 3);
  assert.deepEqual((await podsOf(plane)).map((pod) => pod.spec.nodeName).sort(), ["a", "b", "d"]);
  await client.patch(
    resources.daemonSets,
    "agent",
    { type: "strategic", body: { spec: { template: { spec: { containers: [{ name: "c", image: "two" }] } } } } },
    at,
  );
  await until("rolled", async () => {
    const { status } = await get();
    return status?.updatedNumberScheduled === 3 && status.numberAvailable === 3 && status.observedGeneration === 2;
  });
  const { status } = await get();
  assert.deepEqual(status, {
    currentNumberScheduled: 3,
    desiredNumberScheduled: 3,
    numberAvailable: 3,
    numberMisscheduled: 0,
    numberReady: 3,
    observedGeneration: 2,
    updatedNumberScheduled: 3,
  });
  await client.patch(resources.nodes, "a", { type: "merge", body: { metadata: { labels: { skip: "yes" } } } });
  await until("gone from a", async () => (await podsOf(plane)).length === 2);
});

test("Jobs, by a CronJob and with a time to live", async () => {
  await using plane = await startPlane({ fate: () => ({ phase: "Succeeded" }) });
  const { client, until } = plane;
  const job = {
    backoffLimit: 1,
    ttlSecondsAfterFinished: 1,
    template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "x" }] } },
  };
  await client.create(resources.jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: meta("once"),
    spec: { ...job, completions: 3, parallelism: 3 },
  } as never);
  await until("complete", async () =>
    (await client.get(resources.jobs, "once", at)).status?.conditions?.some(({ type }) => type === "Complete"),
  );
  assert.equal((await client.get(resources.jobs, "once", at)).status?.succeeded, 3);
  await until(
    "the Job and its pods are gone",
    async () => (await client.list(resources.jobs, at)).items.length === 0 && (await podsOf(plane)).length === 0,
  );
  await client.create(resources.cronJobs, {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: meta("often"),
    spec: { schedule: "@every 1s", jobTemplate: { spec: job } },
  } as never);
  await until(
    "it has run twice",
    async () => (await plane.events("often")).filter((text) => text.startsWith("SawCompletedJob")).length >= 1,
  );
});

test("a namespace goes with all its content", async () => {
  await using plane = await startPlane();
  const { client, until } = plane;
  await client.create(resources.namespaces, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "team" },
    spec: {},
  });
  await until(
    "the default ServiceAccount",
    async () => (await client.list(resources.serviceAccounts, { namespace: "team" })).items.length === 1,
  );
  const deployment: Deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "team" },
    spec: { replicas: 2, selector: selector("web"), template: template("web") },
  };
  await client.create(resources.deployments, deployment);
  await until(
    "ready",
    async () => (await client.get(resources.deployments, "web", { namespace: "team" })).status?.readyReplicas === 2,
  );
  await client.delete(resources.namespaces, "team");
  await until(
    "gone",
    async () => !(await client.list(resources.namespaces)).items.some(({ metadata }) => metadata.name === "team"),
  );
  assert.equal((await client.list(resources.pods, { namespace: "team" })).items.length, 0);
});

test("a pod is bound; 1000 pods of one Deployment become ready", async () => {
  await using plane = await startPlane({ nodes: [nodeNamed("big", { pods: "5000", cpu: "10000" })] });
  const { client, until } = plane;
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: meta("one"),
    spec: { containers: [{ name: "c", image: "x" }] },
  };
  await until("account", async () => (await client.list(resources.serviceAccounts, at)).items.length > 0);
  await client.create(resources.pods, pod);
  await until("bound", async () => (await client.get(resources.pods, "one", at)).spec.nodeName);
  const deployment: Deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: meta("web"),
    spec: { replicas: 1000, selector: selector("web"), template: template("web") },
  };
  await client.create(resources.deployments, deployment);
  await until(
    "1000 ready",
    async () => (await client.get(resources.deployments, "web", at)).status?.readyReplicas === 1000,
    60_000,
  );
});
