import assert from "node:assert/strict";
import test from "node:test";
import { deepClone } from "#base";
import { type Pod, type PodSpec, resources } from "#kinds";
import { createHarness, type Harness, makeNode, makePod } from "../controllers/testing/harness.ts";
import { startScheduler } from "./mod.ts";

async function withScheduler(
  nodes: ReturnType<typeof makeNode>[],
  body: (harness: Harness) => Promise<void>,
): Promise<void> {
  await using harness = createHarness();
  for (const node of nodes) await harness.client.create(resources.nodes, node);
  await using scheduler = startScheduler(harness.deps);
  await scheduler.started;
  await body(harness);
}

const requests = (cpu: string): Partial<PodSpec> => ({
  containers: [{ name: "c", image: "busybox", resources: { requests: { cpu } } }],
});

async function placed({ client, until }: Harness, name: string): Promise<string> {
  return until(
    `${name} has a node`,
    async () => (await client.get(resources.pods, name, { namespace: "default" })).spec.nodeName,
  );
}

async function refusal({ client, until }: Harness, name: string): Promise<string> {
  return until(`${name} is refused`, async () => {
    const pod = await client.get(resources.pods, name, { namespace: "default" });
    return pod.status?.conditions?.find(({ type }) => type === "PodScheduled")?.message;
  });
}

test("a pod is bound to the node that fits, with an event", () =>
  withScheduler([makeNode("small", { cpu: "1" }), makeNode("large", { cpu: "8" })], async (harness) => {
    await harness.client.create(resources.pods, makePod("a", requests("2")));
    assert.equal(await placed(harness, "a"), "large");
    const messages = await harness.until("event", async () =>
      (await harness.messages()).find((text) => text.startsWith("Scheduled")),
    );
    assert.equal(messages, "Scheduled: Successfully assigned default/a to large");
  }));

const noHelp =
  "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
const noVictims =
  "no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
const hostPort: Partial<PodSpec> = {
  containers: [{ name: "c", image: "busybox", ports: [{ containerPort: 80, hostPort: 8080 }] }],
};
const apart = (kind: "podAffinity" | "podAntiAffinity", app: string): Partial<PodSpec> => ({
  affinity: {
    [kind]: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app } } },
      ],
    },
  },
});
const spread: Partial<PodSpec> = {
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: "zone",
      whenUnsatisfiable: "DoNotSchedule",
      labelSelector: { matchLabels: { app: "web" } },
    },
  ],
};
const claim: Partial<PodSpec> = { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "nope" } }] };

// The texts were compared with kube-scheduler v1.36.3.
for (const [what, spec, expected] of [
  ["more cpu than any node has", requests("100"), `0/1 nodes are available: 1 Insufficient cpu. ${noHelp}`],
  ["more cpu than is left", requests("3500m"), `0/1 nodes are available: 1 Insufficient cpu. ${noVictims}`],
  [
    "an unknown label",
    { nodeSelector: { foo: "bar" } },
    `0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. ${noHelp}`,
  ],
  [
    "a taken host port",
    hostPort,
    `0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. ${noVictims}`,
  ],
  [
    "nobody to be with",
    apart("podAffinity", "none"),
    `0/1 nodes are available: 1 node(s) didn't match pod affinity rules. ${noHelp}`,
  ],
  [
    "someone to be apart from",
    apart("podAntiAffinity", "first"),
    `0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. ${noVictims}`,
  ],
  [
    "no zone label",
    spread,
    `0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label). ${noHelp}`,
  ],
  ["a missing claim", claim, '0/1 nodes are available: persistentvolumeclaim "nope" not found. not found'],
] as const) {
  test(`a pod that doesn't fit says why: ${what}`, () =>
    withScheduler([makeNode("n", { cpu: "4" })], async (harness) => {
      const first = makePod("first", { ...hostPort, containers: deepClone(hostPort.containers!) }, { app: "first" });
      first.spec.containers[0]!.resources = { requests: { cpu: "1" } };
      await harness.client.create(resources.pods, first);
      await placed(harness, "first");
      await harness.client.create(resources.pods, makePod("second", spec as Partial<PodSpec>));
      assert.equal(await refusal(harness, "second"), expected);
    }));
}

