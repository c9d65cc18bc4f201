import assert from "node:assert/strict";
import { test } from "node:test";
import { resources } from "#kinds";
import { reconcileFlowControl } from "../../src/cluster/bootstrap-flow-control.ts";
import { startAccessPlane } from "./plane.test-support.ts";

test("a cluster has its flow schemas and priority levels; a start restores their specs, not those that are let go", async () => {
  await using access = await startAccessPlane();
  const { admin, plane } = access;
  const schemas = await admin.list(resources.flowSchemas);
  assert.equal(schemas.items.length, 11);
  for (const { status } of schemas.items)
    assert.partialDeepStrictEqual(status?.conditions?.[0], { type: "Dangling", status: "False", reason: "Found" });
  const levels = await admin.list(resources.priorityLevelConfigurations);
  assert.deepEqual(
    levels.items.map(({ metadata, spec }) => [metadata.name, spec?.limited?.nominalConcurrencyShares]),
    [
      ["catch-all", 5],
      ["exempt", undefined],
      ["global-default", 20],
      ["leader-election", 10],
      ["node-high", 40],
      ["system", 30],
      ["workload-high", 40],
      ["workload-low", 100],
    ],
  );
  const weaken = (metadata = {}) =>
    ({ type: "merge", body: { metadata, spec: { matchingPrecedence: 7000 } } }) as const;
  await admin.patch(resources.flowSchemas, "probes", weaken());
  const off = { annotations: { "apf.kubernetes.io/autoupdate-spec": "false" } };
  await admin.patch(resources.flowSchemas, "system-nodes", weaken(off));
  await reconcileFlowControl(admin, plane.reader, 0);
  const precedence = async (name: string) => (await admin.get(resources.flowSchemas, name)).spec?.matchingPrecedence;
  assert.deepEqual([await precedence("probes"), await precedence("system-nodes")], [2, 7000]);
});
