import assert from "node:assert/strict";
import { test } from "node:test";
import { createScheme, resources } from "#kinds";
import { attributesOf, createFakeReader, run } from "../fixture.ts";
import { createMutatingPolicies } from "./mutating-policies.ts";
import { objectLiterals } from "./object-literals.ts";

const scheme = createScheme();
const configMaps = scheme.byResource("", "v1", "configmaps")!;

function setUp(spec: object) {
  const reader = createFakeReader();
  reader.put(resources.namespaces, { metadata: { name: "ns" } });
  const resourceRules = [{ apiGroups: ["", "apps"], apiVersions: ["v1"], resources: ["*"], operations: ["CREATE"] }];
  reader.put(resources.mutatingAdmissionPolicies, {
    metadata: { name: "p" },
    spec: { failurePolicy: "Fail", matchConstraints: { resourceRules }, ...spec },
  });
  reader.put(resources.mutatingAdmissionPolicyBindings, { metadata: { name: "b" }, spec: { policyName: "p" } });
  return createMutatingPolicies({ reader, scheme, authorizer: { authorize: () => ({ allowed: true, reason: "" }) } });
}

const configMap = (data: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "cm", namespace: "ns" },
  data,
});
const apply = (expression: string) => ({ patchType: "ApplyConfiguration", applyConfiguration: { expression } });
const json = (expression: string) => ({ patchType: "JSONPatch", jsonPatch: { expression } });

test("object literals become maps, texts stay", () => {
  assert.equal(
    objectLiterals(`Object{spec: Object.spec{ replicas: x ? 1 : 2, name: "Object{a: 1}" }, metadata: {"a": b}}`),
    `{"spec": { "replicas": x ? 1 : 2, "name": "Object{a: 1}" }, "metadata": {"a": b}}`,
  );
  assert.equal(objectLiterals(`[JSONPatch{op: "add", value: f(a, b)}]`), `[{"op": "add", "value": f(a, b)}]`);
});

test("mutations follow each other, each on what the last one made", async () => {
  const plugin = setUp({
    mutations: [
      apply(`Object{data: {"a": object.data.x + "1"}}`),
      json(`[JSONPatch{op: "add", path: "/data/" + jsonpatch.escapeKey("b"), value: object.data.a + "2"}]`),
      json(`[JSONPatch{op: "test", path: "/data/b", value: "no"}, JSONPatch{op: "remove", path: "/data/b"}]`),
    ],
  });
  const attributes = attributesOf(configMaps, { object: configMap({ x: "0" }) });
  await run(plugin, attributes);
  assert.deepEqual(attributes.object, configMap({ x: "0", a: "01", b: "012" }));
  assert.equal(attributes.reinvocation.again(), true);
});

test("lists are merged by their keys", async () => {
  const plugin = setUp({
    mutations: [
      apply(
        `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: "c", image: "y"}]}}}}`,
      ),
    ],
  });
  const containers = [
    { name: "b", image: "x" },
    { name: "c", image: "x" },
  ];
  const object = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "d", namespace: "ns" },
    spec: { selector: {}, template: { spec: { containers } } },
  };
  const attributes = attributesOf(scheme.byResource("apps", "v1", "deployments")!, { object });
  await run(plugin, attributes);
  const made = (attributes.object as unknown as typeof object).spec.template.spec.containers;
  assert.deepEqual(
    made.map(({ name, image }) => [name, image]),
    [
      ["b", "x"],
      ["c", "y"],
    ],
  );
});

test("a mutation that fails refuses, or is passed over", async () => {
  const mutations = [apply(`Object{data: {"a": object.data.nothing}}`)];
  const attributes = attributesOf(configMaps, { object: configMap({}) });
  await assert.rejects(
    run(setUp({ mutations }), attributes),
    /^StatusError: policy 'p' with binding 'b' denied request: expression .* resulted in error: no such key: nothing$/,
  );
  await run(setUp({ mutations, failurePolicy: "Ignore" }), attributes);
  assert.deepEqual(attributes.object, configMap({}));
  const conditions = [{ name: "c", expression: "false" }];
  await run(setUp({ mutations, matchConditions: conditions }), attributes);
});
