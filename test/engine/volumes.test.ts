import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isEngineError } from "#engine";
import { SECURITY, trial, type Trial } from "./trial.test-support.ts";

const bind = (hostPath: string, containerPath: string, more: object = {}) => ({
  hostPath,
  containerPath,
  readOnly: false,
  ...more,
});

function volume(t: Trial, name: string, files: Record<string, string> = {}): string {
  const path = join(t.directory, name);
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
