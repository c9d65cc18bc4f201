import assert from "node:assert/strict";
import { test } from "node:test";
import { createScheme, resources, type StatusError } from "#kinds";
import { attributesOf, createFakeReader, run } from "../fixture.ts";
import { createExpressionChecks } from "./expression-checks.ts";
import { createValidatingPolicies } from "./validating-policies.ts";

const scheme = createScheme();
const configMaps = scheme.byResource("", "v1", "configmaps")!;

function setUp(spec: object, binding: object = {}) {
  const reader = createFakeReader();
  reader.put(resources.namespaces, { metadata: { name: "ns", labels: { env: "prod" } } });
  const authorizer = {
    authorize: ({ user, verb }: { user: { username: string }; verb: string }) => ({
      allowed: user.username === "jane" && verb === "create",
      reason: "",
    }),
  };
  const resourceRules = [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }];
  reader.put(resources.validatingAdmissionPolicies, {
    metadata: { name: "p" },
    spec: { failurePolicy: "Fail", matchConstraints: { resourceRules }, ...spec },
  });
  reader.put(resources.validatingAdmissionPolicyBindings, {
    metadata: { name: "b" },
    spec: { policyName: "p", validationActions: ["Deny"], ...binding },
  });
  const plugin = createValidatingPolicies({ reader, scheme, authorizer });
  const create = async (name: string, data?: Record<string, string>, labels?: Record<string, string>) => {
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "ns", labels }, data };
    const attributes = attributesOf(configMaps, { object });
    await run(plugin, attributes);
    return attributes.warnings;
  };
  return { reader, create };
}

const DENIED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ";
const refused =
  (name: string, why: string, reason = "Invalid", code = 422) =>
  (error: StatusError) => {
    assert.equal(error.message, `configmaps "${name}" is forbidden: ${why}`);
    assert.deepEqual([error.reason, error.code, error.status.details?.causes], [reason, code, [{ message: why }]]);
    return true;
  };

test("validations refuse with their message, reason and code", async () => {
  const { create } = setUp({
    validations: [
      { expression: "object.metadata.name != 'bad'" },
      { expression: "!has(object.data) || size(object.data) < 3", message: "too much data" },
      { expression: "object.data.a != 'z'", messageExpression: "'value was ' + object.data.a", reason: "Forbidden" },
    ],
  });
  await create("good", { a: "b" });
  await assert.rejects(
    create("bad", { a: "b" }),
    refused("bad", `${DENIED}failed expression: object.metadata.name != 'bad'`),
  );
  await assert.rejects(create("many", { a: "b", b: "b", c: "b" }), refused("many", `${DENIED}too much data`));
  await assert.rejects(create("z", { a: "z" }), refused("z", `${DENIED}value was z`, "Forbidden", 403));
  await assert.rejects(
    create("nokey", { b: "z" }),
    refused("nokey", `${DENIED}expression 'object.data.a != 'z'' resulted in error: no such key: a`),
  );
});

test("an expression that fails is passed over where the policy says so", async () => {
  const { create } = setUp({ failurePolicy: "Ignore", validations: [{ expression: "object.data.a != 'z'" }] });
  await create("nokey", { b: "z" });
});

