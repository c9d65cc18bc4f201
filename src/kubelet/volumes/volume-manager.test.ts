import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type Clock, createFakeClock, createSeededRandom, type FakeClock, silentLogger, systemClock } from "#base";
import type { Informer } from "#client";
import type { Engine, ImageStatus } from "#engine";
import { type ApiObject, type Pod, resources, type Service, type Volume } from "#kinds";
import type { NodeServices, VolumesOutcome } from "../ports.ts";
import { createTestClient, type TestClient } from "./test-client.ts";
import { createVolumeManager, type PodVolumeManager } from "./volume-manager.ts";

interface Bench extends TestClient {
  readonly root: string;
  readonly volumes: PodVolumeManager;
  readonly changed: string[];
  readonly mounted: Set<string>;
  /** `busy`: unmounting leaves its mounts. */
  readonly state: { busy: boolean };
  file(type: string, volume: string, path: string): Promise<string>;
}

async function bench(t: TestContext, clock: Clock = systemClock): Promise<Bench> {
  const top = await mkdtemp(join(tmpdir(), "slim-volumes-"));
  const root = join(top, "pods");
  const test = createTestClient(() => clock.now());
  const mounted = new Set<string>();
  const state = { busy: false };
  const under = async (path: string) => [...mounted].filter((at) => at === path || at.startsWith(`${path}/`));
  const engine = {
    mounts: {
      tmpfs: async (path: string) => void mounted.add(path),
      bind: async () => {},
      under,
      unmount: async (path: string) => {
        if (!state.busy) for (const at of await under(path)) mounted.delete(at);
      },
    },
    images: {
      get: (reference: string) => (reference === "here" ? ({ id: "sha256:1" } as ImageStatus) : undefined),
      pull: () => Promise.reject(new Error("no route")),
    },
  };
  const services: NodeServices = {
    client: test.client,
    engine: engine as unknown as Engine,
    clock,
    random: createSeededRandom(1),
    logger: silentLogger,
    services: {} as Informer<Service>,
    node: () => ({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "node-a", labels: { zone: "z" } },
      spec: {},
      status: { allocatable: { cpu: "2", memory: "1Gi" } },
    }),
  };
  const volumes = createVolumeManager(services, { root });
  const changed: string[] = [];
  volumes.onChange((uid) => changed.push(uid));
  t.after(async () => {
    await volumes[Symbol.asyncDispose]();
    await rm(top, { recursive: true });
  });
  return Object.assign(test, {
    root,
    volumes,
    changed,
    mounted,
    state,
    file: (type: string, volume: string, path: string) =>
      readFile(join(root, "u1/volumes", `kubernetes.io~${type}`, volume, path), "utf8"),
  });
}

const podWith = (volumes: Volume[], more: Partial<Pod["spec"]> = {}, metadata: Partial<Pod["metadata"]> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "ns", uid: "u1", labels: { app: "x" }, ...metadata },
  spec: {
    containers: [{ name: "c", volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })) }],
    volumes,
    ...more,
  },
});
const configMap = (data: Record<string, string>, more: object = {}): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "cm", namespace: "ns" },
  data,
  ...more,
});
const secret = (data: Record<string, string>): ApiObject => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "s", namespace: "ns" },
  data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
});
const messages = (outcome: VolumesOutcome) =>
  outcome.state === "ready" ? [] : outcome.events.map((event) => `${event.reason}: ${event.message}`);
const ready = async (bench: Bench, pod: Pod) => assert.deepEqual(await bench.volumes.prepare(pod), { state: "ready" });
/** Waits for something that a change of the API brings about. */
async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  for (let i = 0; i < 300; i++) {
    if (await condition()) return;
    await systemClock.sleep(5);
  }
  assert.fail("did not come about");
}

