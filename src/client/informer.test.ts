import assert from "node:assert/strict";
import test from "node:test";
import { createFakeClock, createSeededRandom, silentLogger } from "#base";
import { type ApiObject, gone, type Resource, type WatchEvent } from "#kinds";
import { createInformer } from "./informer.ts";
import type { Client, WatchOptions } from "./port.ts";

const things: Resource = { group: "", version: "v1", resource: "things", kind: "Thing", namespaced: true };

function thing(name: string, resourceVersion: number, labels: Record<string, string> = {}): ApiObject {
  return {
    apiVersion: "v1",
    kind: "Thing",
    metadata: { namespace: "n", name, labels, resourceVersion: String(resourceVersion) },
  };
}

/** A server whose lists and watches the test decides. */
function setUp() {
  const clock = createFakeClock();
  const server = {
    items: [] as ApiObject[],
    revision: 0,
    lists: 0,
    watches: [] as WatchOptions<ApiObject>[],
    failure: undefined as Error | undefined,
  };
  const client = {
    async list() {
      server.lists++;
      if (server.failure) throw server.failure;
      return { items: [...server.items], metadata: { resourceVersion: String(server.revision) } };
    },
    watch(_: Resource, options: WatchOptions<ApiObject>) {
      server.watches.push(options);
      return { stop() {} };
    },
  } as unknown as Client;
  const informer = createInformer({ client, clock, random: createSeededRandom(1), logger: silentLogger }, things);
  const seen: string[] = [];
  informer.onChange({
    add: (object) => seen.push(`+${object.metadata.name}`),
    update: (object, previous) =>
      seen.push(`~${object.metadata.name} ${previous.metadata.resourceVersion}>${object.metadata.resourceVersion}`),
    delete: (object) => seen.push(`-${object.metadata.name}`),
  });
  const send = (type: WatchEvent["type"], object: ApiObject) =>
    server.watches.at(-1)!.onEvent({ type, object } as never);
  return { clock, server, informer, seen, send };
}

test("an informer lists, then follows the watch from the list's revision", async () => {
  const { clock, server, informer, seen, send } = setUp();
  server.items = [thing("a", 5)];
  server.revision = 7;
  informer.start();
  await clock.advance(0);
  assert.equal(informer.hasSynced, true);
  assert.equal(server.watches[0]!.resourceVersion, "7");
  send("ADDED", thing("b", 8));
  send("MODIFIED", thing("a", 9));
  send("DELETED", thing("b", 10));
  assert.deepEqual(seen, ["+a", "+b", "~a 5>9", "-b"]);
  assert.equal(informer.get("n", "a")?.metadata.resourceVersion, "9");
  assert.equal(informer.get("n", "b"), undefined);
  informer.stop();
});

test("a watch that ends goes on from the last revision, bookmarks included", async () => {
  const { clock, server, informer, send } = setUp();
  informer.start();
  await clock.advance(0);
  send("BOOKMARK", thing("", 42));
  server.watches[0]!.onEnd();
  await clock.advance(1000);
  assert.equal(server.watches[1]!.resourceVersion, "42");
  assert.equal(server.lists, 1);
  informer.stop();
});

test("an expired watch lists again and finds what it missed", async () => {
  const { clock, server, informer, seen } = setUp();
  server.items = [thing("a", 1), thing("b", 2), thing("c", 3)];
  server.revision = 3;
  informer.start();
  await clock.advance(0);
  seen.length = 0;
  server.items = [thing("a", 1), thing("b", 20), thing("d", 21)];
  server.revision = 21;
  server.watches[0]!.onEnd(gone("too old resource version"));
  await clock.advance(1000);
  assert.deepEqual(seen.sort(), ["+d", "-c", "~b 2>20"]);
  assert.equal(server.watches[1]!.resourceVersion, "21");
  informer.stop();
});

test("a list that fails is tried again until it succeeds", async () => {
  const { clock, server, informer } = setUp();
  server.failure = new Error("no route");
  informer.start();
  await clock.advance(500);
  assert.equal(informer.hasSynced, false);
  assert.ok(server.lists > 1);
  server.failure = undefined;
  await clock.advance(5000);
  assert.equal(informer.hasSynced, true);
  informer.stop();
});

test("an index follows adds, changes and deletes", async () => {
  const { clock, server, informer, send } = setUp();
  server.items = [thing("a", 1, { app: "x" })];
  informer.addIndex("app", (object) => [object.metadata.labels?.app ?? ""]);
  informer.start();
  await clock.advance(0);
  send("ADDED", thing("b", 2, { app: "x" }));
  assert.deepEqual(
    informer
      .byIndex("app", "x")
      .map((o) => o.metadata.name)
      .sort(),
    ["a", "b"],
  );
  send("MODIFIED", thing("a", 3, { app: "y" }));
  send("DELETED", thing("b", 4, { app: "x" }));
  assert.deepEqual(informer.byIndex("app", "x"), []);
  assert.deepEqual(
    informer.byIndex("app", "y").map((o) => o.metadata.name),
    ["a"],
  );
  informer.stop();
});

test("a stopped informer does nothing more", async () => {
  const { clock, server, informer } = setUp();
  informer.start();
  await clock.advance(0);
  informer.stop();
  server.watches[0]!.onEnd();
  await clock.advance(60_000);
  assert.equal(server.watches.length, 1);
  assert.equal(clock.pending, 0);
});
