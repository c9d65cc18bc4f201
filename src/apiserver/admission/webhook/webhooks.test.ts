import assert from "node:assert/strict";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createSeededRandom, silentLogger } from "#base";
import { createScheme, isStatus, resources, type ValidatingWebhook } from "#kinds";
import { issueCertificate, newKey } from "../../pki/certificate.ts";
import { attributesOf, createFakeReader, run } from "../fixture.ts";
import { createPostReview } from "./post.ts";
import { createMutatingWebhooks, createValidatingWebhooks } from "./webhooks.ts";

interface Review {
  readonly request: { uid: string; object: { data?: Record<string, string>; metadata: object } | null; kind: object };
}
type Answer = object | string | number;

/** What the server answers, by path; `response.uid` is added where it is absent. */
const ANSWERS: Record<string, (review: Review) => Answer> = {
  "/allow": () => ({ allowed: true, warnings: ["be careful"] }),
  "/deny": () => ({ allowed: false }),
  "/why": () => ({ allowed: false, status: { message: "no way", code: 418, reason: "Teapot" } }),
  "/reason": () => ({ allowed: false, status: { reason: "Because", code: 200 } }),
  "/uid": () => ({ allowed: true, uid: "x" }),
  "/text": () => "hello",
  "/empty": () => "",
  "/none": () => "{}",
  "/500": () => 500,
  "/404": () => 404,
  "/untyped": () => ({ allowed: true, patch: "W10=" }),
  "/undecodable": () => patch("x"),
  "/misfit": () => patch(JSON.stringify([{ op: "remove", path: "/nothing" }])),
  "/label": () => patch(JSON.stringify([{ op: "add", path: "/metadata/labels", value: { hooked: "yes" } }])),
  "/count": ({ request }) => add("count", String(Number(request.object?.data?.count ?? 0) + 1)),
  "/seen": ({ request }) => add("seen", request.object?.data?.count ?? "none"),
  "/unknown": () => patch(JSON.stringify([{ op: "add", path: "/strange", value: 1 }])),
};
const patch = (text: string) => ({
  allowed: true,
  patchType: "JSONPatch",
  patch: Buffer.from(text).toString("base64"),
});
const add = (key: string, value: string) => patch(JSON.stringify([{ op: "add", path: `/data/${key}`, value }]));

const asked: { path: string; review: Review }[] = [];
function answer(request: http.IncomingMessage, response: http.ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const review = JSON.parse(Buffer.concat(chunks).toString()) as Review;
    const path = new URL(request.url!, "http://x").pathname;
    asked.push({ path, review });
    if (path === "/hang") return;
    const result = ANSWERS[path]!(review);
    response.setHeader("content-type", "application/json");
    if (typeof result === "number") response.writeHead(result).end("oh no");
    else if (typeof result === "string") response.end(result);
    else {
      const head = { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1" };
      response.end(JSON.stringify({ ...head, response: { uid: review.request.uid, ...result } }));
    }
  });
}

const plain = http.createServer(answer);
const server = newKey();
const validity = { notBefore: Date.now() - 60_000, notAfter: Date.now() + 3_600_000 };
const cert = issueCertificate(
  {
    subject: { commonName: "hook" },
    publicKey: server.publicKey,
    names: ["127.0.0.1"],
    ...validity,
    usages: ["ca", "digital signature", "server auth"],
  },
  { selfKey: server.key },
);
const secure = https.createServer({ key: server.key, cert }, answer);
let base = "";
let secureBase = "";

before(async () => {
  for (const one of [plain, secure]) await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(plain.address() as AddressInfo).port}`;
  secureBase = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`;
});
after(() => {
  for (const one of [plain, secure]) {
    one.closeAllConnections();
    one.close();
  }
});

const scheme = createScheme();
const configMaps = scheme.byResource("", "v1", "configmaps")!;
const configMap = (data: Record<string, string> = { a: "b" }, labels?: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "cm", namespace: "ns", ...(labels ? { labels } : {}) },
  data,
});

