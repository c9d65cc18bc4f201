import assert from "node:assert/strict";
import test from "node:test";
import { errorsOf, warningsOf } from "../support/errors-of.ts";

// Every message here is what kube-apiserver v1.36 answers.

type Case = readonly [type: string, object: object, old: object | undefined, ...errors: string[]];

const scale = (spec: object) => ({
  spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" }, maxReplicas: 3, ...spec },
});
const HPA = "autoscaling/v2 HorizontalPodAutoscaler";
const RESERVED = "priority class names with 'system-' prefix are reserved for system use only. error: ";

const CASES: readonly Case[] = [
  [
    "scheduling.k8s.io/v1 PriorityClass",
    { value: 1_000_000_001, preemptionPolicy: "X" },
    undefined,
    "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
    'preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"',
  ],
  [
    "scheduling.k8s.io/v1 PriorityClass",
    { metadata: { name: "system-x" }, value: 1 },
    undefined,
    `metadata.name: Forbidden: ${RESERVED}system-x is not a known system priority class`,
  ],
  [
    "scheduling.k8s.io/v1 PriorityClass",
    { value: 2 },
    { value: 1 },
    "value: Forbidden: may not be changed in an update.",
  ],
  ["node.k8s.io/v1 RuntimeClass", {}, undefined, "handler: Required value"],
  [
    "node.k8s.io/v1 RuntimeClass",
    {
      handler: "h",
      scheduling: { tolerations: [1, 2].map(() => ({ key: "k", operator: "Exists", effect: "NoSchedule" })) },
    },
    undefined,
    'scheduling.tolerations[1]: Duplicate value: {"Key":"k","Operator":"Exists","Value":"","Effect":"NoSchedule","TolerationSeconds":null}',
  ],
  [
    "node.k8s.io/v1 RuntimeClass",
    { handler: "i" },
    { handler: "h" },
    'handler: Invalid value: "i": field is immutable',
  ],
  [
    "coordination.k8s.io/v1 Lease",
    { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } },
    undefined,
    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
    "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
  ],
  [
    "policy/v1 PodDisruptionBudget",
    { spec: { minAvailable: "150%" } },
    undefined,
    'spec.minAvailable: Invalid value: "150%": must not be greater than 100%',
  ],
  [
    "policy/v1 PodDisruptionBudget",
    { spec: { minAvailable: 1, maxUnavailable: 1 } },
    undefined,
    'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set',
  ],
  [HPA, scale({}), undefined],
  [
    HPA,
    scale({ maxReplicas: 0, scaleTargetRef: {} }),
    undefined,
    "spec.maxReplicas: Required value: must be set and greater than 0",
    "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
    "spec.scaleTargetRef.kind: Required value",
    "spec.scaleTargetRef.name: Required value",
    'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
  ],
  [
    HPA,
    scale({ minReplicas: 0 }),
    undefined,
    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
    "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
  ],
  [
    HPA,
    scale({ metrics: [{ type: "Resource" }] }),
    undefined,
    "spec.metrics[0].resource: Required value: must populate information for the given metric source",
  ],
  [
    HPA,
    scale({ metrics: [{ type: "Pods", pods: { metric: { name: "m" }, target: { type: "Value", value: "1" } } }] }),
    undefined,
    "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue",
  ],
  [
    HPA,
    scale({ behavior: { scaleUp: { policies: [{ type: "x", value: 0, periodSeconds: 1801 }] } } }),
    undefined,
    'spec.behavior.scaleUp.policies[0].type: Unsupported value: "x": supported values: "Percent", "Pods"',
    "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
    "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
  ],
  [
    "v1 ReplicationController",
    { spec: {} },
    undefined,
    "spec.selector: Required value",
    "spec.template: Required value",
  ],
];

for (const [type, object, old, ...errors] of CASES)
  test(`${type} ${JSON.stringify(object)}`, () => {
    const [apiVersion = "", kind = ""] = type.split(" ");
    assert.deepEqual(errorsOf(apiVersion, kind, object, old), errors);
  });

test("a new workload warns of what its pods will be", () => {
  const template = { metadata: { labels: { a: "b" } }, spec: { nodeSelector: { "beta.kubernetes.io/os": "linux" } } };
  const set = { metadata: { name: "a.b" }, spec: { selector: { a: "b" }, template } };
  const ofPods =
    'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead';
  assert.deepEqual(warningsOf("apps/v1", "DaemonSet", set), [ofPods]);
  assert.deepEqual(warningsOf("apps/v1", "Deployment", set), [
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    ofPods,
  ]);
});
