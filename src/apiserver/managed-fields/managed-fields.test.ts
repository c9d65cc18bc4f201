import assert from "node:assert/strict";
import test from "node:test";
import { setUp } from "../server.test-support.ts";

// What kube-apiserver v1.36 answers to the same requests.

const CM = "/api/v1/namespaces/n/configmaps";
const APPLY = { "content-type": "application/apply-patch+yaml" };

async function space() {
  const server = setUp();
  await server.call("POST", "/api/v1/namespaces", { metadata: { name: "n" } });
  const apply = (manager: string, object: object, more = "") =>
    server.call(
      "PATCH",
      `${CM}/c?fieldManager=${manager}${more}`,
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, ...object },
      APPLY,
    );
  return { ...server, apply };
}

/** `manager operation[/subresource]: fields` of each entry. */
function owners(object: { metadata: { managedFields?: any[] } }): string[] {
  return (object.metadata.managedFields ?? [])
    .map(
      ({ manager, operation, subresource, fieldsV1 }) =>
        `${manager} ${operation}${subresource ? `/${subresource}` : ""}: ${JSON.stringify(fieldsV1)}`,
    )
    .sort();
}

test("a create gives its manager all fields but the server's own", async () => {
  const { call } = await space();
  const object = { metadata: { name: "c", labels: { a: "1" } }, data: { x: "1" } };
  const made = await call("POST", `${CM}?fieldManager=m`, object);
  assert.deepEqual(owners(made.object), [
    'm Update: {"f:data":{".":{},"f:x":{}},"f:metadata":{"f:labels":{".":{},"f:a":{}}}}',
  ]);
});

test("without a fieldManager the user agent's first part is the name", async () => {
  const { call } = await space();
  const made = await call("POST", CM, { metadata: { name: "c" }, data: { x: "1" } }, { "user-agent": "tool/1.2 (x)" });
  assert.equal(made.object.metadata.managedFields[0].manager, "tool");
});

test("two appliers: a conflict names who has what; force takes it; what is left out goes", async () => {
  const { call, apply } = await space();
  assert.equal((await apply("one", { data: { x: "1", y: "1" } })).code, 201);
  const refused = await apply("two", { data: { x: "2", z: "1" } });
  assert.deepEqual([refused.code, refused.object.reason], [409, "Conflict"]);
  assert.equal(refused.object.message, 'Apply failed with 1 conflict: conflict with "one": .data.x');
  assert.deepEqual(refused.object.details.causes, [
    { reason: "FieldManagerConflict", message: 'conflict with "one"', field: ".data.x" },
  ]);
  const forced = await apply("two", { data: { x: "2", z: "1" } }, "&force=true");
  assert.deepEqual(owners(forced.object), [
    'one Apply: {"f:data":{"f:y":{}}}',
    'two Apply: {"f:data":{"f:x":{},"f:z":{}}}',
  ]);
  const less = await apply("two", { data: { z: "1" } });
  assert.deepEqual(less.object.data, { y: "1", z: "1" });
  const { object } = await call("GET", `${CM}/c`);
  assert.deepEqual(owners(object), ['one Apply: {"f:data":{"f:y":{}}}', 'two Apply: {"f:data":{"f:z":{}}}']);
});

test("an apply that changes nothing writes nothing", async () => {
  const { apply, clock } = await space();
  const first = await apply("one", { data: { x: "1" } });
  await clock.advance(5000);
  const second = await apply("one", { data: { x: "1" } });
  assert.equal(second.object.metadata.resourceVersion, first.object.metadata.resourceVersion);
  assert.deepEqual(second.object.metadata.managedFields, first.object.metadata.managedFields);
});

test("a patch takes what it changes from who applied it", async () => {
  const { call, apply } = await space();
  await apply("one", { data: { x: "1", y: "1" } });
  const patched = await call("PATCH", `${CM}/c?fieldManager=hand`, { data: { y: "2", q: "3" } });
  assert.deepEqual(owners(patched.object), [
    'hand Update: {"f:data":{"f:q":{},"f:y":{}}}',
    'one Apply: {"f:data":{"f:x":{}}}',
  ]);
  const refused = await apply("one", { data: { x: "1", y: "1" } });
  assert.equal(refused.object.message, 'Apply failed with 1 conflict: conflict with "hand" using v1: .data.y');
});

test("what was there before the first apply belongs to before-first-apply", async () => {
  const { call, apply } = await space();
  const made = await call("POST", CM, { metadata: { name: "c" }, data: { x: "1" } });
  await call("PATCH", `${CM}/c`, {
    metadata: { managedFields: [{}], resourceVersion: made.object.metadata.resourceVersion },
  });
  const applied = await apply("one", { data: { y: "1" } });
  assert.deepEqual(owners(applied.object), [
    'before-first-apply Update: {"f:data":{".":{},"f:x":{}}}',
    'one Apply: {"f:data":{"f:y":{}}}',
  ]);
});

