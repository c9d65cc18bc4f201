import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { createFakeClock, createLogger, createSeededRandom, type FakeClock, silentLogger } from "#base";
import { isEngineError } from "../../errors.ts";
import type { EngineErrorCode } from "../../port.ts";
import { digestOf, dockerArchive, layoutTar, ociLayout, tarOf, writeLayout } from "./fixtures.ts";
import { createImageStore, type ImageStore } from "./store.ts";

const root = mkdtempSync(join(tmpdir(), "slim-images-"));
after(() => rmSync(root, { recursive: true, force: true }));

let serial = 0;
const newDir = () => join(root, `s${serial++}`);

async function open(dir = newDir(), options: Partial<Parameters<typeof createImageStore>[1]> = {}) {
  const clock: FakeClock = createFakeClock();
  const deps = { clock, random: createSeededRandom(1), logger: silentLogger };
  const store = await createImageStore(deps, {
    dir,
    runDir: join(dir, "run"),
    busybox: false,
    pauseBinary: PAUSE,
    ...options,
  });
  return { store, dir, clock };
}

const PAUSE = "/bin/true";
const refuses = (work: Promise<unknown>, code: EngineErrorCode, words: RegExp) =>
  assert.rejects(work, (error: unknown) => {
    assert.ok(isEngineError(error, code), `${error}`);
    assert.match(error.message, words);
    return true;
  });
const file = (store: ImageStore, image: string, path: string) => join(store.rootfs(image).layers.at(-1)!, path);
const leftovers = (dir: string) => readdirSync(join(dir, "tmp"));

let hello: Buffer;
let second: Buffer;
before(async () => {
  hello = await tarOf([
    { name: "bin/", type: "directory", mode: 0o755 },
    { name: "bin/hello", content: "hello", mode: 0o4755, uid: 7, gid: 8 },
    { name: "bin/link", type: "link", linkname: "bin/hello" },
    { name: "bin/soft", type: "symlink", linkname: "/bin/hello" },
  ]);
  second = await tarOf([{ name: "data", content: "second" }]);
});

test("a docker-archive is loaded with modes, owners and links", async () => {
  const { store, dir } = await open();
  const config = { Cmd: ["/bin/hello"], User: "7:8", Env: ["A=b"] };
  const archive = await dockerArchive([
    { layers: [hello, second], tags: ["hello:1", "example.com/x/hello:2"], config },
  ]);
  const [image] = await store.load(Readable.from([archive]));
  assert.deepEqual(image?.tags.toSorted(), ["docker.io/library/hello:1", "example.com/x/hello:2"]);
  assert.equal(image?.uid, 7);
  assert.equal(image?.size, 11);
  assert.equal(image?.createdAt, Date.UTC(2026, 0, 2, 3, 4, 5));
  assert.deepEqual(image?.config, config);
  const { layers } = store.rootfs("hello:1");
  assert.equal(layers.length, 2);
  const stats = statSync(join(layers[0]!, "bin/hello"));
  assert.deepEqual([stats.mode & 0o7777, stats.uid, stats.gid, stats.nlink], [0o4755, 7, 8, 2]);
  assert.equal(readFileSync(join(layers[1]!, "data"), "utf8"), "second");
  assert.equal(store.get(image.id.slice(7, 19))?.id, image.id);
  assert.deepEqual(leftovers(dir), []);
});

for (const form of ["plain", "gzip", "zstd"] as const) {
  for (const [outer, wrap] of [
    ["plain", (b: Buffer) => b],
    ["gzip", gzipSync],
    ["zstd", zstdCompressSync],
  ] as const) {
    test(`an OCI layout with ${form} layers is loaded from a ${outer} tar`, async () => {
      const { store, dir } = await open();
      const files = ociLayout([{ name: "oci:3", platforms: [{ layers: [hello], tags: [] }] }], form);
      const bytes = wrap(await layoutTar(files));
      const path = join(dir, "archive");
      writeFileSync(path, bytes);
      const [image] = await store.load(path);
      assert.deepEqual(image?.tags, ["docker.io/library/oci:3"]);
      assert.deepEqual(image?.digests, []);
      const index = JSON.parse(files.get("index.json")!.toString()) as { manifests: { digest: string }[] };
      assert.equal(readFileSync(file(store, "oci:3", "bin/hello"), "utf8"), "hello");
      assert.equal(store.get(`oci@${index.manifests[0]!.digest}`)?.id, image?.id);
    });
  }
}

