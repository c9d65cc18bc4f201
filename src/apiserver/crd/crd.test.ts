import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "#base";
import type { ApiObject, MutableScheme } from "#kinds";
import { setUp } from "../server.test-support.ts";
import { createOpenApi } from "../openapi/openapi.ts";
import { type Conversions, createCustomSchemas, startCustomResources } from "./mod.ts";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABS = "/apis/stable.example.com/v1/namespaces/default/crontabs";

const SPEC = {
  type: "object",
  required: ["cronSpec"],
  "x-kubernetes-validations": [
    { rule: "self.minReplicas <= self.replicas", message: "replicas too few" },
    {
      rule: "!has(self.image) || self.image != 'bad'",
      messageExpression: "'image is ' + self.image",
      reason: "FieldValueForbidden",
      fieldPath: ".image",
    },
  ],
  properties: {
    cronSpec: { type: "string", pattern: "^\\S+( \\S+){4}$", maxLength: 40 },
    image: { type: "string" },
    replicas: { type: "integer", minimum: 1, maximum: 10, default: 1 },
    minReplicas: { type: "integer", default: 0 },
    mode: { type: "string", enum: ["a", "b"] },
    port: { "x-kubernetes-int-or-string": true },
    when: { type: "string", format: "date-time" },
    any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    tags: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" }, maxItems: 3 },
    ports: {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: {
        type: "object",
        required: ["name"],
        properties: { name: { type: "string" }, port: { type: "integer", default: 80 } },
      },
    },
    immutable: { type: "string", "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "is immutable" }] },
    one: {
      type: "object",
      oneOf: [{ required: ["a"] }, { required: ["b"] }],
      properties: { a: { type: "string" }, b: { type: "string" } },
    },
  },
};

const definition = (change: (spec: any) => void = () => {}) => {
  const spec: any = {
    group: "stable.example.com",
    scope: "Namespaced",
    names: { plural: "crontabs", singular: "crontab", kind: "CronTab", shortNames: ["ct"], categories: ["all"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        selectableFields: [{ jsonPath: ".spec.image" }],
        additionalPrinterColumns: [
          { name: "Spec", type: "string", jsonPath: ".spec.cronSpec" },
          { name: "Replicas", type: "integer", jsonPath: ".spec.replicas" },
        ],
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.replicas",
            statusReplicasPath: ".status.replicas",
            labelSelectorPath: ".status.selector",
          },
        },
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: {
              spec: structuredClone(SPEC),
              status: { type: "object", properties: { replicas: { type: "integer" }, selector: { type: "string" } } },
            },
          },
        },
      },
    ],
  };
  change(spec);
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${spec.names.plural}.${spec.group}` },
    spec: structuredClone(spec),
  };
};

async function serve(change?: (spec: any) => void, conversions?: Conversions) {
  const setting = setUp();
  const { scheme, reader } = setting.server.context;
  const custom = startCustomResources({
    store: setting.store,
    scheme: scheme as MutableScheme,
    reader,
    clock: setting.clock,
    logger: silentLogger,
    ...(conversions ? { conversions } : {}),
  });
  await setting.call("POST", "/api/v1/namespaces", { metadata: { name: "default" } });
  const created = await setting.call("POST", DEFINITIONS, definition(change));
  await custom.settled();
  return { ...setting, custom, created };
}

const tab = (spec: unknown, name = "tab") => ({
  apiVersion: "stable.example.com/v1",
  kind: "CronTab",
  metadata: { name },
  spec,
});
const causes = (answer: { object: any }) =>
  (answer.object.details?.causes ?? []).map((cause: any) => `${cause.field}: ${cause.message}`).sort();

test("a definition is accepted, established and served at once, and gone at once", async () => {
  const { call, custom, created } = await serve();
  assert.equal(created.code, 201);
  assert.deepEqual(created.object.status, {
    conditions: null,
    acceptedNames: { plural: "", kind: "" },
    storedVersions: ["v1"],
  });
  const { status } = (await call("GET", `${DEFINITIONS}/crontabs.stable.example.com`)).object;
  assert.deepEqual(
    status.conditions.map((one: any) => [one.type, one.status, one.reason]),
    [
      ["NamesAccepted", "True", "NoConflicts"],
      ["Established", "True", "InitialNamesAccepted"],
    ],
  );
  const listed = (await call("GET", "/apis/stable.example.com/v1")).object.resources;
  assert.deepEqual(
    listed.map((one: any) => one.name),
    ["crontabs", "crontabs/scale", "crontabs/status"],
  );
  await call("POST", TABS, tab({ cronSpec: "* * * * *" }));
  const deleted = await call("DELETE", `${DEFINITIONS}/crontabs.stable.example.com`);
  assert.deepEqual(deleted.object.metadata.finalizers, ["customresourcecleanup.apiextensions.k8s.io"]);
  await custom.settled();
  assert.equal((await call("GET", TABS)).code, 404);
  assert.equal((await call("GET", `${DEFINITIONS}/crontabs.stable.example.com`)).code, 404);
});

test("objects are defaulted and pruned, and count their generations", async () => {
  const { call } = await serve();
  const made = await call("POST", TABS, tab({ cronSpec: "* * * * *", any: { x: 1 }, ports: [{ name: "a" }], foo: 1 }));
  assert.deepEqual(made.object.spec, {
    cronSpec: "* * * * *",
    any: { x: 1 },
    ports: [{ name: "a", port: 80 }],
    replicas: 1,
    minReplicas: 0,
  });
  assert.deepEqual(made.headers.warning, ['299 - "unknown field \\"spec.foo\\""']);
  assert.equal(made.object.metadata.generation, 1);
  const changed = await call("PATCH", `${TABS}/tab`, { spec: { image: "x" }, status: { replicas: 5 } });
  assert.equal(changed.object.metadata.generation, 2);
  assert.equal(changed.object.status, undefined);
  const status = await call("PATCH", `${TABS}/tab/status`, {
    spec: { image: "y" },
    status: { replicas: 2, selector: "a=b" },
  });
  assert.deepEqual(
    [status.object.spec.image, status.object.status.replicas, status.object.metadata.generation],
    ["x", 2, 2],
  );
  const scale = await call("GET", `${TABS}/tab/scale`);
  assert.deepEqual([scale.object.spec, scale.object.status], [{ replicas: 1 }, { replicas: 2, selector: "a=b" }]);
  const selected = await call("GET", `${TABS}?fieldSelector=spec.image%3Dx`);
  assert.equal(selected.object.items.length, 1);
  const table = await call("GET", TABS, undefined, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
  assert.deepEqual(table.object.rows[0].cells, ["tab", "* * * * *", 1]);
});

test("every violation is told in Kubernetes' words", async () => {
  const { call } = await serve();
  const bad = {
    cronSpec: "x",
    replicas: 100,
    mode: "c",
    when: "yesterday",
    image: 5,
    tags: ["a", "a", "b", "c"],
    ports: [{ name: "a" }, { name: "a" }],
    one: {},
  };
  assert.deepEqual(causes(await call("POST", TABS, tab(bad))), [
    '<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found none valid',
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
    "spec.cronSpec: Invalid value: \"x\": spec.cronSpec in body should match '^\\S+( \\S+){4}$'",
    'spec.image: Invalid value: "integer": spec.image in body must be of type string: "integer"',
    'spec.mode: Unsupported value: "c": supported values: "a", "b"',
    "spec.one.a: Required value",
    'spec.ports[1]: Duplicate value: {"name":"a"}',
    "spec.replicas: Invalid value: 100: spec.replicas in body should be less than or equal to 10",
    "spec.tags: Too many: 4: must have at most 3 items",
    'spec.tags[1]: Duplicate value: "a"',
    'spec.when: Invalid value: "yesterday": spec.when in body must be of type date-time: "yesterday"',
  ]);
  assert.deepEqual(causes(await call("POST", TABS, tab({ cronSpec: "* * * * *", image: "bad", minReplicas: 5 }))), [
    "spec.image: Forbidden: image is bad",
    "spec: Invalid value: replicas too few",
  ]);
});

test("rules see the former value, and what doesn't change is not judged anew", async () => {
  const { call } = await serve();
  await call("POST", TABS, tab({ cronSpec: "* * * * *", immutable: "x", image: "old" }));
  const changed = await call("PATCH", `${TABS}/tab`, { spec: { immutable: "y" } });
  assert.deepEqual(causes(changed), ['spec.immutable: Invalid value: "y": is immutable']);
  const stricter = definition((spec) => {
    spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.image.maxLength = 2;
  });
  const current = (await call("GET", `${DEFINITIONS}/crontabs.stable.example.com`)).object;
  await call("PUT", `${DEFINITIONS}/crontabs.stable.example.com`, { ...current, spec: stricter.spec });
  assert.equal((await call("PATCH", `${TABS}/tab`, { spec: { replicas: 2 } })).code, 200);
  assert.deepEqual(causes(await call("PATCH", `${TABS}/tab`, { spec: { image: "new" } })), [
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
    "spec.image: Too long: may not be more than 2 bytes",
  ]);
});

test("a watch ends when its definition changes what it serves", async () => {
  const { call, watch, custom } = await serve();
  const watching = await watch(`${TABS}?watch=1`);
  await call("POST", TABS, tab({ cronSpec: "* * * * *" }));
  assert.deepEqual(watching.types(), ["ADDED tab"]);
  await call("DELETE", `${DEFINITIONS}/crontabs.stable.example.com`);
  await custom.settled();
  assert.equal(watching.ended(), true);
});

test("versions differ in their apiVersion, and what is stored moves with writes", async () => {
  const { call, custom } = await serve((spec) => {
    spec.versions.push({ ...structuredClone(spec.versions[0]), name: "v2", storage: false });
    spec.versions[1].schema.openAPIV3Schema.properties.spec.properties.replicas.default = 3;
  });
  await call("POST", TABS, tab({ cronSpec: "* * * * *" }));
  const other = (await call("GET", TABS.replace("/v1/", "/v2/"))).object.items[0];
  assert.equal(other.apiVersion, "stable.example.com/v2");
  const current = (await call("GET", `${DEFINITIONS}/crontabs.stable.example.com`)).object;
  current.spec.versions[0].storage = false;
  current.spec.versions[1].storage = true;
  const moved = await call("PUT", `${DEFINITIONS}/crontabs.stable.example.com`, current);
  assert.deepEqual(moved.object.status.storedVersions, ["v1", "v2"]);
  await custom.settled();
  assert.equal((await call("GET", `${TABS}/tab`)).object.apiVersion, "stable.example.com/v1");
});

test("a webhook converts what is read and written in another version than the stored one", async () => {
  const convert = async (objects: readonly ApiObject[], apiVersion: string) =>
    objects.map((object): ApiObject => {
      const spec = object.spec as any;
      const both = { ...spec, cronSpec: spec.cronSpec ?? spec.schedule, schedule: spec.schedule ?? spec.cronSpec };
      const { [apiVersion.endsWith("v2") ? "cronSpec" : "schedule"]: _other, ...own } = both;
      return { ...object, apiVersion, spec: own };
    });
  const second = (spec: any) => {
    spec.versions.push({ ...structuredClone(spec.versions[0]), name: "v2", storage: false });
    const own = spec.versions[1].schema.openAPIV3Schema.properties.spec;
    own.properties.schedule = own.properties.cronSpec;
    delete own.properties.cronSpec;
    own.required = ["schedule"];
    spec.conversion = {
      strategy: "Webhook",
      webhook: { conversionReviewVersions: ["v1"], clientConfig: { url: "https://127.0.0.1/" } },
    };
  };
  const { call, watch } = await serve(second, { converterOf: () => convert });
  await call("POST", TABS, tab({ cronSpec: "* * * * *" }));
  const V2 = TABS.replace("/v1/", "/v2/");
  const watching = await watch(`${V2}?watch=1`);
  const other = (await call("GET", V2)).object.items[0];
  assert.deepEqual(
    [other.apiVersion, other.spec.schedule, other.spec.cronSpec],
    ["stable.example.com/v2", "* * * * *", undefined],
  );
  const changed = await call("PATCH", `${V2}/tab`, { spec: { schedule: "1 * * * *" } });
  assert.deepEqual([changed.code, changed.object.spec.schedule], [200, "1 * * * *"]);
  assert.equal((await call("GET", `${TABS}/tab`)).object.spec.cronSpec, "1 * * * *");
  await call("DELETE", `${V2}/tab`);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(watching.types(), ["ADDED tab", "MODIFIED tab", "DELETED tab"]);
  assert.equal(watching.events[1]?.object.spec.schedule, "1 * * * *");
});

test("OpenAPI tells the kind, with all that its schema refers to", async () => {
  const { server } = await serve();
  const openapi = createOpenApi(server.context.scheme as MutableScheme, createCustomSchemas());
  const answer = await openapi.handle({
    method: "GET",
    path: "/openapi/v3/apis/stable.example.com/v1",
    query: new URLSearchParams(),
    headers: {},
  });
  assert.ok(answer?.body.kind === "bytes");
  const text = answer.body.bytes.toString();
  const { schemas } = JSON.parse(text).components;
  const properties = schemas["com.example.stable.v1.CronTab"].properties;
  assert.deepEqual(properties.spec.properties.port.anyOf, [{ type: "integer" }, { type: "string" }]);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
    assert.ok(schemas[name!], `${name} is there`);
});

test("names that are taken are refused until they are free", async () => {
  const { call, custom } = await serve();
  const other = definition((spec) => {
    spec.names = { plural: "others", singular: "other", kind: "CronTab", shortNames: ["ct"] };
  });
  await call("POST", DEFINITIONS, other);
  await custom.settled();
  const condition = async () =>
    (await call("GET", `${DEFINITIONS}/others.stable.example.com`)).object.status.conditions.find(
      (one: any) => one.type === "NamesAccepted",
    );
  assert.deepEqual(
    [(await condition()).reason, (await condition()).message],
    ["ListKindConflict", '"CronTabList" is already in use'],
  );
  await call("DELETE", `${DEFINITIONS}/crontabs.stable.example.com`);
  await custom.settled();
  assert.equal((await condition()).status, "True");
});

const REFUSED: readonly (readonly [string, (spec: any) => void, string[]])[] = [
  [
    "a field without type",
    (spec) => ((schemaOf(spec).properties as any).spec = {}),
    [
      "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields",
    ],
  ],
  [
    "a default of the wrong type",
    (spec) => ((schemaOf(spec).properties as any).spec.properties.replicas.default = "x"),
    [
      'spec.validation.openAPIV3Schema.properties[spec].properties[replicas].default: Invalid value: "string":  in body must be of type integer: "string"',
    ],
  ],
  [
    "a rule about a field that isn't there",
    (spec) => ((schemaOf(spec) as any)["x-kubernetes-validations"] = [{ rule: "self.spec.b == 1" }]),
    [
      'spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.spec.b == 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:10: undefined field \'b\'\n | self.spec.b == 1\n | .........^',
    ],
  ],
  [
    "a rule that costs too much",
    (spec) => {
      const list = { type: "array", items: { type: "array", items: { type: "string" } } };
      (schemaOf(spec).properties as any).spec.properties.a = {
        ...list,
        "x-kubernetes-validations": [{ rule: "self.all(x, x.all(y, self.all(z, z.all(w, w == y))))" }],
      };
    },
    [
      "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
      "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)",
    ],
  ],
  [
    "two versions stored",
    (spec) => spec.versions.push({ ...spec.versions[0], name: "v2" }),
    ["must have exactly one version marked as storage version"],
  ],
];
const schemaOf = (spec: any): any => spec.versions[0].schema.openAPIV3Schema;

for (const [what, change, wanted] of REFUSED) {
  test(`a definition with ${what} is refused`, async () => {
    const { created } = await serve(change);
    assert.equal(created.code, 422);
    const found = causes(created);
    for (const text of wanted)
      assert.ok(
        found.some((one: string) => one === text || one.endsWith(text)),
        `${text}\nin\n${found.join("\n")}`,
      );
  });
}
