import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createFakeClock, createSeededRandom } from "#base";
import { checkPayloadPath, type FileProjection, writeAtomically } from "./atomic-writer.ts";

const file = (text: string, mode = 0o644): FileProjection => ({ data: Buffer.from(text), mode });
const payload = (files: Record<string, FileProjection>) => new Map(Object.entries(files));
const clock = createFakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
const random = createSeededRandom(1);
const write = (directory: string, files: Record<string, FileProjection>) =>
  writeAtomically(directory, payload(files), { clock, random });

async function directoryFor(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "slim-volume-"));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

describe("writeAtomically()", () => {
  it("lays files out as the kubelet does", async (t) => {
    const at = await directoryFor(t);
    assert.equal(await write(at, { a: file("1", 0o400), "sub/deep/b": file("2") }), true);
    const data = await readlink(join(at, "..data"));
    assert.match(data, /^\.\.2026_01_02_03_04_05\.\d+$/);
    assert.deepEqual((await readdir(at)).sort(), [data, "..data", "a", "sub"].sort());
    assert.equal(await readlink(join(at, "a")), "..data/a");
    assert.equal(await readlink(join(at, "sub")), "..data/sub");
    assert.equal(await readFile(join(at, "sub/deep/b"), "utf8"), "2");
    assert.equal((await stat(join(at, "a"))).mode & 0o777, 0o400);
    assert.equal((await stat(join(at, data))).mode & 0o777, 0o755);
  });

  it("writes nothing when nothing changed", async (t) => {
    const at = await directoryFor(t);
    await write(at, { a: file("1") });
    const before = await readlink(join(at, "..data"));
    assert.equal(await write(at, { a: file("1") }), false);
    assert.equal(await readlink(join(at, "..data")), before);
  });

  it("replaces, adds and removes in one step, and clears the old", async (t) => {
    const at = await directoryFor(t);
    await write(at, { a: file("1"), b: file("2"), "s/x": file("3") });
    const before = await readlink(join(at, "..data"));
    assert.equal(await write(at, { a: file("new"), c: file("4") }), true);
    const after = await readlink(join(at, "..data"));
    assert.notEqual(after, before);
    assert.deepEqual((await readdir(at)).sort(), [after, "..data", "a", "c"].sort());
    assert.equal(await readFile(join(at, "a"), "utf8"), "new");
  });

  it("mends what a crash left: a temporary link, an old directory, a missing visible link", async (t) => {
    const at = await directoryFor(t);
    await write(at, { a: file("1") });
    await symlink("nowhere", join(at, "..data_tmp"));
    await mkdir(join(at, "..2020_01_01_00_00_00.1"));
    await rm(join(at, "a"));
    assert.equal(await write(at, { a: file("1") }), false);
    assert.equal(await readFile(join(at, "a"), "utf8"), "1");
    await write(at, { a: file("2") });
    assert.deepEqual(
      (await readdir(at)).filter((name) => name.startsWith("..2020") || name === "..data_tmp"),
      [],
    );
  });

  it("leaves mount points of nested volumes alone", async (t) => {
    const at = await directoryFor(t);
    await mkdir(join(at, "nested"));
    await write(at, { a: file("1") });
    await write(at, { a: file("2") });
    assert.ok((await stat(join(at, "nested"))).isDirectory());
  });

  it("publishes nothing when owners cannot be set", async (t) => {
    const at = await directoryFor(t);
    await write(at, { a: file("1") });
    const refused = writeAtomically(at, payload({ a: file("2") }), {
      clock,
      random,
      beforePublish: () => Promise.reject(new Error("no")),
    });
    await assert.rejects(refused, { message: "no" });
    assert.equal(await readFile(join(at, "a"), "utf8"), "1");
    assert.equal((await readdir(at)).filter((name) => name.startsWith("..2")).length, 1);
  });
});

describe("checkPayloadPath()", () => {
  const bad: [string, RegExp][] = [
    ["", /must not be empty/],
    ["/etc/passwd", /must be relative path/],
    ["../x", /must not contain '..'/],
    ["a/../../x", /must not contain '..'/],
    ["..data", /must not start with '..'/],
    ["..2026/x", /must not start with '..'/],
    ["a".repeat(256), /less than or equal to 255/],
    ["a/".repeat(2100), /less than or equal to 4096/],
    ["a\0b", /NUL/],
  ];
  for (const [path, error] of bad)
    it(`refuses ${path.slice(0, 20)}`, () => assert.throws(() => checkPayloadPath(path), error));
  for (const path of ["a", "a/b", ".hidden", "a/..b", "a..b"]) it(`takes ${path}`, () => checkPayloadPath(path));
});
