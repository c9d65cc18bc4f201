import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { readBelow, resolveSubPath } from "./sub-path.ts";

async function volumeFor(t: TestContext): Promise<{ volume: string; outside: string }> {
  const top = await mkdtemp(join(tmpdir(), "slim-subpath-"));
  t.after(() => rm(top, { recursive: true }));
  const volume = join(top, "volume");
  await mkdir(join(volume, "dir"), { recursive: true });
  await mkdir(join(top, "secret"));
  await writeFile(join(top, "secret/file"), "secret");
  await writeFile(join(volume, "dir/file"), "inside");
  await symlink("dir", join(volume, "link"));
  await symlink("../secret", join(volume, "out"));
  await symlink("/etc", join(volume, "absolute"));
  await symlink(join(volume, "dir"), join(volume, "own"));
  await symlink("loop", join(volume, "loop"));
  await symlink("../link/../dir", join(volume, "dir/back"));
  return { volume, outside: join(top, "secret") };
}

describe("resolveSubPath()", () => {
  const good: [string, string][] = [
    ["dir", "dir"],
    ["dir/file", "dir/file"],
    ["link/file", "dir/file"],
    ["own/file", "dir/file"],
    ["dir/back/file", "dir/file"],
    ["./dir//", "dir"],
  ];
  for (const [path, expected] of good) {
    it(`takes ${path}`, async (t) =>
      assert.equal(await resolveSubPath((await volumeFor(t)).volume, path, { create: false }), expected));
  }
  const bad: [string, RegExp][] = [
    ["/dir", /must not be an absolute path/],
    ["dir/../../x", /must not contain '..'/],
    ["out", /leaves the volume/],
    ["out/new", /leaves the volume/],
    ["absolute/passwd", /leaves the volume/],
    ["loop", /too many links/],
    ["dir/file/x", /is not a directory/],
  ];
  for (const [path, error] of bad) {
    it(`refuses ${path}`, async (t) => {
      const { volume, outside } = await volumeFor(t);
      await assert.rejects(resolveSubPath(volume, path, { create: true }), error);
      await assert.rejects(stat(join(outside, "new")), { code: "ENOENT" });
    });
  }
  it("makes what is missing with the volume's permissions", async (t) => {
    const { volume } = await volumeFor(t);
    await chmod(volume, 0o2777);
    assert.equal(await resolveSubPath(volume, "a/b", { create: true }), "a/b");
    assert.equal((await stat(join(volume, "a/b"))).mode & 0o7777, 0o2777);
    await assert.rejects(resolveSubPath(volume, "c", { create: false }), /does not exist/);
  });
});

describe("readBelow()", () => {
  it("reads a file of the volume, and nothing else", async (t) => {
    const { volume } = await volumeFor(t);
    assert.equal(await readBelow(volume, "link/file", 100), "inside");
    await assert.rejects(readBelow(volume, "out/file", 100), /leaves the volume/);
    await assert.rejects(readBelow(volume, "dir", 100), /is not a file/);
    await assert.rejects(readBelow(volume, "dir/file", 3), /more than 3 bytes/);
  });
});