function setUp() {
  const reader = createFakeReader();
  reader.put(resources.namespaces, { metadata: { name: "ns", labels: { team: "a" } } });
  const authorizer = { authorize: () => ({ allowed: true, reason: "" }) };
  const random = createSeededRandom(1);
  const deps = { reader, scheme, random, logger: silentLogger, authorizer, post: createPostReview({ reader }) };
  const put =
    (kind: "mutatingWebhookConfigurations" | "validatingWebhookConfigurations") =>
    (name: string, path: string, more: Partial<ValidatingWebhook> & { reinvocationPolicy?: string } = {}) =>
      reader.put(resources[kind], {
        metadata: { name },
        webhooks: [
          {
            name: `${name}.example.com`,
            admissionReviewVersions: ["v1"],
            sideEffects: "None",
            failurePolicy: "Fail",
            clientConfig: { url: base + path },
            rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }],
            ...more,
          },
        ],
      });
  return {
    reader,
    validating: createValidatingWebhooks(deps),
    mutating: createMutatingWebhooks(deps),
    putValidating: put("validatingWebhookConfigurations"),
    putMutating: put("mutatingWebhookConfigurations"),
  };
}

const FAILED = 'Internal error occurred: failed calling webhook "v.example.com": ';
const REFUSED: readonly (readonly [path: string, message: string, code: number])[] = [
  ["/deny", 'admission webhook "v.example.com" denied the request without explanation', 400],
  ["/why", 'admission webhook "v.example.com" denied the request: no way', 418],
  ["/reason", 'admission webhook "v.example.com" denied the request: Because', 400],
  ["/none", `${FAILED}received invalid webhook response: webhook response was absent`, 500],
  [
    "/text",
    `${FAILED}failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
    500,
  ],
  [
    "/empty",
    `${FAILED}failed to call webhook: 0-length response with status code: 200 and content type: application/json`,
    500,
  ],
  ["/404", `${FAILED}failed to call webhook: the server could not find the requested resource`, 500],
  [
    "/500",
    `${FAILED}failed to call webhook: an error on the server ("oh no") has prevented the request from succeeding`,
    500,
  ],
  ["/label", `${FAILED}received invalid webhook response: validating webhook may not return response.patch`, 500],
];

for (const [path, message, code] of REFUSED) {
  test(`${path} is told as kube-apiserver tells it`, async () => {
    const { validating, putValidating } = setUp();
    putValidating("v", path);
    await assert.rejects(run(validating, attributesOf(configMaps, { object: configMap() })), (error: Error) => {
      assert.equal(error.message.replace(asked.at(-1)!.review.request.uid, "UID"), message);
      assert.equal((error as unknown as { code: number }).code, code);
      return true;
    });
  });
}

test("what does not match asks nobody; warnings come through", async () => {
  const { validating, putValidating, reader } = setUp();
  const attributes = attributesOf(configMaps, { object: configMap({}, { app: "x" }) });
  assert.equal(validating.handles(attributes), false, "nothing is configured");
  const paths = async () => {
    const from = asked.length;
    await run(validating, attributes);
    return asked.slice(from).map(({ path }) => path);
  };
  const rule = { apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] };
  putValidating("v", "/allow");
  assert.deepEqual(await paths(), ["/allow"]);
  assert.deepEqual(attributes.warnings, ["be careful"]);
  for (const rules of [
    [{ ...rule, operations: ["UPDATE"] }],
    [{ ...rule, resources: ["configmaps/status", "secrets"] }],
    [{ ...rule, apiGroups: ["apps"] }],
    [{ ...rule, scope: "Cluster" }],
  ]) {
    putValidating("v", "/deny", { rules });
    assert.equal(validating.handles(attributes), false);
  }
  putValidating("v", "/deny", { rules: [{ ...rule, resources: ["*"], operations: ["*"], scope: "Namespaced" }] });
  await assert.rejects(paths());
  const passing: Partial<ValidatingWebhook>[] = [
    { namespaceSelector: { matchLabels: { team: "b" } } },
    { objectSelector: { matchLabels: { app: "y" } } },
    { matchConditions: [{ name: "c", expression: "object.metadata.name == 'other'" }] },
    { matchConditions: [{ name: "c", expression: "request.userInfo.username != 'jane'" }] },
  ];
  for (const more of passing) {
    putValidating("v", "/deny", more);
    assert.deepEqual(await paths(), []);
  }
  reader.remove(resources.validatingWebhookConfigurations, undefined, "v");
  assert.equal(validating.handles(attributes), false);
});

test("a condition that can't be told refuses, or is passed over", async () => {
  const { validating, putValidating } = setUp();
  const matchConditions = [{ name: "c", expression: "object.spec.foo == 1" }];
  const create = () => run(validating, attributesOf(configMaps, { object: configMap() }));
  putValidating("v", "/deny", { matchConditions });
  await assert.rejects(create(), /^StatusError: configmaps "cm" is forbidden: .*no such key: spec/);
  putValidating("v", "/deny", { matchConditions, failurePolicy: "Ignore" });
  await create();
});

test("failurePolicy Ignore lets pass what could not be asked, and nothing that was refused", async () => {
  const { validating, putValidating } = setUp();
  const create = () => run(validating, attributesOf(configMaps, { object: configMap() }));
  putValidating("v", "/500", { failurePolicy: "Ignore" });
  await create();
  putValidating("v", "/hang", { timeoutSeconds: 1 });
  await assert.rejects(create(), {
    message: `${FAILED}failed to call webhook: Post "${base}/hang?timeout=1s": context deadline exceeded`,
  });
  putValidating("v", "/deny", { failurePolicy: "Ignore" });
  await assert.rejects(create(), /denied the request without explanation/);
});

test("a dry run asks only webhooks without side effects", async () => {
  const { validating, putValidating } = setUp();
  const attributes = attributesOf(configMaps, { object: configMap(), dryRun: true });
  putValidating("v", "/allow", { sideEffects: "NoneOnDryRun" });
  await run(validating, attributes);
  putValidating("v", "/allow", { sideEffects: "Some" });
  await assert.rejects(run(validating, attributes), {
    message: 'admission webhook "v.example.com" does not support dry run',
  });
});

test("objects that configure webhooks meet none", () => {
  const { validating, putValidating } = setUp();
  putValidating("v", "/deny", {
    rules: [{ apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: ["*"] }],
  });
  const kind = scheme.byResource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")!;
  assert.equal(validating.handles(attributesOf(kind, { object: { metadata: { name: "v" } } })), false);
});

test("a rule for one version sees the others in that version", async () => {
  const { validating, putValidating } = setUp();
  const rules = [
    {
      apiGroups: ["autoscaling"],
      apiVersions: ["v1"],
      resources: ["horizontalpodautoscalers"],
      operations: ["CREATE"],
    },
  ];
  const kind = scheme.byResource("autoscaling", "v2", "horizontalpodautoscalers")!;
  const metric = {
    type: "Resource",
    resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
  };
  const object = {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "h", namespace: "ns" },
    spec: { maxReplicas: 3, scaleTargetRef: { kind: "Deployment", name: "d" }, metrics: [metric] },
  };
  putValidating("v", "/allow", { rules, matchPolicy: "Exact" });
  assert.equal(validating.handles(attributesOf(kind, { object })), false);
  putValidating("v", "/allow", { rules });
  await run(validating, attributesOf(kind, { object }));
  const { request } = asked.at(-1)!.review as unknown as { request: Record<string, any> };
  assert.deepEqual(request.kind, { group: "autoscaling", version: "v1", kind: "HorizontalPodAutoscaler" });
  assert.deepEqual(request.requestKind, { group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler" });
  assert.equal(request.object.apiVersion, "autoscaling/v1");
  assert.equal(request.object.spec.targetCPUUtilizationPercentage, 80);
});

test("patches change the object, one webhook after the other by name, unknown fields dropped", async () => {
  const { mutating, putMutating } = setUp();
  putMutating("b", "/seen");
  putMutating("a", "/count");
  putMutating("c", "/unknown");
  const attributes = attributesOf(configMaps, { object: configMap({ count: "0" }) });
  await run(mutating, attributes);
  assert.deepEqual(attributes.object, configMap({ count: "1", seen: "1" }));
});

test("after a change the webhooks that ask for it look again, once", async () => {
  const { mutating, putMutating } = setUp();
  putMutating("a", "/count", { reinvocationPolicy: "IfNeeded" });
  putMutating("b", "/seen");
  const attributes = attributesOf(configMaps, { object: configMap({ count: "0" }) });
  await run(mutating, attributes);
  assert.equal(attributes.reinvocation.again(), true);
  await run(mutating, attributes);
  assert.deepEqual(attributes.object, configMap({ count: "2", seen: "1" }));
  assert.equal(attributes.reinvocation.again(), false);
});

const MISFITS: readonly (readonly [path: string, message: string])[] = [
  [
    "/misfit",
    "Internal error occurred: error in remove for path: '/nothing': Unable to remove nonexistent key: nothing: missing value",
  ],
  [
    "/undecodable",
    `${FAILED.replace("v.", "m.")}received undecodable patch in webhook response: invalid character 'x' looking for beginning of value`,
  ],
  [
    "/untyped",
    `${FAILED.replace("v.", "m.")}received invalid webhook response: webhook returned response.patch but not response.patchType`,
  ],
];
for (const [path, message] of MISFITS) {
  test(`a patch that is none: ${path}`, async () => {
    const { mutating, putMutating } = setUp();
    putMutating("m", path);
    await assert.rejects(run(mutating, attributesOf(configMaps, { object: configMap() })), { message });
  });
}

test("servers prove who they are", async () => {
  const { validating, putValidating } = setUp();
  const create = () => run(validating, attributesOf(configMaps, { object: configMap() }));
  const url = `${secureBase}/allow`;
  putValidating("v", "", { clientConfig: { url, caBundle: Buffer.from(cert).toString("base64") } });
  await create();
  putValidating("v", "", { clientConfig: { url } });
  await assert.rejects(create(), {
    message: `${FAILED}failed to call webhook: Post "${url}?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
  });
  putValidating("v", "", {
    clientConfig: { url: url.replace(secureBase, base.replace("http", "https")) },
  });
  await assert.rejects(create(), /http: server gave HTTP response to HTTPS client$/);
});

