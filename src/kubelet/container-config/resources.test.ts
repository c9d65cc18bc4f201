import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Container, Pod } from "#kinds";
import { containerResources, oomScoreAdjust, podCgroupResources } from "./linux-resources.ts";
import { qosClassOf } from "./qos.ts";

const GIB = 2 ** 30;
const machine = { memoryBytes: 8 * GIB };
type Lists = { requests?: Record<string, string>; limits?: Record<string, string> };
const container = (resources: Lists = {}, more: Partial<Container> = {}): Container => ({
  name: "c",
  resources,
  ...more,
});
const pod = (containers: Container[], more: Partial<Pod["spec"]> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p" },
  spec: { containers, ...more },
});
const both = { cpu: "500m", memory: "1Gi" };

describe("qosClassOf()", () => {
  const table: [string, Pod, string][] = [
    ["nothing", pod([container()]), "BestEffort"],
    ["other resources only", pod([container({ limits: { "ephemeral-storage": "1Gi" } })]), "BestEffort"],
    ["zero", pod([container({ requests: { cpu: "0" } })]), "BestEffort"],
    ["equal", pod([container({ requests: both, limits: both })]), "Guaranteed"],
    [
      "equal, written otherwise",
      pod([container({ requests: { cpu: "0.5", memory: "1024Mi" }, limits: both })]),
      "Guaranteed",
    ],
    ["one container without", pod([container({ requests: both, limits: both }), container()]), "Burstable"],
    [
      "an init container without",
      pod([container({ requests: both, limits: both })], { initContainers: [container()] }),
      "Burstable",
    ],
    ["memory only", pod([container({ requests: { memory: "1Gi" }, limits: { memory: "1Gi" } })]), "Burstable"],
    ["pod-level equal", pod([container()], { resources: { requests: both, limits: both } }), "Guaranteed"],
    ["pod-level requests", pod([container()], { resources: { requests: both } }), "Burstable"],
  ];
  for (const [name, value, expected] of table)
    it(`${name}: ${expected}`, () => assert.equal(qosClassOf(value), expected));
});

describe("containerResources()", () => {
  const table: [string, Lists, object][] = [
    ["nothing", {}, { cpuShares: 2, cpuQuota: -1, cpuPeriod: 100_000, oomScoreAdj: 1000 }],
    [
      "requests and limits",
      { requests: { cpu: "250m", memory: "512Mi" }, limits: { cpu: "1500m", memory: "1Gi" } },
      { cpuShares: 256, cpuQuota: 150_000, cpuPeriod: 100_000, memoryLimitBytes: GIB, oomScoreAdj: 938 },
    ],
    [
      "a limit stands for the request",
      { limits: { cpu: "2" } },
      { cpuShares: 2048, cpuQuota: 200_000, cpuPeriod: 100_000, oomScoreAdj: 999 },
    ],
    [
      "the least quota is 1 ms",
      { limits: { cpu: "1m" } },
      { cpuShares: 2, cpuQuota: 1000, cpuPeriod: 100_000, oomScoreAdj: 999 },
    ],
  ];
  for (const [name, lists, expected] of table) {
    it(name, () => assert.deepEqual(containerResources(pod([container(lists)]), container(lists), machine), expected));
  }
  it("falls back to the pod's limits", () => {
    const own = container();
    const { cpuQuota, memoryLimitBytes } = containerResources(
      pod([own], { resources: { limits: both } }),
      own,
      machine,
    );
    assert.deepEqual([cpuQuota, memoryLimitBytes], [50_000, GIB]);
  });
  it("limits huge pages of every size of the machine", () => {
    const own = container({ limits: { "hugepages-2Mi": "4Mi" } });
    const { hugepageLimits } = containerResources(pod([own]), own, { ...machine, hugePageSizes: ["2MB", "1GB"] });
    assert.deepEqual(hugepageLimits, [
      { pageSize: "2MB", limit: 4 * 2 ** 20 },
      { pageSize: "1GB", limit: 0 },
    ]);
  });
});

describe("oomScoreAdjust()", () => {
  const asks = (memory: string) => ({ requests: { memory } });
  const score = (own: Container, all: Partial<Pod["spec"]> = {}) =>
    oomScoreAdjust(pod([own], all), own, machine.memoryBytes);
  const table: [string, number, number][] = [
    ["best effort", score(container()), 1000],
    ["guaranteed", score(container({ requests: both, limits: both })), -997],
    ["critical for the node", score(container(), { priority: 2_000_001_000 }), -997],
    ["a half of the memory", score(container(asks("4Gi"))), 500],
    ["all of the memory", score(container(asks("8Gi"))), 3],
    ["next to nothing", score(container(asks("1Mi"))), 999],
  ];
  for (const [name, found, expected] of table) it(`${name}: ${expected}`, () => assert.equal(found, expected));
  it("protects a sidecar as much as what it serves", () => {
    const sidecar = container(asks("1Mi"), { name: "side", restartPolicy: "Always" });
    const all = pod([container(asks("4Gi"))], { initContainers: [sidecar] });
    assert.equal(oomScoreAdjust(all, sidecar, machine.memoryBytes), 500);
  });
  it("shares out what only the pod asks for", () => {
    const own = container(asks("1Gi"));
    const all = pod([own, container({}, { name: "d" })], { resources: { requests: { memory: "3Gi" } } });
    // A gibibyte of its own and half of the two that are left: a quarter of the machine.
    assert.equal(oomScoreAdjust(all, own, machine.memoryBytes), 750);
  });
});

describe("podCgroupResources()", () => {
  const full = { requests: { cpu: "500m", memory: "1Gi" }, limits: { cpu: "1", memory: "2Gi" } };
  const table: [string, Pod, object][] = [
    ["best effort", pod([container()]), { cpuShares: 2 }],
    [
      "sum of all",
      pod([container(full), container(full)]),
      { cpuShares: 1024, cpuQuota: 200_000, cpuPeriod: 100_000, memoryLimitBytes: 4 * GIB },
    ],
    [
      "no limit where one has none",
      pod([container(full), container({ requests: { cpu: "500m" } })]),
      { cpuShares: 1024 },
    ],
    [
      "an init container that needs more",
      pod([container(full)], {
        initContainers: [container({ requests: { cpu: "2" }, limits: { cpu: "2", memory: "3Gi" } })],
      }),
      { cpuShares: 2048, cpuQuota: 200_000, cpuPeriod: 100_000, memoryLimitBytes: 3 * GIB },
    ],
    [
      "the pod's own and overhead",
      pod([container()], {
        resources: { requests: { cpu: "1" }, limits: { cpu: "2", memory: "1Gi" } },
        overhead: { cpu: "1", memory: "1Gi" },
      }),
      { cpuShares: 2048, cpuQuota: 300_000, cpuPeriod: 100_000, memoryLimitBytes: 2 * GIB },
    ],
  ];
  for (const [name, value, expected] of table)
    it(name, () => assert.deepEqual(podCgroupResources(value, machine), expected));
});
