import assert from "node:assert/strict";
import { link, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { ReadonlyPod } from "../ports.ts";
import { bytesBelow, limitedVolumes, overLimit } from "./usage.ts";

const podWith = (volumes: object[]): ReadonlyPod =>
  ({ metadata: { name: "p" }, spec: { containers: [], volumes } }) as unknown as ReadonlyPod;

async function directory(t: { after(end: () => Promise<void>): void }): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "usage-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

describe("what scratch volumes hold", () => {
  it("is counted once for each file, and not behind links", async (t) => {
    const path = await directory(t);
    const empty = await bytesBelow(path);
    await mkdir(join(path, "inner"));
    await writeFile(join(path, "inner", "file"), Buffer.alloc(64 * 1024, 1));
    await link(join(path, "inner", "file"), join(path, "again"));
    await symlink("/usr", join(path, "elsewhere"));
    const bytes = await bytesBelow(path);
    assert.ok(bytes >= empty + 64 * 1024 && bytes < empty + 128 * 1024, `${bytes} bytes`);
    assert.equal(await bytesBelow(join(path, "absent")), 0);
  });

  it("is held against the limits of those that have one", async (t) => {
    const path = await directory(t);
    await writeFile(join(path, "file"), Buffer.alloc(64 * 1024, 1));
    const mounted = new Map([["e", { hostPath: path, readOnly: false }]]);
    const over = (sizeLimit?: string) =>
      overLimit(podWith([{ name: "e", emptyDir: sizeLimit ? { sizeLimit } : {} }]), mounted);
    assert.equal(await over("32Ki"), 'Usage of EmptyDir volume "e" exceeds the limit "32Ki". ');
    assert.equal(await over("1Gi"), undefined);
    assert.equal(await over(), undefined);
    assert.deepEqual(
      limitedVolumes(
        podWith([
          { name: "a", emptyDir: {} },
          { name: "b", configMap: {} },
        ]),
      ),
      [],
    );
  });
});
