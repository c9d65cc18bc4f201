import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "#base";
import { type Pod, type ResourceQuota, type Resource, resources, type Usage } from "#kinds";
import { attributesOf, createFakeReader, run } from "./fixture.ts";
import { createResourceQuotaAdmission } from "./resource-quota.ts";

function setUp(...quotas: { name: string; hard: Usage; used: Usage; spec?: object }[]) {
  const reader = createFakeReader();
  let version = 1;
  const put = (quota: Partial<ResourceQuota>) =>
    reader.put(resources.resourceQuotas, {
      ...quota,
      metadata: { ...quota.metadata, resourceVersion: String(version++) },
    });
  const usedOf = (name: string) => reader.get(resources.resourceQuotas, "ns", name)?.status?.used;
  for (const { name, hard, used, spec } of quotas)
    put({ metadata: { name, namespace: "ns" }, spec: { hard, ...spec }, status: { hard, used } });
  /** Quotas that somebody else writes before the next charge. */
  const disturb: (() => void)[] = [];
  const plugin = createResourceQuotaAdmission({
    reader,
    clock: createFakeClock(),
    async charge(quota, used) {
      await Promise.resolve();
      disturb.shift()?.();
      const current = reader.get(resources.resourceQuotas, "ns", quota.metadata.name!);
      if (!current || current.metadata.resourceVersion !== quota.metadata.resourceVersion) return false;
      put({ ...current, status: { ...current.status, used } });
      return true;
    },
  });
  const create = (resource: Resource<never>, object: object, dryRun = false) =>
    run(plugin, attributesOf(resource as unknown as Resource, { object, dryRun }));
  return { create, usedOf, put, disturb, reader, plugin };
}

const podOf = (name: string, cpu: string, memory: string): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "ns" },
  spec: { containers: [{ name: "c", resources: { requests: { cpu }, limits: { memory } } }] },
});
const configMap = { metadata: { name: "cm", namespace: "ns" } };

test("what fits is charged, what does not is refused with all that is exceeded", async () => {
  const { create, usedOf } = setUp({
    name: "q",
    hard: { pods: "2", "requests.cpu": "1", "limits.memory": "1Gi" },
    used: { pods: "0", "requests.cpu": "0", "limits.memory": "0" },
  });
  await create(resources.pods as never, podOf("a", "600m", "500Mi"));
  assert.deepEqual(usedOf("q"), { pods: "1", "requests.cpu": "600m", "limits.memory": "500Mi" });
  await assert.rejects(create(resources.pods as never, podOf("b", "600m", "700Mi")), {
    message:
      'pods "b" is forbidden: exceeded quota: q, requested: limits.memory=700Mi,requests.cpu=600m, used: limits.memory=500Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1',
  });
  await create(resources.pods as never, podOf("b", "100m", "100Mi"), true);
  assert.equal(usedOf("q")?.pods, "1", "a dry run is not charged");
});

test("containers say what a quota counts", async () => {
  const { create } = setUp({
    name: "q",
    hard: { "requests.cpu": "1", "limits.memory": "1Gi" },
    used: { "requests.cpu": "0", "limits.memory": "0" },
  });
  const pod = podOf("a", "100m", "100Mi");
  pod.spec.containers.push({ name: "d" });
  await assert.rejects(create(resources.pods as never, pod), {
    message: 'pods "a" is forbidden: failed quota: q: must specify limits.memory for: d; requests.cpu for: d',
  });
});

test("calls at the same time are charged one after the other", async () => {
  const { create, usedOf } = setUp({ name: "q", hard: { configmaps: "3" }, used: { configmaps: "0" } });
  const results = await Promise.allSettled(
    Array.from({ length: 5 }, () => create(resources.configMaps as never, configMap)),
  );
  assert.equal(results.filter(({ status }) => status === "fulfilled").length, 3);
  assert.deepEqual(usedOf("q"), { configmaps: "3" });
});

test("a quota that was changed meanwhile is read again, others are not charged twice", async () => {
  const { create, usedOf, put, disturb } = setUp(
    { name: "a", hard: { configmaps: "3" }, used: { configmaps: "0" } },
    { name: "b", hard: { configmaps: "9" }, used: { configmaps: "0" } },
  );
  const b = { metadata: { name: "b", namespace: "ns" }, spec: { hard: { configmaps: "9" } } };
  disturb.push(
    () => {},
    () => put({ ...b, status: { hard: { configmaps: "9" }, used: { configmaps: "5" } } }),
  );
  await create(resources.configMaps as never, configMap);
  assert.deepEqual([usedOf("a"), usedOf("b")], [{ configmaps: "1" }, { configmaps: "6" }]);
});

test("an update is charged for what it adds", async () => {
  const { plugin, usedOf } = setUp({
    name: "q",
    hard: { "services.nodeports": "1" },
    used: { "services.nodeports": "1" },
  });
  const service = (type: string) => ({
    metadata: { name: "s", namespace: "ns" },
    spec: { type, ports: [{ port: 80 }] },
  });
  const change = (from: string, to: string) =>
    run(plugin, attributesOf(resources.services, { object: service(to), old: service(from) }));
  await change("NodePort", "NodePort");
  await assert.rejects(change("ClusterIP", "NodePort"), {
    message:
      'services "s" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1',
  });
  assert.deepEqual(usedOf("q"), { "services.nodeports": "1" });
});

test("scopes choose pods, and a quota without sums refuses what it would count", async () => {
  const { create, put } = setUp({
    name: "best",
    hard: { pods: "0" },
    used: { pods: "0" },
    spec: { scopes: ["BestEffort"] },
  });
  await create(resources.pods as never, podOf("a", "1", "1Mi"));
  const plain: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "b", namespace: "ns" },
    spec: { containers: [{ name: "c" }] },
  };
  await assert.rejects(
    create(resources.pods as never, plain),
    /exceeded quota: best, requested: pods=1, used: pods=0, limited: pods=0/,
  );
  put({ metadata: { name: "new", namespace: "ns" }, spec: {}, status: { hard: { configmaps: "1" } } });
  await assert.rejects(create(resources.configMaps as never, configMap), {
    message: 'configmaps "cm" is forbidden: status unknown for quota: new, resources: configmaps',
  });
});
