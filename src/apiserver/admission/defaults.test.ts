import assert from "node:assert/strict";
import { test } from "node:test";
import { type Pod, resources } from "#kinds";
import { createPersistentVolumeClaimResize } from "./claim-resize.ts";
import { createDefaultIngressClass, createDefaultStorageClass } from "./default-classes.ts";
import { attributesOf, createFakeReader, run } from "./fixture.ts";
import { createPodTopologyLabels } from "./pod-topology-labels.ts";
import { createRuntimeClass } from "./runtime-class.ts";
import { createStorageObjectInUseProtection } from "./storage-protection.ts";
import { createTaintNodesByCondition } from "./taint-nodes.ts";

const claimOf = (spec: object, status = {}) => ({ metadata: { name: "p", namespace: "ns" } as object, spec, status });

test("of two default storage classes the newest is taken, and only where none is asked for", async () => {
  const reader = createFakeReader();
  const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
  reader.put(resources.storageClasses, {
    metadata: { name: "a", annotations, creationTimestamp: "2026-01-01T00:00:00Z" },
  });
  reader.put(resources.storageClasses, {
    metadata: { name: "b", annotations, creationTimestamp: "2026-02-01T00:00:00Z" },
  });
  const plugin = createDefaultStorageClass({ reader });
  const claim = claimOf({});
  await run(plugin, attributesOf(resources.persistentVolumeClaims, { object: claim }));
  assert.deepEqual(claim.spec, { storageClassName: "b" });
  const none = claimOf({ storageClassName: "" });
  await run(plugin, attributesOf(resources.persistentVolumeClaims, { object: none }));
  assert.deepEqual(none.spec, { storageClassName: "" });
});

test("an ingress gets the default class", async () => {
  const reader = createFakeReader();
  const annotations = { "ingressclass.kubernetes.io/is-default-class": "true" };
  reader.put(resources.ingressClasses, { metadata: { name: "nginx", annotations } });
  const ingress = { metadata: { name: "i", namespace: "ns" }, spec: {} };
  await run(createDefaultIngressClass({ reader }), attributesOf(resources.ingresses, { object: ingress }));
  assert.deepEqual(ingress.spec, { ingressClassName: "nginx" });
});

test("storage begins with the finalizer that protects it", async () => {
  const claim = claimOf({});
  await run(createStorageObjectInUseProtection(), attributesOf(resources.persistentVolumeClaims, { object: claim }));
  assert.deepEqual(claim.metadata, { name: "p", namespace: "ns", finalizers: ["kubernetes.io/pvc-protection"] });
});

test("a claim grows when it is bound and its class allows it", async () => {
  const reader = createFakeReader();
  reader.put(resources.storageClasses, { metadata: { name: "fixed" } });
  reader.put(resources.storageClasses, { metadata: { name: "elastic" }, allowVolumeExpansion: true });
  const plugin = createPersistentVolumeClaimResize({ reader });
  const grow = (storageClassName: string, phase: string) => {
    const sized = (storage: string) => claimOf({ storageClassName, resources: { requests: { storage } } }, { phase });
    return run(plugin, attributesOf(resources.persistentVolumeClaims, { object: sized("2Gi"), old: sized("1Gi") }));
  };
  await grow("elastic", "Bound");
  await assert.rejects(grow("elastic", "Pending"), /Only bound persistent volume claims can be expanded$/);
  await assert.rejects(grow("fixed", "Bound"), {
    message:
      'persistentvolumeclaims "p" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
  });
});

test("a new node is tainted, once", async () => {
  const node = { metadata: { name: "n" }, spec: {} as object };
  for (let i = 0; i < 2; i++) await run(createTaintNodesByCondition(), attributesOf(resources.nodes, { object: node }));
  assert.deepEqual(node.spec, { taints: [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }] });
});

test("a binding carries zone and region of its node", async () => {
  const reader = createFakeReader();
  const zone = { "topology.kubernetes.io/zone": "z1" };
  reader.put(resources.nodes, { metadata: { name: "n", labels: { ...zone, other: "x" } } });
  const binding = { metadata: { name: "p", namespace: "ns" } as object, target: { kind: "Node", name: "n" } };
  await run(
    createPodTopologyLabels({ reader }),
    attributesOf(resources.pods, { object: binding, subresource: "binding" }),
  );
  assert.deepEqual(binding.metadata, { name: "p", namespace: "ns", labels: zone });
});

test("a RuntimeClass gives overhead, node selector and tolerations", async () => {
  const reader = createFakeReader();
  const tolerations = [{ key: "kata", operator: "Exists" }];
  reader.put(resources.runtimeClasses, {
    metadata: { name: "kata" },
    handler: "kata",
    overhead: { podFixed: { cpu: "250m" } },
    scheduling: { nodeSelector: { kata: "yes" }, tolerations },
  });
  const plugin = createRuntimeClass({ reader });
  const podOf = (spec: Partial<Pod["spec"]>): Pod => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "ns" },
    spec: { containers: [], ...spec },
  });
  const admitted = async (spec: Partial<Pod["spec"]>) => {
    const pod = podOf(spec);
    await run(plugin, attributesOf(resources.pods, { object: pod }));
    return pod.spec;
  };
  const runtimeClassName = "kata";
  assert.deepEqual(
    await admitted({
      runtimeClassName,
      tolerations: [{ key: "kata", operator: "Equal", value: "x", effect: "NoSchedule" }],
    }),
    {
      containers: [],
      runtimeClassName,
      overhead: { cpu: "250m" },
      nodeSelector: { kata: "yes" },
      tolerations,
    },
  );
  const refused: readonly (readonly [Partial<Pod["spec"]>, string])[] = [
    [{ runtimeClassName: "nope" }, 'pod rejected: RuntimeClass "nope" not found'],
    [
      { runtimeClassName, overhead: { cpu: "1" } },
      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ],
    [{ overhead: { cpu: "1" } }, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"],
    [
      { runtimeClassName, nodeSelector: { kata: "no" } },
      "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
    ],
  ];
  for (const [spec, why] of refused) await assert.rejects(admitted(spec), { message: `pods "p" is forbidden: ${why}` });
});