test("a service is reached at its endpoint; what is missing is told", async () => {
  const { validating, putValidating, reader } = setUp();
  const port = (secure.address() as AddressInfo).port;
  const create = () => run(validating, attributesOf(configMaps, { object: configMap() }));
  const service = { name: "s", namespace: "ns", path: "/allow", port: 443 };
  putValidating("v", "", { clientConfig: { service, caBundle: Buffer.from(cert).toString("base64") } });
  const failure = (why: string) => ({
    message: `${FAILED}failed to call webhook: Post "https://s.ns.svc:443/allow?timeout=10s": ${why}`,
  });
  await assert.rejects(create(), failure('service "s" not found'));
  reader.put(resources.services, { metadata: { name: "s", namespace: "ns" }, spec: { ports: [{ port: 444 }] } });
  await assert.rejects(create(), failure('no service port 443 found for service "s"'));
  reader.put(resources.services, { metadata: { name: "s", namespace: "ns" }, spec: { ports: [{ port: 443 }] } });
  reader.put(resources.endpointSlices, {
    metadata: { name: "s-1", namespace: "ns", labels: { "kubernetes.io/service-name": "s" } },
    ports: [{ name: "", port }],
    endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
  });
  await assert.rejects(
    create(),
    (error: Error) =>
      isStatus(error, "InternalError") &&
      /certificate is not valid for any names, but wanted to match s\.ns\.svc$/.test(error.message),
  );
});
