import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { storeContract } from "../contract.ts";
import { isStoreError } from "../errors.ts";
import { createSqliteStore } from "./mod.ts";

const dir = mkdtempSync(join(tmpdir(), "slim-store-"));
after(() => rmSync(dir, { recursive: true }));
let n = 0;
const fresh = () => join(dir, `${++n}.db`);

storeContract("sqlite", (window) => createSqliteStore(fresh(), { window }));

test("what was written is there again, and revisions go on", async () => {
  const path = fresh();
  let last: number;
  {
    await using store = await createSqliteStore(path);
    const a = await store.create("/a", { metadata: {}, text: "ä" } as never);
    const b = await store.create("/b", { metadata: {} });
    await store.delete("/b", b.revision);
    await store.update("/a", { metadata: {}, text: "ö" } as never, a.revision);
    last = store.revision;
  }
  await using store = await createSqliteStore(path);
  assert.equal(store.revision, last);
  assert.deepEqual(
    store.list("/").items.map((entry) => [entry.key, entry.object]),
    [["/a", { metadata: { resourceVersion: String(last) }, text: "ö" }]],
  );
  assert.throws(
    () => store.watch("/", last - 1, () => {}),
    (error) => isStoreError(error, "compacted"),
  );
  assert.equal((await store.create("/c", { metadata: {} })).revision, last + 1);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("volatile writes are seen but not kept, and never repeat a revision", async () => {
  const path = fresh();
  let last: number;
  {
    await using store = await createSqliteStore(path);
    const lease = await store.create("/lease", { metadata: {}, n: 0 } as never);
    const seen: number[] = [];
    store.watch("/lease", store.revision, (change) => seen.push(change.revision));
    let at = lease.revision;
    for (let i = 1; i <= 3; i++)
      at = (await store.update("/lease", { metadata: {}, n: i } as never, at, { volatile: true })).revision;
    assert.equal(seen.length, 3);
    last = at;
  }
  await using store = await createSqliteStore(path);
  assert.equal((store.get("/lease")!.object as { n?: number }).n, 0);
  assert.ok(store.revision >= last);
});

test("an idle store and volatile writes do not touch the disk", async () => {
  const path = fresh();
  await using store = await createSqliteStore(path);
  const a = await store.create("/a", { metadata: {} });
  const size = () => [path, `${path}-wal`].map((file) => [statSync(file).size, statSync(file).mtimeMs]);
  const before = size();
  await store.update("/a", { metadata: {} }, a.revision, { volatile: true });
  assert.deepEqual(size(), before);
});

test("no acknowledged write is lost when the process is killed", async () => {
  const path = fresh();
  const script = `
    const { createSqliteStore } = await import(${JSON.stringify(join(import.meta.dirname, "mod.ts"))});
    const store = await createSqliteStore(process.argv[1]);
    for (let i = 0; ; i++) { await Promise.all([0, 1, 2].map((j) => store.create("/k/" + i + "-" + j, { metadata: {} }))); process.stdout.write(i + "\\n"); }`;
  const child = spawn(process.execPath, ["--no-warnings", "--input-type=module", "-e", script, path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  for await (const chunk of child.stdout) {
    text += chunk;
    if (text.split("\n").length > 50) child.kill("SIGKILL");
  }
  const acknowledged = Number(text.trim().split("\n").at(-1));
  assert.ok(acknowledged >= 49);
  await using store = await createSqliteStore(path);
  for (let i = 0; i < acknowledged; i++)
    for (const j of [0, 1, 2]) assert.ok(store.get(`/k/${i}-${j}`), `write ${i}-${j} is lost`);
});

test("a file that is no database is told apart, with a way out", async () => {
  const path = fresh();
  writeFileSync(path, "this is not a database, and long enough to be read as one".repeat(100));
  await assert.rejects(
    createSqliteStore(path),
    (error) => isStoreError(error, "corrupt") && /move it/.test(error.hint ?? ""),
  );
});

test("a full disk fails the write with `full`, and the store goes on when there is room", async () => {
  // a limit on the file's pages stands for a full disk: SQLite reports both alike
  await using store = await createSqliteStore(fresh(), { maxPages: 8 });
  await store.create("/ok", { metadata: {} });
  const big = store.create("/big", { metadata: {}, text: "x".repeat(100_000) } as never);
  const behind = store.create("/behind", { metadata: {} });
  await assert.rejects(big, (error) => isStoreError(error, "full"));
  await assert.rejects(behind);
  assert.equal(store.get("/big"), undefined);
  await store.create("/ok2", { metadata: {} });
  assert.equal(store.count("/"), 2);
});
