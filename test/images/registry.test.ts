import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { type Logger, silentLogger, systemClock, systemRandom } from "#base";
import { type EngineErrorCode, isEngineError } from "#engine";
import { digestOf, ociLayout, tarOf, writeLayout } from "../../src/engine/native/images/fixtures.ts";
import { createImageStore, type ImageStoreOptions } from "../../src/engine/native/images/store.ts";

const run = promisify(execFile);
const root = mkdtempSync(join(tmpdir(), "slim-registry-"));
const stops: (() => Promise<void>)[] = [];
let open: string;
let locked: string;
let layer: Buffer;

before(async () => {
  open = await startRegistry("open");
  locked = await startRegistry("locked", { user: "anna", password: "s3cret" });
  layer = await tarOf([{ name: "hello", content: randomBytes(3 << 20) }]);
  const layout = join(root, "layout");
  const architecture = { x64: "amd64" }[process.arch as string] ?? process.arch;
  const other = architecture === "amd64" ? "arm64" : "amd64";
  const image = { layers: [layer], tags: [], config: { Cmd: ["/hello"] } };
  writeLayout(
    layout,
    ociLayout([
      { name: "one:1", platforms: [image] },
      { name: "multi:1", platforms: [{ ...image, architecture: other, config: { Cmd: ["/other"] } }, image] },
      {
        name: "foreign:1",
        platforms: [
          { ...image, architecture: "s390x" },
          { ...image, architecture: "ppc64le" },
        ],
      },
    ]),
  );
  const push = (name: string, target: string, ...args: string[]) =>
    run("skopeo", ["copy", "--all", "--dest-tls-verify=false", ...args, `oci:${layout}:${name}`, `docker://${target}`]);
  await push("one:1", `${open}/library/one:1`);
  await push("one:1", `${open}/registry.example.com/deep/one:1`);
  await push("one:1", `${open}/docker2:1`, "--format=v2s2");
  await push("multi:1", `${open}/multi:1`);
  await push("foreign:1", `${open}/foreign:1`);
  await push("one:1", `${locked}/secret:1`, "--dest-creds=anna:s3cret");
});

after(async () => {
  for (const stop of stops) await stop();
  rmSync(root, { recursive: true, force: true });
});

let serial = 0;
async function newStore(options: Partial<ImageStoreOptions> = {}, logger: Logger = silentLogger) {
  const dir = join(root, `store-${serial++}`);
  const deps = { clock: systemClock, random: systemRandom, logger };
  return {
    dir,
    store: await createImageStore(deps, {
      dir,
      runDir: join(dir, "run"),
      busybox: false,
      pauseBinary: "/bin/true",
      ...options,
    }),
  };
}

const refuses = (work: Promise<unknown>, code: EngineErrorCode, words: RegExp) =>
  assert.rejects(work, (error: unknown) => {
    assert.ok(isEngineError(error, code), `${error}`);
    assert.match(error.message, words);
    return true;
  });

test("pull() fetches from an open registry and leaves no trace but the image", async () => {
  const { store, dir } = await newStore();
  const image = await store.pull(`${open}/library/one:1`);
  assert.deepEqual(image.tags, [`${open}/library/one:1`]);
  assert.match(image.digests[0]!, new RegExp(`^${open}/library/one@sha256:[0-9a-f]{64}$`));
  assert.equal(readFileSync(join(store.rootfs(image.id).layers[0]!, "hello")).length, 3 << 20);
  assert.equal(store.get(image.digests[0]!)?.id, image.id);
  const byDigest = await store.pull(image.digests[0]!);
  assert.equal(byDigest.id, image.id);
  await store[Symbol.asyncDispose]();
  assert.deepEqual(readdirSync(join(dir, "run")), []);
  assert.deepEqual(readdirSync(join(dir, "tmp")), []);
});

test("pull() keeps the digest of a Docker v2 manifest", async () => {
  const { store } = await newStore();
  const image = await store.pull(`${open}/docker2:1`);
  const { stdout } = await run("skopeo", ["inspect", "--raw", "--tls-verify=false", `docker://${open}/docker2:1`]);
  assert.equal(image.digests[0], `${open}/docker2@${digestOf(stdout)}`);
});

test("pull() chooses the platform of an index, and its digest is the index's", async () => {
  const { store } = await newStore();
  const image = await store.pull(`${open}/multi:1`);
  assert.deepEqual(image.config.Cmd, ["/hello"]);
  const { stdout } = await run("skopeo", ["inspect", "--raw", "--tls-verify=false", `docker://${open}/multi:1`]);
  assert.equal(image.digests[0], `${open}/multi@${digestOf(stdout)}`);
  await refuses(store.pull(`${open}/foreign:1`), "no-platform", /there are: linux\/s390x, linux\/ppc64le/);
});

