import assert from "node:assert/strict";
import { test } from "node:test";
import { type LimitRangeItem, type Pod, resources } from "#kinds";
import { attributesOf, createFakeReader, run } from "./fixture.ts";
import { createLimitRanger } from "./limit-ranger.ts";

const LIMITS: LimitRangeItem[] = [
  {
    type: "Container",
    max: { cpu: "1", memory: "1Gi" },
    min: { cpu: "50m" },
    default: { cpu: "300m", memory: "1Gi" },
    defaultRequest: { cpu: "300m", memory: "512Mi" },
    maxLimitRequestRatio: { cpu: "4" },
  },
  { type: "Pod", max: { cpu: "1500m" } },
  { type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "2Gi" } },
];

function setUp() {
  const reader = createFakeReader();
  reader.put(resources.limitRanges, { metadata: { name: "lr", namespace: "ns" }, spec: { limits: LIMITS } });
  return createLimitRanger({ reader });
}

const podOf = (name: string, own: object, more: object = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "ns" },
  spec: {
    containers: [
      { name: "c", image: "x", resources: own },
      { name: "d", image: "x" },
    ],
    ...more,
  },
});

test("containers get the amounts that they do not say, and an annotation tells it", async () => {
  const pod = podOf("a", { requests: { cpu: "100m" } }, { initContainers: [{ name: "i", image: "x" }] });
  await run(setUp(), attributesOf(resources.pods, { object: pod }));
  assert.deepEqual(pod.spec.containers[0]!.resources, {
    requests: { cpu: "100m", memory: "512Mi" },
    limits: { cpu: "300m", memory: "1Gi" },
  });
  assert.equal(
    pod.metadata.annotations?.["kubernetes.io/limit-ranger"],
    "LimitRanger plugin set: memory request for container c; cpu, memory limit for container c; cpu, memory request for container d; cpu, memory limit for container d; cpu, memory request for init container i; cpu, memory limit for init container i",
  );
});

const REFUSED: readonly (readonly [object, string])[] = [
  [
    { requests: { cpu: "10m" } },
    "[minimum cpu usage per Container is 50m, but request is 10m, cpu max limit to request ratio per Container is 4, but provided ratio is 30.000000]",
  ],
  [
    { limits: { cpu: "2" }, requests: { cpu: "2" } },
    "[maximum cpu usage per Container is 1, but limit is 2, maximum cpu usage per Pod is 1500m, but limit is 2300m]",
  ],
  [
    { limits: { cpu: "1" }, requests: { cpu: "100m" } },
    "cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000",
  ],
];

for (const [own, why] of REFUSED) {
  test(`a pod is refused: ${why}`, () =>
    assert.rejects(run(setUp(), attributesOf(resources.pods, { object: podOf("b", own) })), {
      message: `pods "b" is forbidden: ${why}`,
    }));
}

for (const [size, why] of [
  ["500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"],
  ["5Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi"],
] as const) {
  test(`a claim is refused: ${why}`, () => {
    const claim = { metadata: { name: "p", namespace: "ns" }, spec: { resources: { requests: { storage: size } } } };
    return assert.rejects(run(setUp(), attributesOf(resources.persistentVolumeClaims, { object: claim })), {
      message: `persistentvolumeclaims "p" is forbidden: ${why}`,
    });
  });
}
