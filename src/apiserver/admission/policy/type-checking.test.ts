import assert from "node:assert/strict";
import { test } from "node:test";
import { createScheme } from "#kinds";
import { typeWarnings } from "./type-checking.ts";

const scheme = createScheme();
const rulesFor = (group: string, resources: string[]) => ({
  resourceRules: [{ apiGroups: [group], apiVersions: ["v1"], resources, operations: ["*"] }],
});

test("expressions that can't hold for the kinds of a policy are told, with the place and the type", () => {
  const warnings = typeWarnings(
    {
      matchConstraints: rulesFor("apps", ["deployments", "deployments/scale"]),
      validations: [
        { expression: "object.spec.replicas > 'x'" },
        { expression: "object.spec.nothing == 1", messageExpression: "object.metadata.namee" },
        { expression: "object.spec.replicas < 3 && object.spec.template.spec.containers.all(c, c.image != '')" },
      ],
    },
    scheme,
  );
  assert.deepEqual(
    warnings.map(({ fieldRef }) => fieldRef),
    ["spec.validations[0].expression", "spec.validations[1].expression", "spec.validations[1].messageExpression"],
  );
  assert.equal(
    warnings[1]?.warning,
    "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'nothing'\n | object.spec.nothing == 1\n | ...........^\n",
  );
  assert.match(
    warnings[0]?.warning ?? "",
    /^apps\/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '\(int, string\)'/,
  );
});

test("rules with wildcards and kinds that are not served are not looked at", () => {
  const validations = [{ expression: "object.nothing == 1" }];
  assert.deepEqual(typeWarnings({ matchConstraints: rulesFor("*", ["pods"]), validations }, scheme), []);
  assert.deepEqual(typeWarnings({ matchConstraints: rulesFor("example.com", ["foos"]), validations }, scheme), []);
});

test("schemas that hold themselves are read too", () => {
  const matchConstraints = rulesFor("apiextensions.k8s.io", ["customresourcedefinitions"]);
  const validations = [
    { expression: "object.spec.group != '' && object.spec.versions[0].schema.openAPIV3Schema.type == 'object'" },
  ];
  assert.deepEqual(typeWarnings({ matchConstraints, validations }, scheme), []);
});