for (const [text, managedFields] of [
  ["an empty list", []],
  ["one empty entry", [{}]],
] as const)
  test(`${text} of managedFields makes the server forget all owners, the writer too`, async () => {
    const { call, apply } = await space();
    await apply("one", { data: { x: "1" } });
    const patched = await call("PATCH", `${CM}/c?fieldManager=hand`, { metadata: { managedFields }, data: { x: "2" } });
    assert.deepEqual([patched.code, patched.object.data, owners(patched.object)], [200, { x: "2" }, []]);
    const { object } = await call("GET", `${CM}/c`);
    assert.equal(object.metadata.managedFields, undefined);
  });

test("conflicts come level by level: what is owned itself before what lies deeper", async () => {
  const { call } = await space();
  const apply = (manager: string, selector: object, targetPort: number) =>
    call(
      "PATCH",
      `/api/v1/namespaces/n/services/s?fieldManager=${manager}`,
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "s" },
        spec: { selector, ports: [{ port: 80, targetPort }] },
      },
      APPLY,
    );
  await apply("one", { a: "1" }, 1);
  const { object } = await apply("two", { a: "2" }, 2);
  assert.deepEqual(
    object.details.causes.map(({ field }: { field: string }) => field),
    [".spec.selector", '.spec.ports[port=80,protocol="TCP"].targetPort'],
  );
});

test("one manager applies first at one version, then at another", async () => {
  const { call } = await space();
  const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "d" };
  const apply = (apiVersion: string, spec: object, labels = {}) =>
    call(
      "PATCH",
      `/apis/${apiVersion}/namespaces/n/horizontalpodautoscalers/h?fieldManager=m`,
      { apiVersion, kind: "HorizontalPodAutoscaler", metadata: { name: "h", labels }, spec },
      APPLY,
    );
  assert.equal((await apply("autoscaling/v1", { minReplicas: 2, maxReplicas: 3, scaleTargetRef })).code, 201);
  const { code, object } = await apply("autoscaling/v2", { maxReplicas: 3, scaleTargetRef }, { c: "2" });
  assert.equal(code, 200);
  // nobody says it any more: the default is back
  assert.deepEqual([object.spec.minReplicas, object.spec.maxReplicas, object.metadata.labels], [1, 3, { c: "2" }]);
  assert.deepEqual(owners(object), [
    'm Apply: {"f:metadata":{"f:labels":{"f:c":{}}},"f:spec":{"f:maxReplicas":{},"f:scaleTargetRef":{"f:apiVersion":{},"f:kind":{},"f:name":{}}}}',
  ]);
});

const REFUSED: readonly (readonly [body: object, code: number, message: string])[] = [
  [{}, 400, "invalid object type: /, Kind="],
  [{ apiVersion: "v1", kind: "Secret", metadata: { name: "c" } }, 400, "invalid object type: /v1, Kind=Secret"],
  [
    { apiVersion: "v1", kind: "ConfigMap", metadata: {} },
    400,
    "the name of the object (c based on URL) was undeterminable: name must be provided",
  ],
  [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: "c",
        managedFields: [{ manager: "x", operation: "Apply", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: {} }],
      },
    },
    400,
    "metadata.managedFields must be nil",
  ],
  [
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, bogus: 1 },
    500,
    "failed to create typed patch object (n/c; /v1, Kind=ConfigMap): .bogus: field not declared in schema",
  ],
];

for (const [body, code, message] of REFUSED)
  test(`apply refuses: ${message}`, async () => {
    const { call } = await space();
    const answer = await call("PATCH", `${CM}/c?fieldManager=m`, body, APPLY);
    assert.deepEqual([answer.code, answer.object.message], [code, message]);
  });

test("items of a list are owned by their keys; two with one key can't be applied", async () => {
  const { call } = await space();
  const apply = (manager: string, ports: object[]) =>
    call(
      "PATCH",
      `/api/v1/namespaces/n/services/s?fieldManager=${manager}`,
      { apiVersion: "v1", kind: "Service", metadata: { name: "s" }, spec: { ports } },
      APPLY,
    );
  const made = await apply("one", [{ name: "a", port: 80 }]);
  assert.deepEqual(owners(made.object), [
    'one Apply: {"f:spec":{"f:ports":{"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:name":{},"f:port":{}}}}}',
  ]);
  const both = await apply("two", [{ name: "b", port: 81 }]);
  assert.deepEqual(
    both.object.spec.ports.map((port: { name: string }) => port.name),
    ["a", "b"],
  );
  const twice = await apply("one", [
    { name: "a", port: 80 },
    { name: "c", port: 80 },
  ]);
  assert.match(twice.object.message, /: \.spec\.ports: duplicate entries for key \[port=80,protocol="TCP"\]$/);
});
