import assert from "node:assert/strict";
import test from "node:test";
import { deepClone } from "#base";
import {
  type ConfigMap,
  isStatus,
  type Namespace,
  type OwnerReference,
  type Pod,
  resources,
  type Service,
} from "#kinds";
import { startControllers } from "./mod.ts";
import { createHarness, fakeKubelet, type Harness, makeNode, makePod } from "./testing/harness.ts";

async function withControllers(which: string[], body: (harness: Harness) => Promise<void>): Promise<void> {
  await using harness = createHarness();
  await using controllers = startControllers(harness.deps, { which, rootCA: "PEM" });
  await controllers.started;
  await body(harness);
}

const configMap = (
  name: string,
  owner?: { metadata: { name: string; uid?: string } },
  more: Partial<OwnerReference> = {},
): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    name,
    namespace: "default",
    ...(owner
      ? {
          ownerReferences: [
            { apiVersion: "v1", kind: "ConfigMap", name: owner.metadata.name, uid: owner.metadata.uid ?? "", ...more },
          ],
        }
      : {}),
  },
});
const at = { namespace: "default" };
const exists = async ({ client }: Harness, name: string) => {
  try {
    return await client.get(resources.configMaps, name, at);
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
};
const gone = (harness: Harness, name: string) =>
  harness.until(`${name} is gone`, async () => !(await exists(harness, name)));

test("background deletion: dependents go after their owner, through any depth", () =>
  withControllers(["garbage-collector"], async (harness) => {
    const { client } = harness;
    const owner = await client.create(resources.configMaps, configMap("owner"));
    const child = await client.create(resources.configMaps, configMap("child", owner));
    await client.create(resources.configMaps, configMap("grandchild", child));
    await client.create(resources.configMaps, configMap("stranger"));
    await client.delete(resources.configMaps, "owner", at);
    await gone(harness, "grandchild");
    assert.equal(await exists(harness, "child"), undefined);
    assert.ok(await exists(harness, "stranger"));
  }));

test("foreground deletion: the owner stays until its blocking dependents are gone", () =>
  withControllers(["garbage-collector"], async (harness) => {
    const { client } = harness;
    const owner = await client.create(resources.configMaps, configMap("owner"));
    const held = configMap("held", owner, { blockOwnerDeletion: true });
    held.metadata.finalizers = ["example.com/hold"];
    await client.create(resources.configMaps, held);
    await client.create(resources.configMaps, configMap("free", owner));
    await client.delete(resources.configMaps, "owner", { ...at, propagationPolicy: "Foreground" });
    await gone(harness, "free");
    const waiting = await exists(harness, "owner");
    assert.deepEqual(waiting?.metadata.finalizers, ["foregroundDeletion"]);
    const blocked = await harness.until("held is being deleted", async () => {
      const found = await exists(harness, "held");
      return found?.metadata.deletionTimestamp ? found : undefined;
    });
    await client.update(resources.configMaps, {
      ...deepClone(blocked),
      metadata: { ...deepClone(blocked as ConfigMap).metadata, finalizers: [] },
    } as ConfigMap);
    await gone(harness, "owner");
  }));

test("orphaning: dependents lose the reference and stay", () =>
  withControllers(["garbage-collector"], async (harness) => {
    const { client } = harness;
    const owner = await client.create(resources.configMaps, configMap("owner"));
    await client.create(resources.configMaps, configMap("child", owner));
    await client.delete(resources.configMaps, "owner", { ...at, propagationPolicy: "Orphan" });
    await gone(harness, "owner");
    assert.equal((await exists(harness, "child"))?.metadata.ownerReferences, undefined);
  }));

test("an owner that never was, or has another uid, counts as gone; one of two owners keeps a dependent", () =>
  withControllers(["garbage-collector"], async (harness) => {
    const { client } = harness;
    const owner = await client.create(resources.configMaps, configMap("owner"));
    await client.create(resources.configMaps, configMap("lost", { metadata: { name: "nobody", uid: "u-1" } }));
    await client.create(resources.configMaps, configMap("mistaken", { metadata: { name: "owner", uid: "u-2" } }));
    const both = configMap("both", owner);
    both.metadata.ownerReferences!.push({ apiVersion: "v1", kind: "ConfigMap", name: "nobody", uid: "u-3" });
    await client.create(resources.configMaps, both);
    await gone(harness, "lost");
    await gone(harness, "mistaken");
    const kept = await harness.until("the dangling reference is dropped", async () => {
      const found = await exists(harness, "both");
      return found?.metadata.ownerReferences?.length === 1 ? found : undefined;
    });
    assert.equal(kept.metadata.ownerReferences![0]!.uid, owner.metadata.uid);
  }));

test("an owner in another namespace is no owner", () =>
  withControllers(["garbage-collector"], async (harness) => {
    const { client } = harness;
    const foreign = configMap("owner");
    foreign.metadata.namespace = "other";
    const owner = await client.create(resources.configMaps, foreign);
    const child = await client.create(resources.configMaps, configMap("child", owner));
    await gone(harness, "child");
    const event = await harness.until("event", async () =>
      (await harness.messages()).find((text) => text.startsWith("OwnerRefInvalidNamespace")),
    );
    assert.equal(
      event,
      `OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: ${owner.metadata.uid}] does not exist in namespace "default"`,
    );
    assert.ok(child);
  }));

test("a namespace is emptied, pods first, and says what it waits for", () =>
  withControllers(["namespace"], async (harness) => {
    const { client } = harness;
    const namespace: Namespace = {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "default" },
      spec: { finalizers: ["kubernetes"] },
    };
    await client.create(resources.namespaces, namespace);
    const held = configMap("held");
    held.metadata.finalizers = ["example.com/hold"];
    await client.create(resources.configMaps, held);
    await client.create(resources.pods, makePod("p"));
    await client.delete(resources.namespaces, "default");
    const waiting = await harness.until("it names the finalizer", async () => {
      const found = await client.get(resources.namespaces, "default");
      return found.status?.conditions?.find(({ reason }) => reason === "SomeFinalizersRemain");
    });
    assert.equal(
      waiting.message,
      "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
    );
    const deletes = client.writes.filter((write) => write.startsWith("delete "));
    assert.ok(deletes.indexOf("delete pods p") < deletes.indexOf("delete configmaps held"));
    const found = deepClone((await exists(harness, "held"))!) as ConfigMap;
    found.metadata.finalizers = [];
    await client.update(resources.configMaps, found);
    await harness.until(
      "the namespace is gone",
      async () => (await client.list(resources.namespaces)).items.length === 0,
    );
  }));

