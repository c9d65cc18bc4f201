import assert from "node:assert/strict";
import test from "node:test";
import { deepClone } from "#base";
import { type Node, type PersistentVolumeClaim, type Pod, resources } from "#kinds";
import { nodeNamed, startPlane, type TestPlane } from "../support/control-plane.ts";

const at = { namespace: "default" };
const pod = (name: string, spec: Partial<Pod["spec"]> = {}, labels: Record<string, string> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default", labels },
  spec: { containers: [{ name: "c", image: "x" }], ...spec },
});
const account = (plane: TestPlane) =>
  plane.until("the account", async () => (await plane.client.list(resources.serviceAccounts, at)).items.length > 0);

test("local-path: the claim waits for its pod, the volume is made on the node, and goes with the claim", async () => {
  const removed: string[] = [];
  await using plane = await startPlane({
    localPath: { root: "/data/volumes", removeDirectory: async (path) => void removed.push(path) },
  });
  const { client, until } = plane;
  await account(plane);
  const claim: PersistentVolumeClaim = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data", namespace: "default" },
    spec: {
      storageClassName: "local-path",
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
    },
  };
  await client.create(resources.persistentVolumeClaims, claim);
  const get = () => client.get(resources.persistentVolumeClaims, "data", at);
  await until("it waits", async () =>
    (await plane.events("data")).includes(
      "WaitForFirstConsumer: waiting for first consumer to be created before binding",
    ),
  );
  await client.create(
    resources.pods,
    pod("user", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] }),
  );
  await until("the pod runs", async () => (await client.get(resources.pods, "user", at)).status?.phase === "Running");
  const bound = await get();
  assert.equal(bound.status?.phase, "Bound");
  assert.deepEqual(bound.status?.capacity, { storage: "1Gi" });
  assert.deepEqual(bound.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
  const name = `pvc-${bound.metadata.uid}`;
  const volume = await client.get(resources.persistentVolumes, name);
  assert.equal(volume.status?.phase, "Bound");
  assert.equal(volume.spec.hostPath?.path, `/data/volumes/${name}_default_data`);
  await client.delete(resources.persistentVolumeClaims, "data", at);
  await plane.informers.for(resources.pods).synced();
  assert.ok((await get()).metadata.deletionTimestamp, "the claim is in use");
  await client.delete(resources.pods, "user", at);
  await until(
    "all is gone",
    async () =>
      (await client.list(resources.persistentVolumes)).items.length === 0 &&
      (await client.list(resources.persistentVolumeClaims)).items.length === 0,
  );
  assert.deepEqual(removed, [`/data/volumes/${name}_default_data`]);
});

test("static volumes are bound by size and class, released and kept", async () => {
  await using plane = await startPlane();
  const { client, until } = plane;
  for (const [name, storage] of [
    ["small", "1Gi"],
    ["large", "10Gi"],
  ] as const) {
    await client.create(resources.persistentVolumes, {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name },
      spec: {
        capacity: { storage },
        accessModes: ["ReadWriteOnce"],
        hostPath: { path: `/srv/${name}` },
        persistentVolumeReclaimPolicy: "Retain",
      },
    });
  }
  await until("available", async () =>
    (await client.list(resources.persistentVolumes)).items.every(({ status }) => status?.phase === "Available"),
  );
  await client.create(resources.persistentVolumeClaims, {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data", namespace: "default" },
    spec: { storageClassName: "", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "2Gi" } } },
  });
  await until(
    "bound",
    async () => (await client.get(resources.persistentVolumeClaims, "data", at)).status?.phase === "Bound",
  );
  assert.equal((await client.get(resources.persistentVolumeClaims, "data", at)).spec.volumeName, "large");
  await client.delete(resources.persistentVolumeClaims, "data", at);
  await until(
    "released",
    async () => (await client.get(resources.persistentVolumes, "large")).status?.phase === "Released",
  );
});