describe("volumes from config maps and secrets", () => {
  it("show their keys, with modes; secrets in memory", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "1", b: "2" }, { binaryData: { bin: "/w==" } }));
    b.put(resources.secrets, secret({ user: "bob" }));
    const pod = podWith([
      {
        name: "cm",
        configMap: {
          name: "cm",
          items: [
            { key: "a", path: "x/a", mode: 0o440 },
            { key: "bin", path: "bin" },
          ],
        },
      },
      { name: "s", secret: { secretName: "s", defaultMode: 0o400 } },
    ]);
    await ready(b, pod);
    assert.equal(await b.file("configmap", "cm", "x/a"), "1");
    assert.equal((await stat(join(b.root, "u1/volumes/kubernetes.io~configmap/cm/x/a"))).mode & 0o777, 0o440);
    assert.deepEqual(await readFile(join(b.root, "u1/volumes/kubernetes.io~configmap/cm/bin")), Buffer.from([0xff]));
    assert.equal(await b.file("secret", "s", "user"), "bob");
    assert.equal((await stat(join(b.root, "u1/volumes/kubernetes.io~secret/s/user"))).mode & 0o777, 0o400);
    assert.deepEqual([...b.mounted], [join(b.root, "u1/volumes/kubernetes.io~secret/s")]);
    const mounts = await b.volumes.mountsFor(pod, pod.spec.containers[0] as Pod["spec"]["containers"][0]);
    assert.deepEqual(
      mounts.map(({ containerPath, readOnly }) => [containerPath, readOnly]),
      [
        ["/cm", true],
        ["/s", true],
      ],
    );
  });

  it("wait for what is missing and go on when it appears", async (t) => {
    const b = await bench(t);
    const pod = podWith([
      { name: "x", configMap: { name: "cm" } },
      { name: "y", projected: { sources: [{ configMap: { name: "cm" } }, { secret: { name: "s" } }] } },
    ]);
    assert.deepEqual(messages(await b.volumes.prepare(pod)), [
      'FailedMount: MountVolume.SetUp failed for volume "x" : configmap "cm" not found',
      'FailedMount: MountVolume.SetUp failed for volume "y" : [configmap "cm" not found, secret "s" not found]',
    ]);
    b.put(resources.configMaps, configMap({ a: "1" }));
    assert.deepEqual(new Set(b.changed), new Set(["u1"]));
    b.put(resources.secrets, secret({ a: "2" }));
    await ready(b, pod);
    assert.equal(await b.file("projected", "y", "a"), "2");
  });

  it("take optional sources as empty", async (t) => {
    const b = await bench(t);
    await ready(b, podWith([{ name: "x", configMap: { name: "cm", optional: true } }]));
    b.put(resources.configMaps, configMap({ late: "1" }));
    await until(() =>
      b.file("configmap", "x", "late").then(
        (text) => text === "1",
        () => false,
      ),
    );
  });

  it("name a key that is not there", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "1" }));
    const pod = podWith([{ name: "x", configMap: { name: "cm", items: [{ key: "zz", path: "z" }] } }]);
    assert.deepEqual(messages(await b.volumes.prepare(pod)), [
      'FailedMount: MountVolume.SetUp failed for volume "x" : configmap references non-existent config key: zz',
    ]);
  });

  it("never let a key leave the volume", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "1" }));
    const pod = podWith([{ name: "x", configMap: { name: "cm", items: [{ key: "a", path: "../../../evil" }] } }]);
    assert.match(messages(await b.volumes.prepare(pod))[0] ?? "", /must not contain '\.\.'/);
    assert.deepEqual(await readdir(join(b.root, "u1")), ["volumes"]);
  });

  it("follow changes, also a hundred of them at once, and survive the end of watches", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "0" }));
    await ready(b, podWith([{ name: "x", configMap: { name: "cm" } }]));
    for (let i = 1; i <= 100; i++) b.put(resources.configMaps, configMap({ a: String(i) }));
    await until(async () => (await b.file("configmap", "x", "a")) === "100");
    b.endWatches();
    b.put(resources.configMaps, configMap({ a: "after" }));
    await until(async () => (await b.file("configmap", "x", "a")) === "after");
  });

  it("miss no change that comes while they are set up", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "0" }));
    let last = 0;
    const preparing = b.volumes.prepare(podWith([{ name: "x", configMap: { name: "cm" } }]));
    let done = false;
    void preparing.then(() => {
      done = true;
    });
    while (!done) {
      b.put(resources.configMaps, configMap({ a: String(++last) }));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(async () => (await b.file("configmap", "x", "a")) === String(last));
  });

  it("keep what they show when the source is removed", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "1" }));
    await ready(b, podWith([{ name: "x", configMap: { name: "cm" } }]));
    b.remove(resources.configMaps, "ns", "cm");
    await systemClock.sleep(30);
    assert.equal(await b.file("configmap", "x", "a"), "1");
  });

  it("do not watch what is immutable, nor what no pod uses any more", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "1" }, { immutable: true }));
    b.put(resources.secrets, secret({ a: "1" }));
    await ready(
      b,
      podWith([
        { name: "x", configMap: { name: "cm" } },
        { name: "y", secret: { secretName: "s" } },
      ]),
    );
    assert.deepEqual(b.watched, ["s"]);
    await b.volumes.teardown("u1");
    assert.deepEqual(b.watched, []);
  });

  it("make the directories at which others are mounted inside", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "1" }));
    const pod = podWith([
      { name: "x", configMap: { name: "cm" } },
      { name: "e", emptyDir: {} },
    ]);
    pod.spec.containers[0]!.volumeMounts = [
      { name: "x", mountPath: "/etc/x" },
      { name: "e", mountPath: "/etc/x/tmp/deep" },
    ];
    await ready(b, pod);
    assert.ok((await stat(join(b.root, "u1/volumes/kubernetes.io~configmap/x/tmp/deep"))).isDirectory());
  });
});