test("pull() says what is wrong: no such image, no registry, a bad name", async () => {
  const { store } = await newStore();
  await refuses(store.pull(`${open}/library/one:2`), "pull-not-found", /one:2: not found/);
  await refuses(store.pull(`${open}/nothing`), "pull-not-found", /nothing:latest: not found/);
  await refuses(store.pull(`127.0.0.1:${await freePort()}/x`), "pull-failed", /connection refused/);
  await refuses(store.pull("bad name"), "invalid-reference", /couldn't parse image name "bad name"/);
});

test("pull() tries the credentials in order, then none", async () => {
  const { store, dir } = await newStore();
  await refuses(
    store.pull(`${locked}/secret:1`),
    "pull-denied",
    /pull access denied, repository does not exist or may require authorization/,
  );
  const wrong = { username: "anna", password: "wrong" };
  await refuses(store.pull(`${locked}/secret:1`, { auths: [wrong] }), "pull-denied", /denied/);
  const image = await store.pull(`${locked}/secret:1`, { auths: [wrong, { username: "anna", password: "s3cret" }] });
  assert.deepEqual(image.tags, [`${locked}/secret:1`]);
  assert.deepEqual(readdirSync(join(dir, "run")), []);
  const anonymous = await store.pull(`${open}/library/one:1`, { auths: [wrong] });
  assert.equal(anonymous.id, image.id);
});

test("a mirror answers for docker.io by path and for other registries below their host", async () => {
  const { store } = await newStore({ registryMirror: `http://${open}` });
  const image = await store.pull("one:1");
  assert.deepEqual(image.tags, ["docker.io/library/one:1"]);
  assert.match(image.digests[0]!, /^docker\.io\/library\/one@sha256:/);
  await store.pull("registry.example.com/deep/one:1");
  assert.deepEqual(store.get("registry.example.com/deep/one:1")?.tags.toSorted(), [
    "docker.io/library/one:1",
    "registry.example.com/deep/one:1",
  ]);
  const direct = await store.pull(`${locked}/secret:1`, { auths: [{ username: "anna", password: "s3cret" }] });
  assert.equal(direct.id, image.id);
});

test("the same reference pulled at once is fetched once; one that gives up does not end the others", async () => {
  const { store, dir } = await newStore();
  const abort = new AbortController();
  const pulls = [
    store.pull(`${open}/library/one:1`, { signal: abort.signal }),
    ...[1, 2, 3].map(() => store.pull(`${open}/library/one:1`)),
  ];
  assert.equal(readdirSync(join(dir, "run")).length, 1);
  abort.abort();
  const results = await Promise.allSettled(pulls);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["rejected", "fulfilled", "fulfilled", "fulfilled"],
  );
});

test("an aborted pull ends its program and cleans up; a later one works", async (t) => {
  const slow = createServer((socket) => socket.on("error", () => {}));
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
  t.after(() => slow.close());
  const { port } = slow.address() as { port: number };
  const { store, dir } = await newStore();
  const abort = new AbortController();
  const pull = store.pull(`127.0.0.1:${port}/x`, { signal: abort.signal });
  abort.abort();
  await assert.rejects(pull, { name: "AbortError" });
  const again = store.pull(`127.0.0.1:${port}/x`);
  again.catch(() => {});
  await store[Symbol.asyncDispose]();
  await assert.rejects(again);
  assert.deepEqual(readdirSync(join(dir, "run")), []);
  assert.deepEqual(readdirSync(join(dir, "tmp")), []);
});

test("a registry that sends other bytes than its digests say is not believed", async () => {
  const blobs = join(root, "open", "docker/registry/v2/blobs/sha256");
  const hex = readdirSync(blobs).flatMap((prefix) => readdirSync(join(blobs, prefix)));
  const biggest = hex
    .map((name) => join(blobs, name.slice(0, 2), name, "data"))
    .toSorted((a, b) => readFileSync(b).length - readFileSync(a).length)[0]!;
  const good = readFileSync(biggest);
  const bad = Buffer.from(good);
  bad[bad.length >> 1]! ^= 1;
  writeFileSync(biggest, bad);
  try {
    const { store } = await newStore();
    await assert.rejects(store.pull(`${open}/library/one:1`), (error) =>
      isEngineError(error, "pull-failed", "invalid-archive"),
    );
    assert.equal(store.list().length, 1);
  } finally {
    writeFileSync(biggest, good);
  }
});

/** Debian's docker-registry on loopback; with credentials when they are given. @returns host:port */
async function startRegistry(name: string, credentials?: { user: string; password: string }): Promise<string> {
  const port = await freePort();
  const storage = join(root, name);
  mkdirSync(storage);
  const config: Record<string, unknown> = {
    version: "0.1",
    log: { level: "error", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: storage } },
    http: { addr: `127.0.0.1:${port}`, secret: "test" },
  };
  if (credentials) {
    const path = join(root, `${name}.htpasswd`);
    writeFileSync(path, `${credentials.user}:${await bcrypt(credentials.password)}\n`);
    config.auth = { htpasswd: { realm: "test", path } };
  }
  const file = join(root, `${name}.yml`);
  writeFileSync(file, JSON.stringify(config));
  const child = spawn("docker-registry", ["serve", file], { stdio: "ignore" });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  stops.push(async () => {
    child.kill();
    await exited;
  });
  for (let i = 0; i < 100; i++) {
    const answer = await fetch(`http://127.0.0.1:${port}/v2/`).catch(() => undefined);
    if (answer) return `127.0.0.1:${port}`;
    await systemClock.sleep(50);
  }
  throw new Error("docker-registry does not answer");
}

/** crypt(3) of the C library knows bcrypt, and perl is part of every Debian. */
async function bcrypt(password: string): Promise<string> {
  const salt = createHash("sha256").update(password).digest("hex").slice(0, 21);
  const { stdout } = await run("perl", ["-e", "print crypt($ARGV[0], $ARGV[1])", password, `$2y$05$${salt}u`]);
  return stdout;
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
