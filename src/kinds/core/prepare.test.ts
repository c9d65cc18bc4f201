import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "../generated/types.ts";
import { prepareServiceUpdate } from "./prepare.ts";

const service = (spec: Service["spec"]): Service => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "s" },
  spec,
});

// What kube-apiserver v1.36 keeps of `externalTrafficPolicy` when a Service is updated.
const CASES: readonly (readonly [
  what: string,
  before: Service["spec"],
  after: Service["spec"],
  kept: string | undefined,
])[] = [
  ["its external addresses go", { type: "ClusterIP", externalIPs: ["1.2.3.4"] }, { type: "ClusterIP" }, undefined],
  ["its node ports go", { type: "NodePort" }, { type: "ClusterIP" }, undefined],
  [
    "external addresses come for node ports",
    { type: "NodePort" },
    { type: "ClusterIP", externalIPs: ["1.2.3.4"] },
    "Cluster",
  ],
  ["nothing changes", { type: "NodePort" }, { type: "NodePort" }, "Cluster"],
];

for (const [what, before, after, kept] of CASES)
  test(`a Service's policy for external traffic when ${what}`, () => {
    const policy = { externalTrafficPolicy: "Cluster" } as const;
    const object = service({ ...after, ...policy });
    prepareServiceUpdate(object, service({ ...before, ...policy }), "");
    assert.equal(object.spec.externalTrafficPolicy, kept);
  });