test("namespaces get a default ServiceAccount and the CA, again when deleted or changed", () =>
  withControllers(["serviceaccount", "root-ca-certificate-publisher"], async (harness) => {
    const { client, until } = harness;
    await client.create(resources.namespaces, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "default" },
      spec: {},
      status: { phase: "Active" },
    });
    const account = () => client.get(resources.serviceAccounts, "default", at).catch(() => undefined);
    const first = await until("account", account);
    const ca = await until("ca", () => exists(harness, "kube-root-ca.crt"));
    assert.deepEqual(ca.data, { "ca.crt": "PEM" });
    await client.delete(resources.serviceAccounts, "default", at);
    await until("account again", async () => {
      const found = await account();
      return found && found.metadata.uid !== first.metadata.uid;
    });
    await client.update(resources.configMaps, { ...deepClone(ca as ConfigMap), data: { "ca.crt": "forged" } });
    await until("ca again", async () => (await exists(harness, "kube-root-ca.crt"))?.data?.["ca.crt"] === "PEM");
  }));

test("EndpointSlices and Endpoints follow pods", () =>
  withControllers(["endpointslice", "endpoints"], async (harness) => {
    const { client, until } = harness;
    fakeKubelet(harness);
    await client.create(resources.nodes, makeNode("n", { labels: { "topology.kubernetes.io/zone": "z1" } }));
    const service: Service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace: "default", labels: { tier: "front" } },
      spec: {
        clusterIP: "10.96.0.9",
        selector: { app: "web" },
        ports: [{ name: "http", port: 80, targetPort: "web", protocol: "TCP" }],
      },
    };
    await client.create(resources.services, service);
    const slices = async () => (await client.list(resources.endpointSlices)).items;
    const empty = await until("a placeholder", async () => (await slices())[0]);
    assert.deepEqual([empty.endpoints, empty.ports], [[], []]);
    const pod = makePod(
      "a",
      { nodeName: "n", containers: [{ name: "c", ports: [{ name: "web", containerPort: 8080 }] }] },
      { app: "web" },
    );
    const { metadata } = await client.create(resources.pods, pod);
    const slice = await until("an endpoint", async () =>
      (await slices()).find((one) => one.endpoints?.[0]?.conditions?.ready),
    );
    assert.match(slice.metadata.name, /^web-.{5}$/);
    assert.deepEqual(slice.ports, [{ name: "http", port: 8080, protocol: "TCP" }]);
    assert.deepEqual(slice.endpoints, [
      {
        addresses: ["10.0.0.1"],
        conditions: { ready: true, serving: true, terminating: false },
        targetRef: { kind: "Pod", namespace: "default", name: "a", uid: metadata.uid },
        nodeName: "n",
        zone: "z1",
      },
    ]);
    assert.deepEqual(slice.metadata.labels, {
      tier: "front",
      "kubernetes.io/service-name": "web",
      "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    const endpoints = await until(
      "endpoints",
      async () => (await client.get(resources.endpoints, "web", at).catch(() => undefined))?.subsets,
    );
    assert.deepEqual(endpoints, [
      {
        addresses: [
          {
            ip: "10.0.0.1",
            nodeName: "n",
            targetRef: { kind: "Pod", namespace: "default", name: "a", uid: metadata.uid },
          },
        ],
        ports: [{ name: "http", port: 8080, protocol: "TCP" }],
      },
    ]);
    await client.delete(resources.pods, "a", at);
    await until("the placeholder again", async () => {
      const [only, more] = await slices();
      return !more && only?.endpoints?.length === 0;
    });
    await client.delete(resources.services, "web", at);
    await until("no endpoints", async () => (await client.list(resources.endpoints)).items.length === 0);
  }));

test("pod GC removes pods of nodes that are gone, and terminated ones beyond the threshold", async () => {
  await using harness = createHarness();
  const { client, until } = harness;
  await client.create(resources.nodes, makeNode("n"));
  for (const name of ["old", "new"]) {
    const pod: Pod = { ...makePod(name, { nodeName: "n" }), status: { phase: "Succeeded" } };
    pod.metadata.creationTimestamp = name === "old" ? "2026-01-01T00:00:00Z" : "2026-01-02T00:00:00Z";
    await client.create(resources.pods, pod);
  }
  await using controllers = startControllers(harness.deps, {
    which: ["pod-garbage-collector"],
    terminatedPodThreshold: 1,
  });
  await controllers.started;
  const names = async () => (await client.list(resources.pods)).items.map(({ metadata }) => metadata.name);
  await until("one is left", async () => (await names()).join() === "new");
  await client.create(resources.pods, {
    ...makePod("unplaced"),
    metadata: { ...makePod("unplaced").metadata, finalizers: [] },
  });
});

test("startControllers() refuses names that it doesn't know", async () => {
  await using harness = createHarness();
  assert.throws(() => startControllers(harness.deps, { which: ["nope"] }), /no controller is called nope; there are: /);
});
