import assert from "node:assert/strict";
import test from "node:test";
import { setUp } from "./server.test-support.ts";

test("/metrics counts requests by verb, resource and code, and stored objects", async () => {
  const { call } = setUp();
  await call("POST", "/api/v1/namespaces", { metadata: { name: "n" } });
  await call("GET", "/api/v1/namespaces/none");
  const answer = await call("GET", "/metrics");
  assert.equal(answer.code, 200);
  const text = String((answer.body as { bytes: Buffer }).bytes);
  const labels = 'group="",version="v1",resource="namespaces",subresource=""';
  assert.ok(text.includes(`apiserver_request_total{verb="POST",${labels},scope="cluster",code="201"} 1\n`), text);
  assert.match(text, /apiserver_request_total\{verb="GET",.*resource="namespaces".*code="404"\} 1\n/);
  assert.match(text, /apiserver_request_duration_seconds_bucket\{verb="GET",.*le="\+Inf"\} 1\n/);
  assert.ok(text.includes('apiserver_storage_objects{resource="namespaces"} 1\n'));
  assert.match(text, /^process_resident_memory_bytes \d+$/m);
});