test("an OCI layout in a directory is loaded; the platform is chosen", async () => {
  const { store, dir } = await open(undefined, { platform: "linux/arm64" });
  const path = join(dir, "layout");
  const platforms = ["amd64", "arm64"].map((architecture) => ({
    layers: [architecture === "arm64" ? second : hello],
    tags: [],
    architecture,
  }));
  writeLayout(path, ociLayout([{ name: "multi:1", platforms }]));
  await store.load(path);
  assert.ok(existsSync(file(store, "multi:1", "data")));
});

test("no image for this platform is an error that names those there are", async () => {
  const { store } = await open(undefined, { platform: "linux/riscv64" });
  const platforms = ["amd64", "arm64"].map((architecture) => ({ layers: [hello], tags: [], architecture }));
  const bytes = await layoutTar(ociLayout([{ name: "multi:1", platforms }]));
  await refuses(
    store.load(Readable.from([bytes])),
    "no-platform",
    /linux\/riscv64 \(there are: linux\/amd64, linux\/arm64\)/,
  );
  const single = await dockerArchive([{ layers: [hello], tags: ["a"], architecture: "s390x" }]);
  await refuses(store.load(Readable.from([single])), "no-platform", /there are: linux\/s390x/);
});

test("whiteouts become overlayfs marks", async () => {
  const { store } = await open();
  const layer = await tarOf([
    { name: "etc/", type: "directory", mode: 0o755 },
    { name: "etc/.wh.gone" },
    { name: "opaque/", type: "directory", mode: 0o750 },
    { name: "opaque/.wh..wh..opq" },
    { name: "made-anew/", type: "directory", mode: 0o755 },
    { name: ".wh.made-anew" },
    { name: "implied/deep/.wh.x" },
  ]);
  const base = await tarOf([
    { name: "implied/", type: "directory", mode: 0o711, uid: 5 },
    { name: "implied/deep/", type: "directory", mode: 0o700, uid: 6 },
  ]);
  await store.load(Readable.from([await dockerArchive([{ layers: [base, layer], tags: ["w"] }])]));
  const gone = statSync(file(store, "w", "etc/gone"));
  assert.ok(gone.isCharacterDevice());
  assert.equal(gone.rdev, 0);
  const opaque = (path: string) =>
    execFileSync("tar", ["-c", "--xattrs", "--xattrs-include=trusted.*", "-C", file(store, "w", "."), path]).includes(
      "overlay.opaque=y",
    );
  assert.ok(opaque("opaque"));
  assert.ok(opaque("made-anew"));
  assert.ok(!opaque("etc"));
  assert.ok(statSync(file(store, "w", "implied/deep/x")).isCharacterDevice());
  const implied = ["implied", "implied/deep"].map((path) => statSync(file(store, "w", path)));
  assert.deepEqual(
    implied.map(({ mode, uid }) => [mode & 0o777, uid]),
    [
      [0o711, 5],
      [0o700, 6],
    ],
  );
});

test("file capabilities, device nodes and long names are kept; marks of overlayfs are not taken from a layer", async () => {
  const { store } = await open();
  const capability = Buffer.from("0100000200040000000000000000000000000000", "hex").toString("latin1");
  const long = `${"long-directory/".repeat(20)}file`;
  const layer = await tarOf([
    { name: "capable", content: "x", pax: { "SCHILY.xattr.security.capability": capability } },
    { name: "sly/", type: "directory", pax: { "SCHILY.xattr.trusted.overlay.opaque": "y" } },
    { name: "null", type: "character-device", devmajor: 1, devminor: 3, mode: 0o666 },
    { name: long, content: "deep" },
  ]);
  await store.load(Readable.from([await dockerArchive([{ layers: [layer], tags: ["x"] }])]));
  const back = execFileSync("tar", [
    "-c",
    "--xattrs",
    "--xattrs-include=*",
    "-C",
    file(store, "x", "."),
    "capable",
    "sly",
  ]);
  assert.ok(back.includes("SCHILY.xattr.security.capability="));
  assert.ok(!back.includes("trusted.overlay"));
  const device = statSync(file(store, "x", "null"));
  assert.ok(device.isCharacterDevice());
  assert.equal(device.rdev, (1 << 8) | 3);
  assert.equal(readFileSync(file(store, "x", long), "utf8"), "deep");
});

