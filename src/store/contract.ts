import assert from "node:assert/strict";
import test from "node:test";
import { isStoreError } from "./errors.ts";
import type { Change, Store, StoreObject } from "./port.ts";

const object = (value: number): StoreObject & { value: number } => ({ metadata: {}, value });
const numberOf = (stored: { object: StoreObject } | undefined) =>
  (stored?.object as { value?: number } | undefined)?.value;
const code =
  (...codes: Parameters<typeof isStoreError>[1][]) =>
  (error: unknown) =>
    isStoreError(error, ...codes);

/** What every store must do; each adapter runs it. `open` gives an empty store whose window holds few changes. */
export function storeContract(name: string, open: (window: number) => Promise<Store>): void {
  const check = (what: string, run: (store: Store) => Promise<void>) =>
    test(`${name}: ${what}`, async () => {
      await using store = await open(10);
      await run(store);
    });

  check("create() assigns growing revisions and refuses a key that exists", async (store) => {
    const a = await store.create("/a/1", object(1));
    const b = await store.create("/a/2", object(2));
    assert.equal(b.revision, a.revision + 1);
    assert.equal(a.object.metadata.resourceVersion, String(a.revision));
    assert.equal(store.revision, b.revision);
    assert.deepEqual(JSON.parse(a.json().toString()), { metadata: { resourceVersion: String(a.revision) }, value: 1 });
    await assert.rejects(store.create("/a/1", object(3)), code("exists"));
  });

  check("update() and delete() hold only at the revision that was read", async (store) => {
    const a = await store.create("/a/1", object(1));
    const b = await store.update("/a/1", object(2), a.revision);
    assert.equal(b.created, a.revision);
    await assert.rejects(store.update("/a/1", object(3), a.revision), code("conflict"));
    await assert.rejects(store.delete("/a/1", a.revision), code("conflict"));
    const gone = await store.delete("/a/1", b.revision);
    assert.equal(gone.revision, b.revision + 1);
    assert.equal(gone.object.metadata.resourceVersion, String(gone.revision));
    assert.equal(store.get("/a/1"), undefined);
    await assert.rejects(store.update("/a/1", object(4), b.revision), code("not-found"));
    await assert.rejects(store.delete("/a/1", b.revision), code("not-found"));
  });

  check("of writes that race for one revision one succeeds", async (store) => {
    const a = await store.create("/a/1", object(0));
    const results = await Promise.allSettled([1, 2, 3].map((i) => store.update("/a/1", object(i), a.revision)));
    assert.deepEqual(results.map((r) => r.status).sort(), ["fulfilled", "rejected", "rejected"]);
    assert.equal(numberOf(store.get("/a/1")), 1);
    const creates = await Promise.allSettled([1, 2].map((i) => store.create("/a/2", object(i))));
    assert.deepEqual(creates.map((r) => r.status).sort(), ["fulfilled", "rejected"]);
  });

  check("latest() sees writes under way, get() does not", async (store) => {
    const a = await store.create("/a/1", object(1));
    const update = store.update("/a/1", object(2), a.revision);
    assert.deepEqual([numberOf(store.get("/a/1")), numberOf(store.latest("/a/1"))], [1, 2]);
    const b = await store.update("/a/1", object(3), store.latest("/a/1")!.revision);
    await update;
    const removal = store.delete("/a/1", b.revision);
    assert.equal(store.latest("/a/1"), undefined);
    await removal;
    assert.equal(store.get("/a/1"), undefined);
  });

  check("list() gives keys in order, pages and what remains", async (store) => {
    for (const i of [3, 1, 2, 10]) await store.create(`/a/${i}`, object(i));
    await store.create("/b/1", object(9));
    const all = store.list("/a/");
    assert.deepEqual(all.items.map(numberOf), [1, 10, 2, 3]);
    assert.equal(all.remaining, 0);
    const page = store.list("/a/", { limit: 3 });
    assert.deepEqual([page.items.map(numberOf), page.remaining], [[1, 10, 2], 1]);
    assert.deepEqual(store.list("/a/", { after: "/a/2", limit: 3 }).items.map(numberOf), [3]);
    assert.equal(store.count("/a/"), 4);
    assert.equal(store.count("/"), 5);
  });

  check("list() at an earlier revision is what was there then", async (store) => {
    const a = await store.create("/a/1", object(1));
    const b = await store.create("/a/2", object(2));
    const then = store.revision;
    await store.update("/a/1", object(11), a.revision);
    await store.delete("/a/2", b.revision);
    await store.create("/a/0", object(0));
    const old = store.list("/a/", { revision: then });
    assert.deepEqual([old.items.map(numberOf), old.revision], [[1, 2], then]);
    assert.deepEqual(store.list("/a/", { revision: then, limit: 1 }).remaining, 1);
    assert.throws(() => store.list("/a/", { revision: store.revision + 1 }), code("future"));
  });

  check("watch() gives the past after `since`, then what comes, of its prefix only", async (store) => {
    const a = await store.create("/a/1", object(1));
    const seen: string[] = [];
    const note = (c: Change) =>
      seen.push(`${c.type} ${c.key} ${numberOf(c.previous) ?? "-"}>${numberOf(c.current)} ${c.revision - a.revision}`);
    const b = await store.update("/a/1", object(2), a.revision);
    const watch = store.watch("/a/", a.revision, note);
    assert.deepEqual(seen, ["put /a/1 1>2 1"]);
    await store.create("/b/1", object(5));
    await store.delete("/a/1", b.revision);
    watch[Symbol.dispose]();
    await store.create("/a/9", object(9));
    assert.deepEqual(seen, ["put /a/1 1>2 1", "delete /a/1 2>2 3"]);
    assert.throws(() => store.watch("/a/", store.revision + 5, note), code("future"));
  });

  check("a revision that left the window is compacted", async (store) => {
    const first = (await store.create("/a/0", object(0))).revision;
    for (let i = 1; i < 40; i++) await store.create(`/a/${i}`, object(i));
    assert.ok(store.compactedRevision > first);
    assert.throws(() => store.watch("/a/", first, () => {}), code("compacted"));
    assert.throws(() => store.list("/a/", { revision: first }), code("compacted"));
    assert.equal(
      store.list("/a/", { revision: store.compactedRevision }).items.length,
      store.compactedRevision - first + 1,
    );
  });

  check("a watcher sees every write once and in order, also under concurrent writers", async (store) => {
    const revisions: number[] = [];
    store.watch("/", store.revision, (change) => revisions.push(change.revision));
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        let at = (await store.create(`/a/${i}`, object(0))).revision;
        for (let n = 1; n < 5; n++) at = (await store.update(`/a/${i}`, object(n), at)).revision;
        await store.delete(`/a/${i}`, at);
      }),
    );
    assert.equal(revisions.length, 120);
    assert.deepEqual(
      revisions,
      Array.from({ length: 120 }, (_, i) => store.revision - 119 + i),
    );
    assert.equal(store.count("/"), 0);
  });

  check("a listener may write and unsubscribe", async (store) => {
    const done = Promise.withResolvers<void>();
    const watch = store.watch("/a/", store.revision, () => {
      watch[Symbol.dispose]();
      void store.create("/a/2", object(2)).then(() => done.resolve(), done.reject);
    });
    await store.create("/a/1", object(1));
    await done.promise;
    assert.equal(store.count("/a/"), 2);
  });

  check("many keys stay in order through inserts and removals", async (store) => {
    const keys = Array.from({ length: 3000 }, (_, i) => `/k/${(i * 7919) % 3000}`);
    const made = await Promise.all(keys.map((key) => store.create(key, object(1))));
    await Promise.all(made.filter((_, i) => i % 3 === 0).map((entry) => store.delete(entry.key, entry.revision)));
    const left = keys.filter((_, i) => i % 3 !== 0).sort();
    assert.deepEqual(
      store.list("/k/").items.map((entry) => entry.key),
      left,
    );
    assert.equal(store.count("/k/"), 2000);
  });
}