test("a generic ephemeral volume has a claim of its own that goes with the pod", async () => {
  await using plane = await startPlane({ localPath: { root: "/data", removeDirectory: async () => {} } });
  const { client, until } = plane;
  await account(plane);
  const spec = {
    storageClassName: "local-path",
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
  };
  await client.create(
    resources.pods,
    pod("user", { volumes: [{ name: "scratch", ephemeral: { volumeClaimTemplate: { spec } } }] }),
  );
  await until("the pod runs", async () => (await client.get(resources.pods, "user", at)).status?.phase === "Running");
  assert.equal((await client.get(resources.persistentVolumeClaims, "user-scratch", at)).status?.phase, "Bound");
  await client.delete(resources.pods, "user", at);
  await until(
    "the claim is gone",
    async () => (await client.list(resources.persistentVolumeClaims)).items.length === 0,
  );
});

test("a PodDisruptionBudget says how many pods may go", async () => {
  await using plane = await startPlane();
  const { client, until } = plane;
  await account(plane);
  await client.create(resources.podDisruptionBudgets, {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "web", namespace: "default" },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
  });
  for (const name of ["a", "b", "c"]) await client.create(resources.pods, pod(name, {}, { app: "web" }));
  const { status } = await until("two may go", async () => {
    const found = await client.get(resources.podDisruptionBudgets, "web", at);
    return found.status?.disruptionsAllowed === 2 ? found : undefined;
  });
  const { conditions, ...counts } = status!;
  assert.deepEqual(counts, {
    observedGeneration: 1,
    disruptionsAllowed: 2,
    currentHealthy: 3,
    desiredHealthy: 1,
    expectedPods: 3,
  });
  assert.deepEqual([conditions?.[0]?.reason, conditions?.[0]?.status], ["SufficientPods", "True"]);
});

test("a ResourceQuota counts what its namespace uses", async () => {
  await using plane = await startPlane();
  const { client, until } = plane;
  await account(plane);
  const hard = {
    pods: "10",
    "requests.cpu": "2",
    services: "3",
    "count/deployments.apps": "4",
    "limits.memory": "1Gi",
  };
  await client.create(resources.resourceQuotas, {
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata: { name: "q", namespace: "default" },
    spec: { hard },
  });
  const request = { requests: { cpu: "250m" }, limits: { memory: "64Mi" } };
  for (const name of ["a", "b"])
    await client.create(resources.pods, pod(name, { containers: [{ name: "c", image: "x", resources: request }] }));
  const used = (wanted: Record<string, string>) =>
    until(JSON.stringify(wanted), async () => {
      const { status } = await client.get(resources.resourceQuotas, "q", at);
      return Object.entries(wanted).every(([name, amount]) => status?.used?.[name] === amount) ? status : undefined;
    });
  const status = await used({
    pods: "2",
    "requests.cpu": "500m",
    services: "0",
    "count/deployments.apps": "0",
    "limits.memory": "128Mi",
  });
  assert.deepEqual(status.hard, hard);
  await client.delete(resources.pods, "a", at);
  await used({ pods: "1", "requests.cpu": "250m", "limits.memory": "64Mi" });
});

test("a node that is not ready is tainted, and its pods go after their patience", async () => {
  await using plane = await startPlane({ nodes: [nodeNamed("a")] });
  const { client, until } = plane;
  await account(plane);
  await client.create(resources.pods, pod("patient", { tolerations: [{ operator: "Exists" }] }));
  await client.create(
    resources.pods,
    pod("hasty", {
      tolerations: [
        { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 1 },
      ],
    }),
  );
  for (const name of ["patient", "hasty"])
    await until("running", async () => (await client.get(resources.pods, name, at)).status?.phase === "Running");
  const set = async (ready: "True" | "False") => {
    const node = deepClone(await client.get(resources.nodes, "a")) as Node;
    node.status!.conditions = [{ type: "Ready", status: ready }];
    await client.update(resources.nodes, node, { subresource: "status" });
  };
  await set("False");
  const taints = async () =>
    ((await client.get(resources.nodes, "a")).spec.taints ?? []).map(({ key, effect }) => `${key}:${effect}`);
  await until(
    "tainted",
    async () =>
      (await taints()).join() === "node.kubernetes.io/not-ready:NoSchedule,node.kubernetes.io/not-ready:NoExecute",
  );
  await until(
    "hasty is gone",
    async () => !(await client.list(resources.pods, at)).items.some(({ metadata }) => metadata.name === "hasty"),
  );
  assert.ok((await plane.events("hasty")).includes("TaintManagerEviction: Marking for deletion Pod default/hasty"));
  assert.ok((await client.get(resources.pods, "patient", at)).status?.phase === "Running");
  await set("True");
  await until("free of taints", async () => (await taints()).length === 0);
});