const hostile: Readonly<Record<string, () => Promise<Buffer>>> = {
  "a name with ..": () => tarOf([{ name: "../../escape", content: "x" }]),
  "a hard link to a file outside": () => tarOf([{ name: "x", type: "link", linkname: "../../outside" }]),
  "a file through a symbolic link to an absolute path": () =>
    tarOf([
      { name: "out", type: "symlink", linkname: join(root, "outside") },
      { name: "out/escape", content: "x" },
    ]),
  "a file through a symbolic link with ..": () =>
    tarOf([
      { name: "out", type: "symlink", linkname: "../../../../../outside" },
      { name: "out/escape", content: "x" },
    ]),
};
for (const [what, make] of Object.entries(hostile)) {
  test(`a layer with ${what} is refused and writes nothing outside`, async () => {
    const { store, dir } = await open();
    mkdirSync(join(root, "outside"), { recursive: true });
    const archive = await dockerArchive([{ layers: [await make()], tags: ["evil"] }]);
    await refuses(store.load(Readable.from([archive])), "invalid-archive", /leaves the root|cannot unpack/);
    await store[Symbol.asyncDispose]();
    assert.deepEqual(readdirSync(join(root, "outside")), []);
    assert.ok(!existsSync(join(root, "escape")));
    assert.equal(store.get("evil"), undefined);
    assert.deepEqual(leftovers(dir), []);
    assert.equal(readdirSync(join(dir, "layers")).length, 1, "only the built-in's");
  });
}

test("implied directories and whiteouts below a symbolic link touch nothing outside", async () => {
  const { store } = await open();
  const outside = join(root, "victim");
  mkdirSync(join(outside, "b"), { recursive: true, mode: 0o700 });
  const layer = await tarOf([{ name: "a/b/.wh.file" }, { name: "a", type: "symlink", linkname: outside }]);
  await store.load(Readable.from([await dockerArchive([{ layers: [layer], tags: ["sly"] }])]));
  assert.equal(statSync(join(outside, "b")).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(join(outside, "b")), []);
  assert.ok(
    statSync(file(store, "sly", join(outside, "b/file"))).isCharacterDevice(),
    "resolved below the image's root",
  );
});

test("archives that are truncated, corrupt or something else are refused", async () => {
  const { store, dir } = await open();
  const good = await layoutTar(ociLayout([{ name: "t:1", platforms: [{ layers: [hello], tags: [] }] }]));
  const load = (bytes: Buffer) => store.load(Readable.from([bytes]));
  await refuses(load(good.subarray(0, good.length / 2)), "invalid-archive", /truncated|no file|no index/);
  await refuses(load(gzipSync(good).subarray(0, 200)), "invalid-archive", /gzip stream is corrupt or truncated/);
  await refuses(load(Buffer.from("{}")), "invalid-archive", /truncated|not a tar/);
  await refuses(load(Buffer.alloc(0)), "invalid-archive", /neither a docker-archive nor an OCI/);
  await refuses(
    load(Buffer.concat([Buffer.from("\xfd7zXZ\0", "latin1"), good])),
    "invalid-archive",
    /xz compression is not supported/,
  );
  await refuses(load(await tarOf([{ name: "manifest.json", content: "[{" }])), "invalid-archive", /not valid JSON/);
  await refuses(
    load(await tarOf([{ name: "manifest.json", content: "[1]" }])),
    "invalid-archive",
    /needs Config and Layers/,
  );
  await refuses(store.load(join(root, "nothing-here")), "invalid-archive", /ENOENT/);
  await store[Symbol.asyncDispose]();
  assert.deepEqual(leftovers(dir), []);
});

test("a blob or a layer that is not what its digest says is refused", async () => {
  const { store } = await open();
  const files = ociLayout([{ name: "t:1", platforms: [{ layers: [hello], tags: [] }] }], "plain");
  const layerBlob = `blobs/sha256/${digestOf(hello).slice(7)}`;
  files.set(layerBlob, second);
  await refuses(
    store.load(Readable.from([await layoutTar(files)])),
    "invalid-archive",
    /layer sha256:.* is corrupt: its digest/,
  );
  const lying = await dockerArchive([{ layers: [hello], tags: ["lie"] }]);
  const config = JSON.parse(lying.toString("latin1").match(/\{"architecture".*?"rootfs":\{.*?\}\}/)![0]);
  const other = Buffer.from(JSON.stringify({ ...config, rootfs: { diff_ids: [digestOf("other")] } }));
  const archive = await tarOf([
    { name: "manifest.json", content: JSON.stringify([{ Config: "c.json", RepoTags: ["lie"], Layers: ["l.tar"] }]) },
    { name: "c.json", content: other },
    { name: "l.tar", content: hello },
  ]);
  await refuses(store.load(Readable.from([archive])), "invalid-archive", /its diff id is sha256/);
});

