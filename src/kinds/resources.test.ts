import assert from "node:assert/strict";
import { test } from "node:test";
import { kindTable } from "./kind-table.ts";
import type { ApiObject, Resource } from "./object.ts";
import { resources } from "./resources.ts";
import type { Deployment, Pod } from "./generated/types.ts";

test("every row of the kind table has one typed handle", () => {
  const place = (r: { group: string; version: string; resource: string }) => `${r.group}/${r.version}/${r.resource}`;
  const handles: Resource<unknown>[] = Object.values(resources);
  assert.deepEqual(handles.map(place).sort(), kindTable.map(place).sort());
  for (const row of kindTable) {
    const handle = handles.find((h) => place(h) === place(row));
    assert.equal(handle?.kind, row.kind);
    assert.equal(handle?.namespaced, row.namespaced);
  }
});

test("generated types fit ApiObject", () => {
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a" },
    spec: { containers: [{ name: "c" }] },
  };
  const object: ApiObject = pod;
  assert.equal(object.kind, "Pod");
  const template: Deployment["spec"]["template"] = { metadata: { labels: { a: "b" } }, spec: pod.spec };
  assert.equal(template.spec.containers[0]?.name, "c");
});