test("taints keep pods away that don't tolerate them", () =>
  withScheduler([makeNode("n", { taints: [{ key: "a", value: "b", effect: "NoSchedule" }] })], async (harness) => {
    await harness.client.create(resources.pods, makePod("plain"));
    await harness.client.create(
      resources.pods,
      makePod("tolerant", { tolerations: [{ key: "a", operator: "Exists" }] }),
    );
    assert.equal(await placed(harness, "tolerant"), "n");
    assert.equal(
      await refusal(harness, "plain"),
      `0/1 nodes are available: 1 node(s) had untolerated taint(s). ${noHelp}`,
    );
  }));

test("a refused pod is placed once another is gone, or a node comes", () =>
  withScheduler([makeNode("n", { cpu: "2" })], async (harness) => {
    await harness.client.create(resources.pods, makePod("a", requests("2")));
    await placed(harness, "a");
    await harness.client.create(resources.pods, makePod("b", requests("2")));
    await refusal(harness, "b");
    await harness.client.delete(resources.pods, "a", { namespace: "default", gracePeriodSeconds: 0 });
    assert.equal(await placed(harness, "b"), "n");
    await harness.client.create(resources.pods, makePod("c", requests("2")));
    await refusal(harness, "c");
    await harness.client.create(resources.nodes, makeNode("n2", { cpu: "2" }));
    assert.equal(await placed(harness, "c"), "n2");
  }));

test("a pod of higher priority preempts", () =>
  withScheduler([makeNode("n", { cpu: "2" })], async (harness) => {
    const { client, until } = harness;
    await client.create(resources.pods, makePod("low", { ...requests("2"), priority: 1 }));
    await placed(harness, "low");
    await client.create(resources.pods, makePod("high", { ...requests("2"), priority: 10 }));
    const victim = await until("low is being deleted", async () => {
      const pod = await client.get(resources.pods, "low", { namespace: "default" });
      return pod.metadata.deletionTimestamp ? pod : undefined;
    });
    const condition = victim.status?.conditions?.find(({ type }) => type === "DisruptionTarget");
    assert.equal(condition?.message, "default-scheduler: preempting to accommodate a higher priority pod");
    const high = await client.get(resources.pods, "high", { namespace: "default" });
    assert.equal(high.status?.nominatedNodeName, "n");
    await client.delete(resources.pods, "low", { namespace: "default", gracePeriodSeconds: 0 });
    assert.equal(await placed(harness, "high"), "n");
    assert.ok((await harness.messages()).includes(`Preempted: Preempted by pod ${high.metadata.uid} on node n`));
  }));

test("gated pods and pods of other schedulers are left alone until the gates go", () =>
  withScheduler([makeNode("n")], async (harness) => {
    const { client } = harness;
    await client.create(resources.pods, makePod("other", { schedulerName: "mine" }));
    const gated = await client.create(
      resources.pods,
      makePod("gated", { schedulingGates: [{ name: "example.com/x" }] }),
    );
    await client.create(resources.pods, makePod("plain"));
    await placed(harness, "plain");
    assert.equal((await client.get(resources.pods, "gated", { namespace: "default" })).spec.nodeName, undefined);
    assert.equal((await client.get(resources.pods, "other", { namespace: "default" })).spec.nodeName, undefined);
    const open = deepClone(gated) as Pod;
    open.spec.schedulingGates = [];
    await client.update(resources.pods, open);
    assert.equal(await placed(harness, "gated"), "n");
  }));

test("replicas of one owner spread over nodes", () =>
  withScheduler(
    ["a", "b", "c"].map((name) => makeNode(name)),
    async (harness) => {
      const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "u1", controller: true };
      for (let i = 0; i < 3; i++) {
        const pod = makePod(`web-${i}`);
        pod.metadata.ownerReferences = [owner];
        await harness.client.create(resources.pods, pod);
      }
      const nodes = new Set<string>();
      for (let i = 0; i < 3; i++) nodes.add(await placed(harness, `web-${i}`));
      assert.equal(nodes.size, 3);
    },
  ));
