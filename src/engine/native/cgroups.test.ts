import assert from "node:assert/strict";
import { test } from "node:test";
import { fasterMoves, readCgroupLayout, sharesToWeight } from "./cgroups.ts";

const V1 = `30 20 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
32 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd`;

test("version 1: every controller has its directory, also where two share one", () => {
  const layout = readCgroupLayout(V1)!;
  assert.equal(layout.version, 1);
  assert.deepEqual(Object.fromEntries(layout.hierarchies), {
    cpu: "/sys/fs/cgroup/cpu,cpuacct",
    cpuacct: "/sys/fs/cgroup/cpu,cpuacct",
    memory: "/sys/fs/cgroup/memory",
    "name=systemd": "/sys/fs/cgroup/systemd",
  });
  assert.equal(layout.hybrid, undefined);
});

test("hybrid: version 1 with the version 2 tree beside it", () => {
  const layout = readCgroupLayout(`${V1}\n34 30 0:29 / /no/such/unified rw - cgroup2 cgroup2 rw`)!;
  assert.deepEqual([layout.version, layout.hybrid], [1, { path: "/no/such/unified", controllers: [] }]);
});

test("version 2 alone, and nothing at all", () => {
  const layout = readCgroupLayout("31 30 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate")!;
  assert.deepEqual([layout.version, [...layout.hierarchies]], [2, [["unified", "/sys/fs/cgroup"]]]);
  assert.equal(readCgroupLayout("31 30 0:26 / /proc rw - proc proc rw"), undefined);
});

test("fast moves: the mount's own flags and options are kept, a second time nothing is done", () => {
  const line = (options: string) =>
    `31 30 0:26 / /sys/fs/cgroup rw,nosuid,noexec shared:4 - cgroup2 cgroup2 ${options}`;
  assert.deepEqual(fasterMoves(line("rw,nsdelegate")), {
    path: "/sys/fs/cgroup",
    flags: ["rw", "nosuid", "noexec"],
    options: "nsdelegate,favordynmods",
  });
  assert.equal(fasterMoves(line("rw,nsdelegate,favordynmods")), undefined);
  assert.equal(fasterMoves(V1), undefined);
});

test("cpu.shares become cpu.weight at both ends and in the middle", () => {
  assert.deepEqual([1, 2, 1024, 262_144, 999_999].map(sharesToWeight), [1, 1, 39, 10_000, 10_000]);
});