test("aggregated ClusterRoles have the rules of those that they select", async () => {
  await using plane = await startPlane();
  const { client, until } = plane;
  const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }];
  await client.create(resources.clusterRoles, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "part", labels: { to: "all" } },
    rules,
  });
  await client.create(resources.clusterRoles, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "whole" },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { to: "all" } }] },
    rules: [],
  });
  const whole = await until("rules", async () => {
    const found = await client.get(resources.clusterRoles, "whole");
    return found.rules?.length ? found : undefined;
  });
  assert.deepEqual(whole.rules, rules);
});

test("ranges and addresses of Services are objects: a range stays while its addresses are in use", async () => {
  await using plane = await startPlane();
  const { client, until } = plane;
  const range = await client.create(resources.serviceCIDRs, {
    apiVersion: "networking.k8s.io/v1",
    kind: "ServiceCIDR",
    metadata: { name: "kubernetes" },
    spec: { cidrs: ["10.96.0.0/16"] },
  });
  const get = () => client.get(resources.serviceCIDRs, "kubernetes");
  const ready = async () => (await get()).status?.conditions?.find(({ type }) => type === "Ready");
  await until("the range is ready", async () => (await ready())?.status === "True");
  assert.deepEqual((await get()).metadata.finalizers, ["networking.k8s.io/service-cidr-finalizer"]);
  const { spec } = await client.create(resources.services, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "default" },
    spec: { ports: [{ port: 80 }] },
  });
  const address = spec?.clusterIP ?? "";
  const named = async () => (await client.list(resources.ipAddresses)).items.map(({ metadata }) => metadata.name);
  await until("the address is an object", async () => (await named()).includes(address));
  const { spec: about, metadata } = await client.get(resources.ipAddresses, address);
  assert.deepEqual(about?.parentRef, { resource: "services", namespace: "default", name: "web" });
  assert.deepEqual(metadata.labels, {
    "ipaddress.kubernetes.io/ip-family": "IPv4",
    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
  });
  await client.delete(resources.ipAddresses, address);
  await until("it is made again", async () => (await named()).includes(address));
  await client.delete(resources.serviceCIDRs, range.metadata.name);
  await until("the range waits", async () => (await ready())?.reason === "Terminating");
  await client.delete(resources.services, "web", at);
  await until("all is gone", async () => {
    const { items } = await client.list(resources.serviceCIDRs);
    return items.length === 0 && (await named()).length === 0;
  });
});

test("a claim that names no class gets the default one when there is one; a pod that waits for its claim is told", async () => {
  await using plane = await startPlane({ nodes: [] });
  const { client, until } = plane;
  await account(plane);
  const claim: PersistentVolumeClaim = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data", namespace: "default" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  };
  await client.create(resources.persistentVolumeClaims, claim);
  const told = (text: string) => async () => (await plane.events("data")).includes(text);
  const noClass = "no persistent volumes available for this claim and no storage class is set";
  await until("it has no class", told(`FailedBinding: ${noClass}`));
  await client.create(
    resources.pods,
    pod("user", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] }),
  );
  await until("the pod is seen", () => plane.informers.for(resources.pods).get("default", "user"));
  await client.create(resources.storageClasses, {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: "late", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
    provisioner: "example.com/x",
    volumeBindingMode: "WaitForFirstConsumer",
  });
  await until("its pod is named", told("WaitForPodScheduled: waiting for pod user to be scheduled"));
  const { spec } = await client.get(resources.persistentVolumeClaims, "data", at);
  assert.equal(spec.storageClassName, "late");
});
