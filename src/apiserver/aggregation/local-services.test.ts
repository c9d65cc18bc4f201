import assert from "node:assert/strict";
import { test } from "node:test";
import { createSeededRandom, silentLogger } from "#base";
import type { MutableScheme } from "#kinds";
import { setUp } from "../server.test-support.ts";
import { startLocalServices } from "./mod.ts";

const SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";

test("every group that is served has an APIService, and loses it with its last kind", async () => {
  const { call, store, clock, server } = setUp();
  const scheme = server.context.scheme as MutableScheme;
  const random = createSeededRandom(1);
  using local = startLocalServices({ store, scheme, clock, random, logger: silentLogger });
  await local.settled();
  const { items } = (await call("GET", SERVICES)).object;
  assert.equal(items.length, 21);
  const apps = (await call("GET", `${SERVICES}/v1.apps`)).object;
  assert.deepEqual(apps.spec, { group: "apps", version: "v1", groupPriorityMinimum: 17800, versionPriority: 15 });
  assert.deepEqual(apps.metadata.labels, { "kube-aggregator.kubernetes.io/automanaged": "onstart" });
  assert.deepEqual(
    [apps.status.conditions[0].type, apps.status.conditions[0].message],
    ["Available", "Local APIServices are always available"],
  );
  const custom = { ...scheme.byResource("", "v1", "configmaps")!, group: "example.com" };
  scheme.add({ ...custom, decode: () => ({ unknown: [], error: undefined }) });
  await local.settled();
  const added = (await call("GET", `${SERVICES}/v1.example.com`)).object;
  assert.deepEqual([added.spec.groupPriorityMinimum, added.spec.versionPriority], [1000, 100]);
  scheme.remove("example.com", "v1", "configmaps");
  await local.settled();
  assert.equal((await call("GET", `${SERVICES}/v1.example.com`)).code, 404);
});
