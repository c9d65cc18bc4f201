import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { arch, tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { pack } from "tar-stream";
import { systemClock } from "#base";
import { isEngineError } from "#engine";
import { loadLibc } from "../../src/engine/native/sys/libc.ts";
import { createMounter } from "../../src/engine/native/sys/mounter.ts";
import { createRun } from "../../src/engine/native/sys/run.ts";
import { SECURITY, trial, type Trial } from "./trial.test-support.ts";

const bind = (hostPath: string, containerPath: string, more: object = {}) => ({
  hostPath,
  containerPath,
  readOnly: false,
  ...more,
});

function volume(t: Trial, name: string, files: Record<string, string> = {}): string {
  const path = join(t.directory, "volumes", name);
  mkdirSync(path, { recursive: true });
  for (const [file, content] of Object.entries(files)) writeFileSync(join(path, file), content);
  return path;
}

trial("volumes: read-write, read-only, one below another, a single file", async (t) => {
  const data = volume(t, "data", { "a.txt": "A" });
  const inner = volume(t, "inner", { "b.txt": "B" });
  const mounts = [
    bind(inner, "/data/inner", { readOnly: true }),
    bind(data, "/data"),
    bind(join(data, "a.txt"), "/etc/single"),
  ];
  const { stdout } = await t.once(
    "cat /data/a.txt /data/inner/b.txt /etc/single; echo; echo new > /data/new; touch /data/inner/x 2>&1",
    { mounts },
  );
  assert.match(stdout, /^ABA\n.*Read-only file system/s);
  assert.equal(readFileSync(join(data, "new"), "utf8"), "new\n");
});

trial("a volume that is not there is named", async (t) => {
  await assert.rejects(
    t.create(await t.sandbox(), ["true"], { mounts: [bind("/no/such/volume", "/data")] }),
    (error) => {
      return isEngineError(error, "create-failed") && /\/no\/such\/volume/.test(error.message);
    },
  );
});

trial("subPath: a directory, a file, one that is made, and none that leads out", async (t) => {
  const data = volume(t, "data");
  mkdirSync(join(data, "sub/deep"), { recursive: true });
  writeFileSync(join(data, "sub/deep/f"), "deep");
  symlinkSync("/etc", join(data, "out"));
  symlinkSync("../../..", join(data, "up"));
  symlinkSync("sub", join(data, "inside"));
  chmodSync(data, 0o2770);
  const mounts = [
    bind(data, "/d1", { subPath: "sub/deep" }),
    bind(data, "/f1", { subPath: "sub/deep/f", readOnly: true }),
    bind(data, "/d2", { subPath: "made/for/me" }),
    bind(data, "/d3", { subPath: "inside/deep" }),
  ];
  const { stdout } = await t.once("cat /d1/f /f1 /d3/f; echo x > /d2/x; echo; touch /f1 2>&1; echo y > /f1", {
    mounts,
  });
  assert.match(stdout, /^deepdeepdeep/);
  assert.equal(readFileSync(join(data, "made/for/me/x"), "utf8"), "x\n");
  assert.equal(readFileSync(join(data, "sub/deep/f"), "utf8"), "deep");
  assert.equal(statSync(join(data, "made")).mode & 0o777, 0o770 & ~process.umask());
  const sandbox = await t.sandbox();
  for (const subPath of ["out", "up", "../x"])
    await assert.rejects(t.create(sandbox, ["true"], { mounts: [bind(data, "/x", { subPath })] }), (error) => {
      return isEngineError(error, "create-failed") && /EXDEV/.test(error.message);
    });
});

trial("subPath mounts are gone with the container, the data is not", async (t) => {
  const data = volume(t, "data");
  const id = await t.run(await t.sandbox(), ["sleep", "1000"], { mounts: [bind(data, "/d", { subPath: "s" })] });
  await t.sh(id, "echo kept > /d/file");
  await t.engine.removeContainer(id);
  assert.deepEqual(await t.engine.mounts.under(join(t.options.runDir, "bundles")), []);
  assert.equal(readFileSync(join(data, "s/file"), "utf8"), "kept\n");
});

trial("an image as a volume is read-only", async (t) => {
  const mounts = [
    bind("", "/image", { image: "slim/busybox:latest", readOnly: true }),
    bind("", "/etc/from-image", { image: "slim/busybox:latest", subPath: "etc" }),
  ];
  const { stdout } = await t.once(
    "test -x /image/bin/busybox && echo there; touch /image/x 2>&1; cat /etc/from-image/passwd | head -1",
    { mounts },
  );
  assert.match(stdout, /^there\n.*Read-only file system\nroot:/s);
});

trial("recursive read-only reaches mounts below; plain read-only does not", async (t) => {
  const data = volume(t, "data");
  await t.engine.mounts.tmpfs(join(data, "below"), { mode: 0o777 });
  try {
    const plain = await t.once("touch /d/below/x && echo ok", { mounts: [bind(data, "/d", { readOnly: true })] });
    assert.equal(plain.stdout, "ok");
    const recursive = await t.once("touch /d/below/x 2>&1", {
      mounts: [bind(data, "/d", { readOnly: true, recursiveReadOnly: true })],
    });
    assert.match(recursive.stdout, /Read-only file system/);
  } finally {
    await t.engine.mounts.unmount(join(data, "below"));
  }
});

trial("mounts: tmpfs with size and mode, bind, unmount of a tree, twice", async (t) => {
  const { mounts } = t.engine;
  const base = join(t.directory, "m");
  await mounts.tmpfs(join(base, "a"), { sizeBytes: 1 << 20, mode: 0o1777, gid: 1234 });
  const { mode, gid } = statSync(join(base, "a"));
  assert.deepEqual([mode & 0o7777, gid], [0o1777, 1234]);
  assert.throws(() => writeFileSync(join(base, "a/big"), Buffer.alloc(2 << 20)), /ENOSPC/);
  await mounts.bind(join(base, "a"), join(base, "a/deeper/b"), { readOnly: true });
  assert.throws(() => writeFileSync(join(base, "a/deeper/b/x"), ""), /EROFS/);
  assert.deepEqual(await mounts.under(base), [join(base, "a/deeper/b"), join(base, "a")]);
  await mounts.unmount(base);
  await mounts.unmount(base);
  assert.deepEqual(await mounts.under(base), []);
  assert.ok(!existsSync(join(base, "a/deeper")));
});

trial("files of the image keep their owner and mode, changes stay in the container", async (t) => {
  const sandbox = await t.sandbox();
  const [one, two] = [await t.run(sandbox, ["sleep", "1000"]), await t.run(sandbox, ["sleep", "1000"])];
  await t.sh(one, "echo changed > /etc/passwd; rm /bin/vi; mkdir -p /new");
  assert.equal(
    await t.sh(two, "head -1 /etc/passwd | cut -d: -f1; test -e /bin/vi && echo vi; test -e /new || echo none"),
    "root\nvi\nnone",
  );
  assert.equal((await t.once("stat -c %a / /tmp", { security: SECURITY })).stdout, "755\n1777");
});

for (const koffi of [true, false])
  test(`sixty layers with long paths are one root ${koffi ? "(koffi)" : "(mount program)"}`, async () => {
    const base = mkdtempSync(join(tmpdir(), `slim-${"layers-with-a-long-name-".repeat(5)}`));
    const mounter = createMounter(koffi ? await loadLibc() : undefined, createRun(systemClock));
    const keepAlive = setInterval(() => {}, 1000);
    try {
      const layers = Array.from({ length: 60 }, (_, i) => join(base, "layers", String(i).padStart(64, "0")));
      for (const [i, layer] of layers.entries()) {
        mkdirSync(layer, { recursive: true });
        writeFileSync(join(layer, `file-${i}`), String(i));
        writeFileSync(join(layer, "top"), String(i));
      }
      const [upper, work, target] = ["upper", "work", "root"].map((name) => join(base, name)) as [
        string,
        string,
        string,
      ];
      for (const directory of [upper, work]) mkdirSync(directory);
      await mounter.overlay(target, { layers, upper, work });
      assert.deepEqual(
        [readFileSync(join(target, "file-0"), "utf8"), readFileSync(join(target, "file-59"), "utf8")],
        ["0", "59"],
      );
      assert.equal(readFileSync(join(target, "top"), "utf8"), "59");
      writeFileSync(join(target, "new"), "");
      assert.ok(existsSync(join(upper, "new")));
      await mounter.overlay(join(base, "image"), { layers });
      assert.throws(() => writeFileSync(join(base, "image", "x"), ""), /EROFS/);
    } finally {
      await mounter.removeTree(base);
      clearInterval(keepAlive);
    }
    assert.equal(existsSync(base), false);
  });

trial("a volume that the image declares stays writable under a read-only root", async (t) => {
  const archive = join(t.directory, "image.tar");
  const { Id } = await imageWith({ Volumes: { "/var/www": {}, "/not/there": {} } }, archive);
  await t.engine.images.load(archive);
  const { stdout } = await t.once("echo x > /var/www/x && echo > /not/there/y && echo written; touch /var/z 2>&1", {
    image: Id,
    security: { ...SECURITY, readOnlyRootfs: true },
  });
  assert.match(stdout, /^written\n.*Read-only file system/);
});

trial("a bidirectional mount of what the host does not share is refused, not ignored", async (t) => {
  const data = volume(t, "data");
  await t.engine.mounts.tmpfs(data, { mode: 0o755 }); // a mount of its own, private
  try {
    const create = t.create(await t.sandbox(), ["true"], { mounts: [bind(data, "/d", { propagation: "rshared" })] });
    await assert.rejects(
      create,
      (error) => isEngineError(error, "create-failed") && /is not a shared mount/.test(error.message),
    );
  } finally {
    await t.engine.mounts.unmount(data);
  }
});

/** A docker-archive of one small layer with this config; busybox is the only program in it. */
async function imageWith(config: object, path: string): Promise<{ Id: string }> {
  const layer = pack();
  layer.entry({ name: "bin/", type: "directory", mode: 0o755 });
  layer.entry({ name: "bin/busybox", mode: 0o755 }, readFileSync("/bin/busybox"));
  for (const name of ["sh", "echo", "touch"])
    layer.entry({ name: `bin/${name}`, type: "symlink", linkname: "busybox" });
  layer.entry({ name: "var/", type: "directory", mode: 0o755 });
  layer.entry({ name: "var/www/", type: "directory", mode: 0o755 });
  layer.finalize();
  const bytes = await buffer(layer);
  const digest = (data: Buffer) => createHash("sha256").update(data).digest("hex");
  const document = Buffer.from(
    JSON.stringify({
      architecture: arch() === "x64" ? "amd64" : arch(),
      os: "linux",
      config,
      rootfs: { type: "layers", diff_ids: [`sha256:${digest(bytes)}`] },
    }),
  );
  const archive = pack();
  archive.entry({ name: "layer.tar" }, bytes);
  archive.entry({ name: `${digest(document)}.json` }, document);
  archive.entry(
    { name: "manifest.json" },
    JSON.stringify([{ Config: `${digest(document)}.json`, RepoTags: ["test/volumes:1"], Layers: ["layer.tar"] }]),
  );
  archive.finalize();
  writeFileSync(path, await buffer(archive));
  return { Id: `sha256:${digest(document)}` };
}
