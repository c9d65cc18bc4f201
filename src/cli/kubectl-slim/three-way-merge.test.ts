import assert from "node:assert/strict";
import test from "node:test";
import { threeWayMerge } from "./three-way-merge.ts";

const POD = "io.k8s.api.core.v1.Pod";
const DEPLOYMENT = "io.k8s.api.apps.v1.Deployment";
const pod = (spec: object) => ({ spec });

const cases: readonly [
  what: string,
  schema: string | undefined,
  original: object,
  modified: object,
  current: object,
  patch: object,
][] = [
  ["nothing changed", POD, pod({ a: 1 }), pod({ a: 1 }), pod({ a: 1, other: 2 }), {}],
  [
    "a field changed",
    POD,
    { data: { k: "1" } },
    { data: { k: "2" } },
    { data: { k: "1", x: "y" } },
    { data: { k: "2" } },
  ],
  [
    "a field was taken away",
    POD,
    { data: { k: "1", l: "2" } },
    { data: { k: "1" } },
    { data: { k: "1", l: "2" } },
    { data: { l: null } },
  ],
  ["what others set stays", POD, { data: {} }, { data: {} }, { data: { theirs: "1" } }, {}],
  ["what was taken away and is gone already", POD, { data: { l: "2" } }, { data: {} }, { data: {} }, {}],
  [
    "an item of a list with a merge key",
    POD,
    pod({ containers: [{ name: "a", image: "x:1" }] }),
    pod({ containers: [{ name: "a", image: "x:2" }] }),
    pod({ containers: [{ name: "injected" }, { name: "a", image: "x:1", imagePullPolicy: "Always" }] }),
    { spec: { "$setElementOrder/containers": [{ name: "a" }], containers: [{ name: "a", image: "x:2" }] } },
  ],
  [
    "an item taken away and one added",
    POD,
    pod({ containers: [{ name: "a" }, { name: "b" }] }),
    pod({ containers: [{ name: "a" }, { name: "c", image: "z" }] }),
    pod({ containers: [{ name: "a" }, { name: "b" }] }),
    {
      spec: {
        "$setElementOrder/containers": [{ name: "a" }, { name: "c" }],
        containers: [
          { name: "c", image: "z" },
          { $patch: "delete", name: "b" },
        ],
      },
    },
  ],
  [
    "finalizers are a set",
    POD,
    { metadata: { finalizers: ["a", "b"] } },
    { metadata: { finalizers: ["b", "c"] } },
    { metadata: { finalizers: ["a", "b", "theirs"] } },
    {
      metadata: {
        "$setElementOrder/finalizers": ["b", "c"],
        finalizers: ["c"],
        "$deleteFromPrimitiveList/finalizers": ["a"],
      },
    },
  ],
  [
    "a union keeps only what is wanted",
    DEPLOYMENT,
    { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } } } },
    { spec: { strategy: { type: "Recreate" } } },
    { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } } } },
    { spec: { strategy: { $retainKeys: ["type"], type: "Recreate", rollingUpdate: null } } },
  ],
  [
    "without a schema lists are replaced",
    undefined,
    { l: [{ name: "a" }] },
    { l: [{ name: "b" }] },
    { l: [{ name: "a" }] },
    { l: [{ name: "b" }] },
  ],
];

for (const [what, schema, original, modified, current, patch] of cases) {
  test(`threeWayMerge() ${what}`, () =>
    assert.deepEqual(threeWayMerge(original, modified, current, schema), { patch, strategic: schema !== undefined }));
}