test("a layout directory whose files are links to elsewhere gives nothing away", async () => {
  const { store, dir } = await open();
  const path = join(dir, "evil");
  writeLayout(
    path,
    new Map([["manifest.json", Buffer.from(JSON.stringify([{ Config: "../../../etc/passwd", Layers: [] }]))]]),
  );
  await refuses(store.load(path), "invalid-archive", /leaves the root/);
});

test("the same layer loaded many times at once is unpacked once", async () => {
  const { store, dir } = await open();
  const archives = await Promise.all(
    [1, 2, 3, 4].map((n) => dockerArchive([{ layers: [hello], tags: [`same:${n}`], config: { Cmd: [`${n}`] } }])),
  );
  await Promise.all(archives.map((archive) => store.load(Readable.from([archive]))));
  assert.equal(store.list().length, 5);
  assert.equal(readdirSync(join(dir, "layers")).length, 2);
  assert.equal(new Set(archives.map((_, i) => store.rootfs(`same:${i + 1}`).layers[0])).size, 1);
});

test("a failed load does not harm another that waits for the same layer", async () => {
  const { store } = await open();
  const archive = await dockerArchive([{ layers: [hello], tags: ["ok"] }]);
  const abort = new AbortController();
  const first = store.load(Readable.from([archive]), { signal: abort.signal });
  const other = store.load(Readable.from([archive]));
  abort.abort();
  await assert.rejects(first, { name: "AbortError" });
  assert.equal((await other)[0]?.tags[0], "docker.io/library/ok:latest");
});

test("a tag moves to the newer image; the older one stays without it", async () => {
  const { store, clock } = await open();
  const [old] = await store.load(Readable.from([await dockerArchive([{ layers: [hello], tags: ["app"] }])]));
  await clock.advance(1000);
  const [young] = await store.load(Readable.from([await dockerArchive([{ layers: [second], tags: ["app"] }])]));
  assert.equal(store.get("app")?.id, young?.id);
  assert.deepEqual(store.get(old!.id)?.tags, []);
});

test("remove() takes away references, then the image; never one in use", async () => {
  const { store, dir } = await open();
  await store.load(Readable.from([await dockerArchive([{ layers: [hello], tags: ["a:1", "a:2"] }])]));
  store.hold("a:1", "container-1");
  await store.remove("a:2");
  assert.deepEqual(store.get("a:1")?.tags, ["docker.io/library/a:1"]);
  await refuses(store.remove("a:1"), "image-in-use", /in use by container-1/);
  store.release("container-1");
  await store.remove("a:1");
  await store.remove("a:1");
  assert.equal(store.get("a:1"), undefined);
  assert.throws(
    () => store.rootfs("a:1"),
    (error) => isEngineError(error, "image-not-found"),
  );
  await store[Symbol.asyncDispose]();
  assert.equal(readdirSync(join(dir, "layers")).length, 1);
  assert.equal(readdirSync(join(dir, "blobs/sha256")).length, 1);
});

test("prune() removes the least recently used first and keeps what is used, pinned or wanted", async () => {
  const { store, clock } = await open();
  for (const name of ["first", "second", "third", "fourth"]) {
    const layer = await tarOf([{ name, content: "x".repeat(100) }]);
    await store.load(Readable.from([await dockerArchive([{ layers: [layer], tags: [name] }])]));
    await clock.advance(120_000);
  }
  store.rootfs("first");
  store.hold("second", "c");
  const some = await store.prune({ bytes: 50, keep: () => false });
  assert.equal(some.freedBytes, 100);
  assert.deepEqual(
    store
      .list()
      .flatMap(({ tags }) => tags)
      .toSorted(),
    [
      "docker.io/library/first:latest",
      "docker.io/library/fourth:latest",
      "docker.io/library/second:latest",
      "docker.io/nebula/pause:slim",
    ],
  );
  await store.prune({ keep: ({ tags }) => tags.includes("docker.io/library/fourth:latest") });
  assert.deepEqual(
    store
      .list()
      .flatMap(({ tags }) => tags)
      .toSorted(),
    ["docker.io/library/fourth:latest", "docker.io/library/second:latest", "docker.io/nebula/pause:slim"],
  );
});

