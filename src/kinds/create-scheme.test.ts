import assert from "node:assert/strict";
import { test } from "node:test";
import { createScheme } from "./create-scheme.ts";
import { kindTable } from "./kind-table.ts";
import type { ApiObject } from "./object.ts";
import { schemaOf } from "./schema/schema.ts";

test("createScheme() serves every built-in kind with a schema and columns", () => {
  const scheme = createScheme();
  assert.equal(scheme.all().length, kindTable.length);
  for (const kind of scheme.all()) {
    assert.ok(schemaOf(kind.schema), `${kind.schema} has a schema`);
    assert.equal(kind.columns[0]?.name === "Name" || kind.kind === "Event", true, kind.kind);
  }
});

test("add() and remove() change what is found and tell listeners", () => {
  const scheme = createScheme();
  let changes = 0;
  using _ = scheme.onChange(() => changes++);
  const pod = scheme.byResource("", "v1", "pods");
  assert.ok(pod);
  scheme.add({ ...pod, group: "example.com", resource: "widgets", kind: "Widget" });
  assert.equal(scheme.byKind("example.com/v1", "Widget")?.resource, "widgets");
  scheme.remove("example.com", "v1", "widgets");
  assert.equal(scheme.byKind("example.com/v1", "Widget"), undefined);
  assert.equal(changes, 2);
});

test("a strategy resets status, refuses bad names and keeps system metadata on update", () => {
  const { strategy } = createScheme().byKind("v1", "ConfigMap")!;
  const map: ApiObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a_b", namespace: "default" } };
  strategy.setDefaults(map);
  strategy.prepareForCreate(map);
  const [error] = strategy.validate(map);
  assert.equal(error?.field, "metadata.name");
  assert.match(
    error?.message ?? "",
    /^Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case/,
  );
  const old = { ...map, metadata: { ...map.metadata, name: "a", uid: "u", resourceVersion: "1" } };
  const next: ApiObject = { ...map, metadata: { name: "a", namespace: "default", resourceVersion: "1" } };
  strategy.prepareForUpdate(next, old, "");
  assert.equal(next.metadata.uid, "u");
  assert.deepEqual(strategy.validateUpdate(next, old, ""), []);
});
