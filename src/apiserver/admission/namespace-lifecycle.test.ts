import assert from "node:assert/strict";
import { test } from "node:test";
import { resources, type StatusError } from "#kinds";
import { attributesOf, createFakeReader, run } from "./fixture.ts";
import { createNamespaceLifecycle } from "./namespace-lifecycle.ts";

const reader = createFakeReader();
reader.put(resources.namespaces, { metadata: { name: "live" }, status: { phase: "Active" } });
reader.put(resources.namespaces, { metadata: { name: "going" }, status: { phase: "Terminating" } });
const plugin = createNamespaceLifecycle({ reader });
const pod = (namespace: string) => ({ object: { metadata: { name: "web", namespace } } });

test("objects are created in living namespaces only", async () => {
  await run(plugin, attributesOf(resources.pods, pod("live")));
  await assert.rejects(run(plugin, attributesOf(resources.pods, pod("absent"))), {
    message: 'namespaces "absent" not found',
  });
  await assert.rejects(run(plugin, attributesOf(resources.pods, pod("going"))), (error: StatusError) => {
    assert.equal(
      error.message,
      'pods "web" is forbidden: unable to create new content in namespace going because it is being terminated',
    );
    assert.equal(error.status.details?.causes?.[0]?.reason, "NamespaceTerminating");
    return true;
  });
});

test("updates and deletes go on in a terminating namespace", async () => {
  await run(plugin, attributesOf(resources.pods, { ...pod("going"), old: pod("going").object }));
  await run(plugin, attributesOf(resources.pods, { operation: "DELETE", namespace: "going", name: "web" }));
});

test("the system's namespaces stay", async () => {
  for (const name of ["default", "kube-system", "kube-public"]) {
    await assert.rejects(run(plugin, attributesOf(resources.namespaces, { operation: "DELETE", name })), {
      message: `namespaces "${name}" is forbidden: this namespace may not be deleted`,
    });
  }
  await run(plugin, attributesOf(resources.namespaces, { operation: "DELETE", name: "live" }));
});
