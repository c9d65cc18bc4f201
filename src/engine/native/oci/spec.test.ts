import assert from "node:assert/strict";
import { test } from "node:test";
import { containerConfig, sandboxConfig } from "../../contract.test-support.ts";
import { commandOf, type SpecInput, specOf } from "./spec.ts";

const image = { Entrypoint: ["/entry"], Cmd: ["cmd"], Env: ["A=image", "PATH=/own", "BROKEN"], WorkingDir: "/srv" };

for (const [title, given, expected] of [
  ["nothing given", {}, ["/entry", "cmd"]],
  ["command drops CMD", { command: ["x"] }, ["x"]],
  ["args replace CMD", { args: ["y"] }, ["/entry", "y"]],
  ["both", { command: ["x"], args: ["y"] }, ["x", "y"]],
  ["an empty command is none", { command: [], args: [] }, ["/entry", "cmd"]],
] as const)
  test(`command: ${title}`, () => assert.deepEqual(commandOf(given, image), expected));

function input(changes: Partial<SpecInput> & { config?: object } = {}): SpecInput {
  const { config, ...rest } = changes;
  return {
    sandbox: sandboxConfig("/logs", { hostname: "h" }),
    container: { ...containerConfig("img", "/logs", ["run"]), ...config },
    image,
    user: { uid: 1, gid: 2, supplementalGroups: [2, 3], home: "/home/u" },
    namespaces: { net: "/ns/net", uts: "/ns/uts", ipc: "/ns/ipc", pid: "own" },
    mounts: [],
    rootfs: "/root",
    cgroupsPath: "/g/c",
    cgroupVersion: 1,
    bounding: new Set(Array.from({ length: 41 }, (_, i) => i)),
    leastOomScore: -1000,
    devices: [],
    ...rest,
  };
}

/** Any: a test looks at whatever part of the JSON document it is about. */
const spec = (changes?: Parameters<typeof input>[0]): any => specOf(input(changes));

test("environment: defaults, image, container, in this order; HOME and HOSTNAME are there", () => {
  const { env, cwd } = spec({ config: { env: [{ name: "A", value: "mine=1" }], tty: true } }).process;
  assert.deepEqual(env, ["PATH=/own", "TERM=xterm", "HOSTNAME=h", "A=mine=1", "HOME=/home/u"]);
  assert.equal(cwd, "/srv");
});

test("namespaces: pinned ones by path, the host's are left out, a joined process namespace", () => {
  assert.deepEqual(spec().linux.namespaces, [
    { type: "mount" },
    { type: "network", path: "/ns/net" },
    { type: "uts", path: "/ns/uts" },
    { type: "ipc", path: "/ns/ipc" },
    { type: "pid" },
  ]);
  assert.deepEqual(spec({ namespaces: { pid: "host" } }).linux.namespaces, [{ type: "mount" }]);
  assert.deepEqual(spec({ namespaces: { pid: "/proc/7/ns/pid" } }).linux.namespaces, [
    { type: "mount" },
    { type: "pid", path: "/proc/7/ns/pid" },
  ]);
});

test("mounts: parents first, one that is given replaces the default", () => {
  const mount = (destination: string) => ({ destination, source: "/s", options: [] });
  const destinations = spec({ mounts: [mount("/a/b/c"), mount("/sys/fs/cgroup"), mount("/a")] }).mounts.map(
    (m: { destination: string; source: string }) => `${m.destination} ${m.source}`,
  );
  assert.deepEqual(destinations, [
    "/proc proc",
    "/dev tmpfs",
    "/sys sysfs",
    "/a /s",
    "/dev/pts devpts",
    "/dev/mqueue mqueue",
    "/a/b/c /s",
    "/sys/fs/cgroup /s",
  ]);
});

test("privileged: nothing masked, all devices, writable sysfs, no filter", () => {
  const security = { ...input().container.security, privileged: true };
  const { linux, mounts } = spec({ config: { security }, seccomp: { profile: { p: 1 } } });
  assert.deepEqual([linux.maskedPaths, linux.readonlyPaths, linux.seccomp], [[], [], undefined]);
  assert.deepEqual(linux.resources.devices, [{ allow: true, access: "rwm" }]);
  assert.ok(mounts.find((m: { destination: string }) => m.destination === "/sys").options.includes("rw"));
});

test("a compiled filter goes along as annotation", () => {
  const { linux, annotations } = spec({ seccomp: { profile: { p: 1 }, compiled: "QUJD" } });
  assert.deepEqual([linux.seccomp, annotations["run.oci.seccomp_bpf_data"]], [{ p: 1 }, "QUJD"]);
});

test("resources: limits, none for what is not given, oom score clamped", () => {
  const resources = {
    cpuShares: 1,
    cpuQuota: 0,
    memoryLimitBytes: 5,
    pidsLimit: 7,
    oomScoreAdj: -998,
    hugepageLimits: [{ pageSize: "2MB", limit: 1 }],
  };
  const { linux, process } = spec({ config: { resources }, leastOomScore: -500, cgroupVersion: 2 });
  const { devices: _, ...limits } = linux.resources;
  assert.deepEqual(limits, {
    cpu: { shares: 2, quota: -1, period: 100_000 },
    memory: { limit: 5 },
    pids: { limit: 7 },
    hugepageLimits: [{ pageSize: "2MB", limit: 1 }],
    unified: { "memory.oom.group": "1" },
  });
  assert.equal(process.oomScoreAdj, -500);
  assert.deepEqual(Object.keys(spec().linux.resources), ["devices"]);
});