describe("downward API volumes", () => {
  it("follow the pod's metadata", async (t) => {
    const b = await bench(t);
    const items = [
      { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
      { path: "cpu", resourceFieldRef: { containerName: "c", resource: "limits.cpu", divisor: "1m" } },
    ];
    const volumes: Volume[] = [{ name: "d", downwardAPI: { items } }];
    await ready(b, podWith(volumes));
    assert.equal(await b.file("downward-api", "d", "labels"), 'app="x"');
    assert.equal(await b.file("downward-api", "d", "cpu"), "2000");
    b.volumes.refresh(podWith(volumes, {}, { labels: { app: "y" } }));
    await until(async () => (await b.file("downward-api", "d", "labels")) === 'app="y"');
  });
});

/** Fake time, with real time between its steps for what is written to disk. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10_000) {
    await clock.advance(Math.min(left, 10_000));
    await systemClock.sleep(3);
  }
}

describe("service account tokens", () => {
  const volumes: Volume[] = [
    {
      name: "k",
      projected: { sources: [{ serviceAccountToken: { path: "token", expirationSeconds: 1000, audience: "vault" } }] },
    },
  ];
  it("are bound to the pod and renewed after 80 % of their life", async (t) => {
    const clock = createFakeClock();
    const b = await bench(t, clock);
    await ready(b, podWith(volumes, { serviceAccountName: "robot" }));
    assert.equal(await b.file("projected", "k", "token"), "token-1");
    assert.deepEqual(b.tokenRequests[0]?.spec, {
      audiences: ["vault"],
      expirationSeconds: 1000,
      boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "p", uid: "u1" },
    });
    await pass(clock, 799_000);
    assert.equal(b.tokenRequests.length, 1);
    await pass(clock, 2_000);
    await until(async () => (await b.file("projected", "k", "token")) === "token-2");
  });

  it("that cannot be renewed stay until they expire, and are asked for again", async (t) => {
    const clock = createFakeClock();
    const b = await bench(t, clock);
    await ready(b, podWith(volumes));
    b.onToken(() => {
      throw new Error("down");
    });
    await pass(clock, 850_000);
    assert.ok(b.tokenRequests.length > 2);
    assert.equal(await b.file("projected", "k", "token"), "token-1");
    b.onToken((_request, count) => ({
      token: `t${count}`,
      expirationTimestamp: new Date(clock.now() + 1e6).toISOString(),
    }));
    await pass(clock, 15_000);
    await until(async () => (await b.file("projected", "k", "token")).startsWith("t"));
  });

  it("are readable by the pod's user alone", { skip: process.getuid?.() !== 0 && "needs root" }, async (t) => {
    const b = await bench(t);
    await ready(b, podWith(volumes, { securityContext: { runAsUser: 1000 } }));
    const { mode, uid } = await stat(join(b.root, "u1/volumes/kubernetes.io~projected/k/token"));
    assert.deepEqual([mode & 0o777, uid], [0o600, 1000]);
  });
});

describe("emptyDir", () => {
  it("is open to all, keeps its content, and is in memory when asked", async (t) => {
    const b = await bench(t);
    const pod = podWith([
      { name: "e", emptyDir: {} },
      { name: "m", emptyDir: { medium: "Memory", sizeLimit: "10Mi" } },
    ]);
    await ready(b, pod);
    const path = join(b.root, "u1/volumes/kubernetes.io~empty-dir/e");
    assert.equal((await stat(path)).mode & 0o7777, 0o777);
    assert.deepEqual([...b.mounted], [join(b.root, "u1/volumes/kubernetes.io~empty-dir/m")]);
    await writeFile(join(path, "kept"), "1");
    await ready(b, pod);
    assert.equal(await readFile(join(path, "kept"), "utf8"), "1");
  });

  it("refuses huge pages", async (t) => {
    const b = await bench(t);
    assert.deepEqual(messages(await b.volumes.prepare(podWith([{ name: "e", emptyDir: { medium: "HugePages" } }]))), [
      'FailedMount: MountVolume.SetUp failed for volume "e" : medium "HugePages" is not supported on this node',
    ]);
  });

  it("belongs to the fsGroup", { skip: process.getuid?.() !== 0 && "needs root" }, async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "1" }));
    await ready(
      b,
      podWith(
        [
          { name: "e", emptyDir: {} },
          { name: "x", configMap: { name: "cm", defaultMode: 0o400 } },
        ],
        { securityContext: { fsGroup: 2000 } },
      ),
    );
    const at = async (path: string) => {
      const { gid, mode } = await stat(join(b.root, "u1/volumes", path));
      return [gid, (mode & 0o7777).toString(8)];
    };
    assert.deepEqual(await at("kubernetes.io~empty-dir/e"), [2000, "2777"]);
    assert.deepEqual(await at("kubernetes.io~configmap/x"), [2000, "2777"]);
    assert.deepEqual(await at("kubernetes.io~configmap/x/..data/"), [2000, "2755"]);
    assert.deepEqual(await at("kubernetes.io~configmap/x/a"), [2000, "440"]);
  });
});

describe("hostPath", () => {
  let pods = 0;
  const hostPath = async (b: Bench, path: string, type: string) =>
    messages(await b.volumes.prepare(podWith([{ name: "h", hostPath: { path, type } }], {}, { uid: `u${pods++}` })));
  it("checks what is there", async (t) => {
    const b = await bench(t);
    const at = (name: string) => join(b.root, name);
    await mkdir(at("dir"), { recursive: true });
    await writeFile(at("file"), "");
    const server = createServer().listen(at("sock"));
    t.after(() => server.close());
    await until(() =>
      stat(at("sock")).then(
        () => true,
        () => false,
      ),
    );
    const fits: [string, string][] = [
      ["", at("nothing")],
      ["Directory", at("dir")],
      ["DirectoryOrCreate", at("new/dir")],
      ["File", at("file")],
      ["FileOrCreate", at("newfile")],
      ["Socket", at("sock")],
      ["CharDevice", "/dev/null"],
    ];
    for (const [type, path] of fits) assert.deepEqual(await hostPath(b, path, type), [], `${type} ${path}`);
    assert.ok((await stat(at("new/dir"))).isDirectory());
    assert.ok((await stat(at("newfile"))).isFile());
    const fails: [string, string, string][] = [
      ["Directory", at("nope"), "a directory"],
      ["Directory", at("file"), "a directory"],
      ["DirectoryOrCreate", at("file"), "a directory"],
      ["File", at("dir"), "a file"],
      ["Socket", at("file"), "a socket file"],
      ["CharDevice", at("file"), "a character device"],
      ["BlockDevice", "/dev/null", "a block device"],
    ];
    for (const [type, path, what] of fails) {
      assert.deepEqual(await hostPath(b, path, type), [
        `FailedMount: MountVolume.SetUp failed for volume "h" : hostPath type check failed: ${path} is not ${what}`,
      ]);
    }
  });
});

describe("persistent volume claims", () => {
  const claim = (phase: string, more: object = {}): ApiObject => ({
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data", namespace: "ns", uid: "claim-1" },
    spec: { volumeName: "pv-1" },
    status: { phase },
    ...more,
  });
  const volume = (spec: object, claimUid = "claim-1"): ApiObject => ({
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "pv-1", annotations: { "pv.beta.kubernetes.io/gid": "1234" } },
    spec: { capacity: { storage: "1Gi" }, claimRef: { uid: claimUid }, ...spec },
  });
  const pod = podWith([{ name: "d", persistentVolumeClaim: { claimName: "data", readOnly: true } }]);
  const text =
    "FailedMount: Unable to attach or mount volumes: unmounted volumes=[d], unattached volumes=[], failed to process volumes=[d]: ";

  it("wait until they are there and bound", async (t) => {
    const b = await bench(t);
    assert.deepEqual(messages(await b.volumes.prepare(pod)), [
      `${text}error processing PVC ns/data: failed to fetch PVC from API server: persistentvolumeclaims "data" not found`,
    ]);
    b.put(resources.persistentVolumeClaims, claim("Pending"));
    assert.deepEqual(messages(await b.volumes.prepare(pod)), [`${text}error processing PVC ns/data: PVC is not bound`]);
    await mkdir(join(b.root, "local"), { recursive: true });
    b.put(resources.persistentVolumes, volume({ local: { path: join(b.root, "local") } }));
    b.put(resources.persistentVolumeClaims, claim("Bound"));
    await ready(b, pod);
    assert.deepEqual(b.volumes.volumes("u1").get("d"), {
      hostPath: join(b.root, "local"),
      readOnly: true,
      group: 1234,
    });
  });

  const faults: [string, ApiObject, string][] = [
    [
      "a claim of another",
      volume({ hostPath: { path: "/tmp" } }, "other"),
      `${text}error processing PVC ns/data: found PV object pv-1 but its pv.Spec.ClaimRef.UID other does not point to claim.UID claim-1`,
    ],
    [
      "a path that is gone",
      volume({ local: { path: "/nonexistent" } }),
      'FailedMount: MountVolume.NewMounter initialization failed for volume "pv-1" : path "/nonexistent" does not exist',
    ],
    [
      "another type",
      volume({ nfs: { server: "s", path: "/" } }),
      'FailedMount: MountVolume.SetUp failed for volume "pv-1" : volumes of type nfs are not supported on this node',
    ],
    [
      "another node",
      volume({
        hostPath: { path: "/tmp" },
        nodeAffinity: {
          required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["y"] }] }] },
        },
      }),
      'FailedMount: MountVolume.NodeAffinity check failed for volume "pv-1" : no matching NodeSelectorTerms',
    ],
    [
      "a block volume that is mounted",
      volume({ volumeMode: "Block", local: { path: "/dev/null" } }),
      `${text}volume d has volumeMode Block, but is specified in volumeMounts`,
    ],
  ];
  for (const [name, object, message] of faults) {
    it(`refuse ${name}`, async (t) => {
      const b = await bench(t);
      b.put(resources.persistentVolumeClaims, claim("Bound"));
      b.put(resources.persistentVolumes, object);
      assert.deepEqual(messages(await b.volumes.prepare(pod)), [message]);
    });
  }
});

describe("volumes of other kinds", () => {
  it("are refused by name, images are mounted", async (t) => {
    const b = await bench(t);
    const outcome = await b.volumes.prepare(
      podWith([
        { name: "n", nfs: { server: "s", path: "/" } },
        { name: "i", csi: { driver: "foo.bar" } },
        { name: "m", image: { reference: "away", pullPolicy: "IfNotPresent" } },
        { name: "v", image: { reference: "away", pullPolicy: "Never" } },
        { name: "h", image: { reference: "here", pullPolicy: "IfNotPresent" } },
      ]),
    );
    assert.deepEqual(messages(outcome), [
      'FailedMount: MountVolume.SetUp failed for volume "n" : volumes of type nfs are not supported on this node',
      'FailedMount: MountVolume.SetUp failed for volume "i" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name foo.bar not found in the list of registered CSI drivers',
      'FailedMount: MountVolume.SetUp failed for volume "m" : failed to pull and unpack image "away": no route',
      'FailedMount: MountVolume.SetUp failed for volume "v" : Container image "away" is not present with pull policy of Never',
    ]);
    assert.deepEqual(b.volumes.volumes("u1").get("h"), { image: "here", readOnly: true });
  });
});

describe("volumes that no container mounts", () => {
  it("are not set up, until an ephemeral container comes that does", async (t) => {
    const b = await bench(t);
    const pod = podWith([{ name: "x", configMap: { name: "cm" } }]);
    pod.spec.containers[0]!.volumeMounts = [];
    await ready(b, pod);
    assert.deepEqual(b.watched, []);
    const debug = { name: "d", volumeMounts: [{ name: "x", mountPath: "/x" }] };
    const more = podWith(pod.spec.volumes ?? [], { containers: pod.spec.containers, ephemeralContainers: [debug] });
    assert.equal((await b.volumes.prepare(more)).state, "waiting");
    b.put(resources.configMaps, configMap({ a: "1" }));
    await ready(b, more);
    assert.equal(await b.file("configmap", "x", "a"), "1");
  });
});

describe("teardown()", () => {
  it("removes everything, also of a former process, and succeeds when nothing is there", async (t) => {
    const b = await bench(t);
    await mkdir(join(b.root, "old/volumes/kubernetes.io~empty-dir/e"), { recursive: true });
    await ready(b, podWith([{ name: "e", emptyDir: { medium: "Memory" } }]));
    assert.deepEqual((await b.volumes.listPodUIDs()).toSorted(), ["old", "u1"]);
    for (const uid of ["old", "u1", "never"]) await b.volumes.teardown(uid);
    assert.deepEqual(await b.volumes.listPodUIDs(), []);
    assert.deepEqual([...b.mounted], []);
  });

  it("waits for a set-up that runs", async (t) => {
    const b = await bench(t);
    b.put(resources.configMaps, configMap({ a: "1" }));
    const preparing = b.volumes.prepare(
      podWith([
        { name: "x", configMap: { name: "cm" } },
        { name: "e", emptyDir: {} },
      ]),
    );
    await b.volumes.teardown("u1");
    await preparing;
    assert.deepEqual(await b.volumes.listPodUIDs(), []);
    assert.deepEqual(b.watched, []);
  });

  it("removes nothing while something is mounted", async (t) => {
    const b = await bench(t);
    await ready(b, podWith([{ name: "e", emptyDir: { medium: "Memory" } }]));
    b.state.busy = true;
    await assert.rejects(b.volumes.teardown("u1"), /still mounted/);
    assert.deepEqual(await b.volumes.listPodUIDs(), ["u1"]);
    b.state.busy = false;
    await b.volumes.teardown("u1");
    assert.deepEqual(await b.volumes.listPodUIDs(), []);
  });

  it("follows no link out of the pod", async (t) => {
    const b = await bench(t);
    await ready(b, podWith([{ name: "e", emptyDir: {} }]));
    const outside = join(b.root, "../outside");
    await mkdir(outside);
    await writeFile(join(outside, "kept"), "1");
    await symlink(outside, join(b.root, "u1/volumes/kubernetes.io~empty-dir/e/link"));
    await chmod(join(b.root, "u1/volumes/kubernetes.io~empty-dir/e"), 0o555);
    await b.volumes.teardown("u1");
    assert.equal(await readFile(join(outside, "kept"), "utf8"), "1");
  });

  it("refuses a UID that is no name", async (t) => {
    const b = await bench(t);
    await assert.rejects(b.volumes.teardown("../x"), /can be no part/);
  });
});

describe("mountsFor()", () => {
  it("gives sub-paths, propagation and read-only, outer mounts first", async (t) => {
    const b = await bench(t);
    const pod = podWith([{ name: "e", emptyDir: {} }]);
    pod.spec.containers[0]!.volumeMounts = [
      { name: "e", mountPath: "/a/b", subPathExpr: "$(POD)/x", readOnly: true, recursiveReadOnly: "IfPossible" },
      { name: "e", mountPath: "/a", mountPropagation: "HostToContainer" },
    ];
    await ready(b, pod);
    const hostPath = join(b.root, "u1/volumes/kubernetes.io~empty-dir/e");
    const mounts = await b.volumes.mountsFor(pod, pod.spec.containers[0]!, new Map([["POD", "p"]]));
    assert.deepEqual(mounts, [
      { hostPath, containerPath: "/a", readOnly: false, propagation: "rslave" },
      {
        hostPath,
        containerPath: "/a/b",
        readOnly: true,
        recursiveReadOnly: true,
        propagation: "private",
        subPath: "p/x",
      },
    ]);
  });

  it("refuses what cannot be had", async (t) => {
    const b = await bench(t);
    const pod = podWith([{ name: "e", emptyDir: {} }]);
    await ready(b, pod);
    await symlink("/etc", join(b.root, "u1/volumes/kubernetes.io~empty-dir/e/out"));
    const faults: [object, string][] = [
      [{ subPath: "out" }, 'failed to prepare subPath for volumeMount "e" of container "c"'],
      [{ subPathExpr: "$(NOPE)" }, "missing value for NOPE"],
      [{ subPath: "/abs" }, "error SubPath `/abs` must not be an absolute path"],
      [{ name: "zz" }, 'cannot find volume "zz" to mount into container "c"'],
    ];
    for (const [mount, message] of faults) {
      const container = { name: "c", volumeMounts: [{ name: "e", mountPath: "/e", ...mount }] };
      await assert.rejects(b.volumes.mountsFor(pod, container), { name: "ContainerConfigError", message });
    }
  });
});
