import assert from "node:assert/strict";
import test from "node:test";
import { setUp } from "./server.test-support.ts";

// Every value here is what kube-apiserver v1.36 answers.

const CM = "/api/v1/namespaces/n/configmaps";
const invalidOptions = (kind: string, text: string) => `${kind}.meta.k8s.io "" is invalid: ${text}`;

const { call, clock, watch } = setUp();
await call("POST", "/api/v1/namespaces", { metadata: { name: "n" } });
for (const name of ["a", "b", "c"]) await call("POST", CM, { metadata: { name, labels: { n: name, p: "1" } } });

type Case = readonly [
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  target: string,
  code: number,
  message?: string,
];

const REFUSED: readonly Case[] = [
  [
    "GET",
    `${CM}?resourceVersion=x`,
    400,
    'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
  ],
  ["GET", `${CM}?resourceVersion=99999999999999999999999`, 400],
  ["GET", `${CM}?resourceVersion=9999999`, 504],
  ["GET", `${CM}?limit=x`, 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
  [
    "GET",
    `${CM}?limit=99999999999999999999`,
    400,
    'strconv.ParseInt: parsing "99999999999999999999": value out of range',
  ],
  ["GET", `${CM}?timeoutSeconds=x`, 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
  [
    "GET",
    `${CM}?resourceVersionMatch=Exact`,
    422,
    invalidOptions(
      "ListOptions",
      "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
    ),
  ],
  [
    "GET",
    `${CM}?resourceVersionMatch=Exact&resourceVersion=0`,
    422,
    invalidOptions(
      "ListOptions",
      'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ),
  ],
  [
    "GET",
    `${CM}?resourceVersionMatch=x&resourceVersion=1`,
    422,
    invalidOptions(
      "ListOptions",
      'resourceVersionMatch: Unsupported value: "x": supported values: "Exact", "NotOlderThan", ""',
    ),
  ],
  [
    "GET",
    `${CM}?sendInitialEvents=true`,
    422,
    invalidOptions("ListOptions", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
  ],
  [
    "GET",
    `${CM}?continue=!`,
    400,
    "invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
  ],
  [
    "GET",
    `${CM}?continue=e30`,
    400,
    "invalid continue token: continue key is not valid: server does not recognize this encoded version ",
  ],
  [
    "GET",
    `${CM}?watch=1&resourceVersionMatch=NotOlderThan`,
    422,
    invalidOptions(
      "ListOptions",
      "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    ),
  ],
  [
    "GET",
    `${CM}?watch=1&sendInitialEvents=true`,
    422,
    invalidOptions(
      "ListOptions",
      "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    ),
  ],
  [
    "GET",
    `${CM}?watch=1&resourceVersion=x`,
    500,
    'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
  ],
  ["GET", `${CM}/a?resourceVersion=9999999`, 504],
  ["GET", `${CM}/a?export=true`, 400, "the export parameter, deprecated since v1.14, is no longer supported"],
  [
    "GET",
    `${CM}?labelSelector=a b`,
    400,
    "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
  ],
  ["GET", `${CM}?labelSelector=a in (b`, 400, "unable to parse requirement: found '', expected: ',' or ')'"],
  ["GET", `${CM}?labelSelector=%3D`, 400, "found '=', expected: !, identifier, or 'end of string'"],
  ["GET", `${CM}?labelSelector=a,,b`, 400, "found ',', expected: identifier after ','"],
  [
    "GET",
    `${CM}?labelSelector=n>x`,
    400,
    `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`,
  ],
  [
    "GET",
    `${CM}?fieldSelector=data.a%3D1`,
    400,
    '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
  ],
  [
    "GET",
    `${CM}?fieldSelector=metadata.name`,
    400,
    "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
  ],
  ["GET", `/api/v1/namespaces/n/pods?fieldSelector=spec.x%3D1`, 400, "field label not supported: spec.x"],
  [
    "POST",
    `${CM}?dryRun=x`,
    422,
    invalidOptions("CreateOptions", 'dryRun: Unsupported value: ["x"]: supported values: "All"'),
  ],
  [
    "POST",
    `${CM}?fieldValidation=x`,
    422,
    invalidOptions(
      "CreateOptions",
      'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"',
    ),
  ],
  [
    "POST",
    `${CM}?fieldManager=a%0Ab`,
    422,
    invalidOptions("CreateOptions", 'fieldManager: Invalid value: "a\\nb": invalid character U+000A (at position 1)'),
  ],
  [
    "POST",
    `${CM}?fieldManager=${"a".repeat(129)}`,
    422,
    invalidOptions("CreateOptions", "fieldManager: Too long: may not be more than 128 bytes"),
  ],
  [
    "PATCH",
    `${CM}/a?force=true`,
    422,
    invalidOptions("PatchOptions", "force: Forbidden: may not be specified for non-apply patch"),
  ],
  [
    "DELETE",
    `${CM}/a?propagationPolicy=x`,
    422,
    invalidOptions(
      "DeleteOptions",
      'propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"',
    ),
  ],
  ["DELETE", `${CM}/a?gracePeriodSeconds=x`, 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
  ["PUT", CM, 405, "the server does not allow this method on the requested resource"],
  ["POST", "/api/v1/configmaps", 405, "the server does not allow this method on the requested resource"],
  ["DELETE", "/api/v1/configmaps", 405, "the server does not allow this method on the requested resource"],
  ["POST", "/version", 405, "the server does not allow this method on the requested resource"],
  ["GET", "/api/v1/pods/x", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/nope", 404, "the server could not find the requested resource"],
  ["GET", `${CM}/a/status`, 404, "the server could not find the requested resource"],
  ["GET", "/apis/apps/v9", 404, "the server could not find the requested resource"],
  ["GET", "/apis/nope/v1", 404],
];

for (const [method, target, code, message] of REFUSED)
  test(`${method} ${target.slice(0, 90)}: ${code}`, async () => {
    const body = method === "GET" || method === "DELETE" ? undefined : { metadata: { name: "a" } };
    const answer = await call(method, target, body);
    assert.equal(answer.code, code);
    if (message !== undefined) assert.equal(answer.object.message, message);
  });

const SELECTED: readonly (readonly [selector: string, names: string])[] = [
  ["labelSelector=n%3Da", "a"],
  ["labelSelector=n in (a, b)", "a b"],
  ["labelSelector=n notin (a),p", "b c"],
  ["labelSelector=!n", ""],
  ["labelSelector=p > 0", "a b c"],
  ["labelSelector=p<1", ""],
  ["labelSelector=n!%3Da,p%3D%3D1", "b c"],
  ["labelSelector=n in ()", ""],
  ["fieldSelector=metadata.name%3Da", "a"],
  ["fieldSelector=metadata.name!%3Da,metadata.namespace%3Dn", "b c"],
  ["fieldSelector=%3D", "a b c"],
];

for (const [query, names] of SELECTED)
  test(`a list by ${decodeURIComponent(query)} gives ${names || "nothing"}`, async () => {
    const { object } = await call("GET", `${CM}?${query}`);
    const found = object.items.map((item: { metadata: { name: string } }) => item.metadata.name).join(" ");
    assert.equal(found, names);
  });

test("resourceVersion 0 ignores the limit; a page names what remains", async () => {
  assert.equal((await call("GET", `${CM}?limit=1&resourceVersion=0`)).object.items.length, 3);
  const { metadata } = (await call("GET", `${CM}?limit=1`)).object;
  assert.equal(metadata.remainingItemCount, 2);
});

test("a continue token that is five minutes old is 410, with a token that goes on at the present state", async () => {
  const { metadata } = (await call("GET", `${CM}?limit=1`)).object;
  await clock.advance(300_001);
  const late = await call("GET", `${CM}?limit=1&continue=${metadata.continue}`);
  assert.deepEqual([late.code, late.object.reason], [410, "Expired"]);
  const rest = await call("GET", `${CM}?limit=2&continue=${late.object.metadata.continue}`);
  assert.deepEqual(
    rest.object.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ["b", "c"],
  );
});

test("a watch from a revision that is not there yet tells only what comes behind it", async () => {
  const { metadata } = (await call("GET", CM)).object;
  const watching = await watch(`${CM}?watch=1&resourceVersion=${Number(metadata.resourceVersion) + 1}`);
  await call("POST", CM, { metadata: { name: "early" } });
  await call("POST", CM, { metadata: { name: "late" } });
  assert.deepEqual(watching.types(), ["ADDED late"]);
  watching.stop();
  for (const name of ["early", "late"]) await call("DELETE", `${CM}/${name}`);
});

test("fields that stand twice are a warning, or an error in the order of the text", async () => {
  const text = '{"metadata":{"name":"d","name":"d"},"x":1,"data":{"a":"1","a":"2"}}';
  const warned = await call("POST", `${CM}?dryRun=All`, text);
  assert.deepEqual(warned.headers.warning, [
    '299 - "duplicate field \\"metadata.name\\""',
    '299 - "unknown field \\"x\\""',
    '299 - "duplicate field \\"data.a\\""',
  ]);
  const strict = await call("POST", `${CM}?dryRun=All&fieldValidation=Strict`, text);
  assert.equal(
    strict.object.message,
    'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "metadata.name", unknown field "x", duplicate field "data.a"',
  );
});

const BODIES: readonly (readonly [type: string, body: string, message: string])[] = [
  ["application/json", "{", "couldn't get version/kind; json parse error: unexpected end of JSON input ({)"],
  [
    "application/json",
    "a: b",
    "couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of value (613a2062)",
  ],
  [
    "application/json",
    "[]",
    `couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (5b5d)`,
  ],
];

for (const [type, body, message] of BODIES)
  test(`a body ${JSON.stringify(body)} as ${type} is refused with its first bytes`, async () => {
    const answer = await call("POST", CM, body, { "content-type": type });
    assert.equal(answer.code, 400);
    assert.equal(answer.object.message, `the object provided is unrecognized (must be of type ConfigMap): ${message}`);
  });

test("in YAML the last of two equal keys counts, and its line is told", async () => {
  const yaml = "metadata:\n  name: x\n  name: y\n";
  const headers = { "content-type": "application/yaml" };
  const warned = await call("POST", `${CM}?dryRun=All`, yaml, headers);
  assert.equal(warned.object.metadata.name, "y");
  assert.deepEqual(warned.headers.warning, ['299 - "line 3: key \\"name\\" already set in map"']);
});

const ACCEPTED: readonly (readonly [accept: string, code: number])[] = [
  ["text/html", 406],
  ["application/json;as=Table;g=meta.k8s.io;v=v2", 406],
  ["application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", 406],
  ["application/vnd.kubernetes.protobuf, */*", 200],
  ["application/json;as=Table;g=meta.k8s.io;v=v1,application/json", 200],
];

for (const [accept, code] of ACCEPTED)
  test(`a list accepted as ${accept} is ${code}`, async () =>
    assert.equal((await call("GET", CM, undefined, { accept })).code, code));

test("an error is YAML for who prefers that", async () => {
  const answer = await call("GET", `${CM}/nope`, undefined, { accept: "application/json;q=0.5,application/yaml" });
  assert.equal(answer.body.kind, "bytes");
  assert.match(String((answer.body as { bytes: Buffer }).bytes), /^apiVersion: v1\ncode: 404\n/);
});