test("a new store on the same directory knows the images; leftovers of a crash are gone", async () => {
  const { store, dir } = await open();
  const [image] = await store.load(Readable.from([await dockerArchive([{ layers: [hello], tags: ["kept"] }])]));
  mkdirSync(join(dir, "tmp", "half/fs"), { recursive: true });
  mkdirSync(join(dir, "layers", "f".repeat(64), "fs"), { recursive: true });
  const { store: again } = await open(dir);
  assert.deepEqual(again.get("kept"), image);
  await again[Symbol.asyncDispose]();
  assert.deepEqual(leftovers(dir), []);
  assert.ok(!existsSync(join(dir, "layers", "f".repeat(64))));
});

test("a damaged record or a missing layer costs that image only, and is told", async () => {
  const { store, dir } = await open();
  const load = async (name: string, layer: Buffer) =>
    (await store.load(Readable.from([await dockerArchive([{ layers: [layer], tags: [name] }])])))[0]!;
  const damaged = await load("damaged", hello);
  await load("bare", second);
  await load("sound", await tarOf([{ name: "z", content: "z" }]));
  writeFileSync(join(dir, "images", `${damaged.id.slice(7)}.json`), "{");
  rmSync(join(store.rootfs("bare").layers[0]!, ".."), { recursive: true });
  const lines: string[] = [];
  const logger = createLogger((line) => lines.push(line), { now: () => 0 });
  const deps = { clock: createFakeClock(), random: createSeededRandom(1), logger };
  const again = await createImageStore(deps, { dir, runDir: join(dir, "run"), busybox: false, pauseBinary: PAUSE });
  assert.deepEqual(
    ["damaged", "bare", "sound"].map((name) => again.get(name) !== undefined),
    [false, false, true],
  );
  assert.match(lines.join("\n"), /record is damaged.*\n.*lacks layers/);
  assert.equal(
    (await again.load(Readable.from([await dockerArchive([{ layers: [hello], tags: ["damaged"] }])]))).length,
    1,
  );
});

test("a full disk is an error of its own and leaves nothing half done", {
  skip: process.getuid?.() !== 0 && "needs mount",
}, async () => {
  const dir = newDir();
  mkdirSync(dir);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", dir]);
  try {
    const { store } = await open(dir);
    const archive = await dockerArchive([
      { layers: [await tarOf([{ name: "big", content: Buffer.alloc(4 << 20, 1) }])], tags: ["big"] },
    ]);
    await refuses(store.load(Readable.from([archive])), "disk-full", /no space left on device/);
    const packed = await layoutTar(
      ociLayout([
        {
          name: "bomb:1",
          platforms: [{ layers: [await tarOf([{ name: "big", content: Buffer.alloc(16 << 20) }])], tags: [] }],
        },
      ]),
    );
    await refuses(store.load(Readable.from([packed])), "disk-full", /no space left on device: a layer needs/);
    await store[Symbol.asyncDispose]();
    assert.deepEqual(leftovers(dir), []);
    assert.equal(store.list().length, 1);
  } finally {
    execFileSync("umount", [dir]);
  }
});

test("built-in images are registered once, and anew when their program changes", async () => {
  const { store, dir } = await open(undefined, { busybox: "/bin/busybox" });
  const busybox = store.get("slim/busybox")!;
  assert.ok(busybox.pinned);
  assert.deepEqual(busybox.config.Cmd, ["sh"]);
  const { layers } = store.rootfs("slim/busybox:latest");
  assert.equal(
    execFileSync("chroot", [layers[0]!, "/bin/sh", "-c", "id -un; ls -d /tmp"], { encoding: "utf8" }),
    "root\n/tmp\n",
  );
  assert.equal(statSync(join(layers[0]!, "tmp")).mode & 0o7777, 0o1777);
  assert.deepEqual(store.rootfs("nebula/pause:slim").config.Entrypoint, ["/pause"]);
  const program = join(dir, "other-pause");
  writeFileSync(program, "other", { mode: 0o755 });
  const { store: again } = await open(dir, { pauseBinary: program });
  assert.equal(readFileSync(file(again, "nebula/pause:slim", "pause"), "utf8"), "other");
  assert.equal(again.get(busybox.id)?.tags[0], "docker.io/slim/busybox:latest");
});