test("a binding may warn instead", async () => {
  const { create } = setUp({ validations: [{ expression: "false", message: "no" }] }, { validationActions: ["Warn"] });
  assert.deepEqual(await create("x"), ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"]);
});

test("variables see the namespace and the variables before them", async () => {
  const { create } = setUp({
    variables: [
      { name: "env", expression: "namespaceObject.metadata.labels['env']" },
      { name: "both", expression: "variables.env + '-' + object.metadata.name" },
    ],
    validations: [
      {
        expression: "variables.both == 'prod-x'",
        messageExpression: "'is ' + variables.both + ' by ' + request.operation",
      },
    ],
  });
  await create("x");
  await assert.rejects(create("y"), refused("y", `${DENIED}is prod-y by CREATE`));
});

test("match conditions, rules and selectors choose calls", async () => {
  const validations = [{ expression: "false", message: "no" }];
  await setUp({
    validations,
    matchConditions: [{ name: "c", expression: "request.userInfo.username == 'bob'" }],
  }).create("x");
  await setUp({ validations }, { matchResources: { objectSelector: { matchLabels: { a: "b" } } } }).create("x");
  await setUp({ validations }, { matchResources: { namespaceSelector: { matchLabels: { env: "dev" } } } }).create("x");
  const excludeResourceRules = [
    { apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["*"], resourceNames: ["x"] },
  ];
  const { create } = setUp({ validations }, { matchResources: { excludeResourceRules } });
  await create("x");
  await assert.rejects(create("y"), refused("y", `${DENIED}no`));
});

test("the authorizer is asked as the user, or as an account", async () => {
  const { create } = setUp({
    validations: [
      { expression: "authorizer.group('').resource('pods').namespace('ns').check('create').allowed()" },
      { expression: "!authorizer.requestResource.check('delete').allowed()" },
      {
        expression: "authorizer.serviceAccount('ns', 'default').path('/metrics').check('create').allowed()",
        message: "sa may not",
      },
    ],
  });
  await assert.rejects(create("x"), refused("x", `${DENIED}sa may not`));
});

test("parameters are read where the binding points", async () => {
  const spec = {
    paramKind: { apiVersion: "v1", kind: "ConfigMap" },
    validations: [{ expression: "object.metadata.name.startsWith(params.data.prefix)", message: "other prefix" }],
  };
  const named = setUp(spec, { paramRef: { name: "params", namespace: "conf", parameterNotFoundAction: "Deny" } });
  await assert.rejects(
    named.create("q1"),
    refused(
      "q1",
      `${DENIED}failed to configure binding: no params found for policy binding with \`Deny\` parameterNotFoundAction`,
    ),
  );
  const put = (reader: typeof named.reader, name: string, prefix: string) =>
    reader.put(resources.configMaps, { metadata: { name, namespace: "conf", labels: { p: "q" } }, data: { prefix } });
  put(named.reader, "params", "q");
  await named.create("q1");
  await assert.rejects(named.create("r1"), refused("r1", `${DENIED}other prefix`));
  const paramRef = { selector: { matchLabels: { p: "q" } }, namespace: "conf", parameterNotFoundAction: "Allow" };
  const selected = setUp(spec, { paramRef });
  await selected.create("r1");
  put(selected.reader, "one", "q");
  put(selected.reader, "two", "qq");
  await selected.create("qq1");
  await assert.rejects(selected.create("q1"), refused("q1", `${DENIED}other prefix`));
  const unknown = setUp({ ...spec, paramKind: { apiVersion: "foo.example.com/v1", kind: "Foo" } }, { paramRef });
  await assert.rejects(
    unknown.create("x"),
    refused(
      "x",
      "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'foo.example.com/v1, Kind=Foo'",
    ),
  );
});

const COMPILED: readonly (readonly [spec: object, field: string, message: string])[] = [
  [
    { validations: [{ expression: "foo == 1" }] },
    "spec.validations[0].expression",
    "Invalid value: \"foo == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^",
  ],
  [
    { validations: [{ expression: "1 + 1" }] },
    "spec.validations[0].expression",
    'Invalid value: "1 + 1": must evaluate to bool but got int',
  ],
  [
    { validations: [{ expression: "true", messageExpression: "object.spec.foo" }] },
    "spec.validations[0].messageExpression",
    'Invalid value: "object.spec.foo": must evaluate to string but got dyn',
  ],
  [
    { validations: [{ expression: "object.x.map(y, y)" }] },
    "spec.validations[0].expression",
    'Invalid value: "object.x.map(y, y)": must evaluate to bool but got list(dyn)',
  ],
  [
    { matchConditions: [{ name: "c", expression: "request.foo == 1" }] },
    "spec.matchConditions[0].expression",
    "Invalid value: \"request.foo == 1\": compilation failed: ERROR: <input>:1:8: undefined field 'foo'\n | request.foo == 1\n | .......^",
  ],
];

for (const [spec, field, message] of COMPILED) {
  test(`refused when written: ${message.slice(0, 60).replaceAll("\n", " ")}`, () => {
    const kind = scheme.byResource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")!;
    return assert.rejects(
      async () => run(createExpressionChecks(), attributesOf(kind, { object: { metadata: { name: "p" }, spec } })),
      (error: StatusError) => {
        assert.deepEqual(error.status.details?.causes, [{ field, reason: "FieldValueInvalid", message }]);
        return true;
      },
    );
  });
}
