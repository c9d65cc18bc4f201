import assert from "node:assert/strict";
import test from "node:test";
import { setUp } from "./server.test-support.ts";

const CM = "/api/v1/namespaces/n/configmaps";
const configMap = (name: string, data: Record<string, string> = {}, labels?: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...(labels ? { labels } : {}) },
  data,
});

async function withNamespace() {
  const all = setUp();
  assert.equal(
    (await all.call("POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "n" } }))
      .code,
    201,
  );
  return all;
}

test("an object is created, read, replaced, patched and deleted", async () => {
  const { call } = await withNamespace();
  const made = await call("POST", CM, configMap("a", { x: "1" }));
  assert.equal(made.code, 201);
  assert.equal(made.object.metadata.namespace, "n");
  assert.match(made.object.metadata.uid, /^[0-9a-f-]{36}$/);
  assert.equal(made.object.metadata.creationTimestamp, "2026-01-01T00:00:00Z");
  const got = await call("GET", `${CM}/a`);
  assert.deepEqual(got.object, made.object);
  const put = await call("PUT", `${CM}/a`, { ...made.object, data: { x: "2" } });
  assert.equal(put.code, 200);
  assert.equal(put.object.data.x, "2");
  const stale = await call("PUT", `${CM}/a`, { ...made.object, data: { x: "3" } });
  assert.equal(stale.code, 409);
  assert.equal(
    stale.object.message,
    'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
  );
  const patched = await call("PATCH", `${CM}/a`, { data: { y: "4", x: null } });
  assert.deepEqual(patched.object.data, { y: "4" });
  const gone = await call("DELETE", `${CM}/a`);
  assert.deepEqual([gone.code, gone.object.status, gone.object.details.kind], [200, "Success", "configmaps"]);
  const absent = await call("GET", `${CM}/a`);
  assert.deepEqual([absent.code, absent.object.message], [404, 'configmaps "a" not found']);
});

test("a write that changes nothing keeps the revision and makes no event", async () => {
  const { call, watch } = await withNamespace();
  const made = await call("POST", CM, configMap("a", { x: "1" }));
  const { events, stop } = await watch(`${CM}?watch=1&resourceVersion=${made.object.metadata.resourceVersion}`);
  const same = await call("PATCH", `${CM}/a`, { data: { x: "1" } });
  assert.equal(same.object.metadata.resourceVersion, made.object.metadata.resourceVersion);
  assert.deepEqual(events, []);
  stop();
});

test("what exists is refused, and a generated name is tried again", async () => {
  const { call } = await withNamespace();
  await call("POST", CM, configMap("a"));
  const again = await call("POST", CM, configMap("a"));
  assert.deepEqual(
    [again.code, again.object.reason, again.object.message],
    [409, "AlreadyExists", 'configmaps "a" already exists'],
  );
  const generated = await call("POST", CM, { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "g-" } });
  assert.match(generated.object.metadata.name, /^g-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
});

test("a namespace that is absent refuses its content", async () => {
  const { call } = await withNamespace();
  const answer = await call("POST", "/api/v1/namespaces/none/configmaps", configMap("a"));
  assert.deepEqual([answer.code, answer.object.message], [404, 'namespaces "none" not found']);
});

test("lists are pages of one snapshot", async () => {
  const { call } = await withNamespace();
  for (const name of ["a", "b", "c"]) await call("POST", CM, configMap(name));
  const first = await call("GET", `${CM}?limit=2`);
  assert.deepEqual(
    [first.object.items.map((o: any) => o.metadata.name), first.object.metadata.remainingItemCount],
    [["a", "b"], 1],
  );
  assert.equal(first.object.items[0].kind, undefined);
  assert.equal(first.object.kind, "ConfigMapList");
  await call("POST", CM, configMap("bb"));
  await call("DELETE", `${CM}/c`);
  const second = await call("GET", `${CM}?limit=2&continue=${first.object.metadata.continue}`);
  assert.deepEqual(
    [second.object.items.map((o: any) => o.metadata.name), second.object.metadata.continue],
    [["c"], undefined],
  );
  assert.equal(second.object.metadata.resourceVersion, first.object.metadata.resourceVersion);
});

test("a continue token whose snapshot is gone is told as 410, with a token to go on", async () => {
  const { call } = await withNamespace();
  for (const name of ["a", "b", "c"]) await call("POST", CM, configMap(name));
  const first = await call("GET", `${CM}?limit=1`);
  for (let i = 0; i < 120; i++) await call("PATCH", `${CM}/a`, { data: { i: String(i) } });
  const expired = await call("GET", `${CM}?limit=1&continue=${first.object.metadata.continue}`);
  assert.deepEqual([expired.code, expired.object.reason], [410, "Expired"]);
  const rest = await call("GET", `${CM}?continue=${expired.object.metadata.continue}`);
  assert.deepEqual(
    rest.object.items.map((o: any) => o.metadata.name),
    ["b", "c"],
  );
  const old = await watchError(await withNamespace());
  assert.deepEqual([old.type, old.object.code, old.object.reason], ["ERROR", 410, "Expired"]);
});

async function watchError({ call, watch }: Awaited<ReturnType<typeof withNamespace>>) {
  await call("POST", CM, configMap("a"));
  for (let i = 0; i < 120; i++) await call("PATCH", `${CM}/a`, { data: { i: String(i) } });
  const { events } = await watch(`${CM}?watch=1&resourceVersion=1`);
  return events[0]!;
}

test("a watch with a selector sees objects enter and leave it", async () => {
  const { call, watch } = await withNamespace();
  const { events, types, stop } = await watch(`${CM}?watch=true&labelSelector=app%3Dx`);
  await call("POST", CM, configMap("a", {}, { app: "x" }));
  await call("POST", CM, configMap("b", {}, { app: "y" }));
  await call("PATCH", `${CM}/b`, { metadata: { labels: { app: "x" } } });
  await call("PATCH", `${CM}/a`, { data: { k: "v" } });
  const left = await call("PATCH", `${CM}/a`, { metadata: { labels: { app: "z" } } });
  await call("DELETE", `${CM}/a`);
  await call("DELETE", `${CM}/b`);
  assert.deepEqual(types(), ["ADDED a", "ADDED b", "MODIFIED a", "DELETED a", "DELETED b"]);
  assert.deepEqual(events[3]!.object.metadata.labels, { app: "x" });
  assert.equal(events[3]!.object.metadata.resourceVersion, left.object.metadata.resourceVersion);
  stop();
});

test("sendInitialEvents gives the state, a marked bookmark, then changes", async () => {
  const { call, watch } = await withNamespace();
  await call("POST", CM, configMap("a"));
  const { events, types, stop } = await watch(
    `${CM}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
  );
  await call("POST", CM, configMap("b"));
  assert.deepEqual(types(), ["ADDED a", "BOOKMARK ", "ADDED b"]);
  assert.deepEqual(events[1]!.object.metadata.annotations, { "k8s.io/initial-events-end": "true" });
  stop();
  const wrong = await call("GET", `${CM}?watch=1&sendInitialEvents=true`);
  assert.equal(wrong.code, 422);
});

test("a watch ends at its timeout", async () => {
  const { clock, watch } = await withNamespace();
  const { ended } = await watch(`${CM}?watch=1&timeoutSeconds=5`);
  await clock.advance(4999);
  assert.equal(ended(), false);
  await clock.advance(1);
  assert.equal(ended(), true);
});

test("finalizers hold a deleted object until the last one goes", async () => {
  const { call, watch } = await withNamespace();
  const { types, stop } = await watch(`${CM}?watch=1`);
  await call("POST", CM, { ...configMap("a"), metadata: { name: "a", finalizers: ["example.com/hold"] } });
  const marked = await call("DELETE", `${CM}/a`);
  assert.ok(marked.object.metadata.deletionTimestamp);
  const released = await call("PATCH", `${CM}/a`, { metadata: { finalizers: null } });
  assert.equal(released.code, 200);
  assert.equal((await call("GET", `${CM}/a`)).code, 404);
  assert.deepEqual(types(), ["ADDED a", "MODIFIED a", "DELETED a"]);
  stop();
});

test("a dry run answers like a write and writes nothing", async () => {
  const { call, store } = await withNamespace();
  const before = store.revision;
  assert.equal((await call("POST", `${CM}?dryRun=All`, configMap("a"))).code, 201);
  assert.equal(store.revision, before);
  await call("POST", CM, configMap("a", { x: "1" }));
  const dry = await call("PATCH", `${CM}/a?dryRun=All`, { data: { x: "2" } });
  assert.equal(dry.object.data.x, "2");
  assert.equal((await call("GET", `${CM}/a`)).object.data.x, "1");
});

test("unknown fields are refused, warned of or ignored as the client asks", async () => {
  const { call } = await withNamespace();
  const body = { ...configMap("a"), dta: {} };
  const strict = await call("POST", `${CM}?fieldValidation=Strict`, body);
  assert.deepEqual(
    [strict.code, strict.object.message],
    [400, 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dta"'],
  );
  const warned = await call("POST", CM, body);
  assert.deepEqual([warned.code, warned.headers.warning], [201, ['299 - "unknown field \\"dta\\""']]);
  const ignored = await call("POST", `${CM}?fieldValidation=Ignore`, { ...body, metadata: { name: "b" } });
  assert.deepEqual([ignored.code, ignored.headers.warning], [201, undefined]);
});

test("bodies that are no objects of the kind are told so", async () => {
  const { call } = await withNamespace();
  for (const body of [
    "{",
    "[]",
    "1",
    '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}',
    '{"apiVersion":"v2","kind":"ConfigMap"}',
    '{"metadata":{"name":1}}',
  ]) {
    const answer = await call("POST", CM, body);
    assert.deepEqual([answer.code, answer.object.kind, answer.object.reason], [400, "Status", "BadRequest"], body);
  }
  const media = await call("POST", CM, "x", { "content-type": "text/plain" });
  assert.equal(media.code, 415);
});

test("a Table has kubectl's columns; metadata alone can be asked for", async () => {
  const { call } = await withNamespace();
  await call("POST", CM, configMap("a", { x: "1" }));
  const table = await call("GET", CM, undefined, {
    accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
  });
  assert.deepEqual(
    table.object.columnDefinitions.map((c: any) => c.name),
    ["Name", "Data", "Age"],
  );
  assert.deepEqual(table.object.rows[0].cells, ["a", 1, "0s"]);
  const meta = await call("GET", `${CM}/a`, undefined, {
    accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
  });
  assert.deepEqual([meta.object.kind, meta.object.data], ["PartialObjectMetadata", undefined]);
  assert.equal((await call("GET", CM, undefined, { accept: "image/png" })).code, 406);
});

test("a strategic merge patch merges containers by name", async () => {
  const { call } = await withNamespace();
  const container = (name: string, image: string) => ({ name, image });
  const labels = { a: "b" };
  const template = { metadata: { labels }, spec: { containers: [container("x", "i:1"), container("y", "j:1")] } };
  const made = await call("POST", "/apis/apps/v1/namespaces/n/deployments", {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "d" },
    spec: { selector: { matchLabels: labels }, template },
  });
  assert.equal(made.code, 201);
  const patch = { spec: { template: { spec: { containers: [container("y", "j:2")] } } } };
  const patched = await call("PATCH", "/apis/apps/v1/namespaces/n/deployments/d", patch, {
    "content-type": "application/strategic-merge-patch+json",
  });
  assert.deepEqual(
    patched.object.spec.template.spec.containers.map((c: any) => [c.name, c.image]),
    [
      ["y", "j:2"],
      ["x", "i:1"],
    ].reverse(),
  );
  assert.deepEqual([made.object.metadata.generation, patched.object.metadata.generation], [1, 2]);
  const scale = await call("PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale", { spec: { replicas: 5 } });
  assert.deepEqual([scale.object.kind, scale.object.spec.replicas, scale.object.status.selector], ["Scale", 5, "a=b"]);
});

test("discovery names every kind; an unknown path is 404", async () => {
  const { call } = setUp();
  const core = await call("GET", "/api/v1");
  assert.ok(core.object.resources.some((r: any) => r.name === "pods/log"));
  const aggregated = await call("GET", "/apis", undefined, {
    accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
  });
  assert.equal(aggregated.body.kind, "bytes");
  for (const path of ["/nothing", "/apis/none/v1", "/api/v1/nothing", "/apis/apps/v1/pods"])
    assert.equal((await call("GET", path)).code, 404, path);
});
