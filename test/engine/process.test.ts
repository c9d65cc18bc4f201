import assert from "node:assert/strict";
import { readlinkSync } from "node:fs";
import { isEngineError } from "#engine";
import { exitOf } from "../../src/engine/contract.test-support.ts";
import { SECURITY, trial } from "./trial.test-support.ts";

trial("environment: image, then container, with HOSTNAME, HOME and PATH", async (t) => {
  const { stdout } = await t.once(
    "env | sort",
    {
      env: [
        { name: "A", value: "1" },
        { name: "A", value: "two words" },
      ],
    },
    { hostname: "web-0" },
  );
  const env = new Map(stdout.split("\n").map((line) => line.split("=") as [string, string]));
  assert.equal(env.get("A"), "two words");
  assert.equal(env.get("HOSTNAME"), "web-0");
  assert.equal(env.get("HOME"), "/root");
  assert.match(env.get("PATH") ?? "", /\/bin/);
});

trial("working directory is made when the image lacks it", async (t) => {
  assert.equal((await t.once("pwd", { workingDir: "/srv/app/data" })).stdout, "/srv/app/data");
});

trial("user: numbers, groups and the status", async (t) => {
  const security = { ...SECURITY, runAsUser: 1000, runAsGroup: 3000, supplementalGroups: [4000] };
  assert.equal((await t.once("id", { security })).stdout, "uid=1000 gid=3000 groups=3000,4000");
  const user = t.engine.containers()[0]?.user;
  assert.deepEqual(user, { uid: 1000, gid: 3000, supplementalGroups: [3000, 4000] });
});

trial("user: a name that the image does not know is refused", async (t) => {
  const security = { ...SECURITY, runAsUsername: "nosuch" };
  await assert.rejects(t.create(await t.sandbox(), ["true"], { security }), (error) => {
    return (
      isEngineError(error, "invalid-config") &&
      /unable to find user nosuch: no matching entries in passwd file/.test(error.message)
    );
  });
  assert.deepEqual(t.engine.containers(), []);
});

trial("capabilities: the default set, drop ALL with one added, privileged", async (t) => {
  const effective = async (security: Partial<typeof SECURITY> | object) =>
    BigInt(
      `0x${/CapEff:\s+(\w+)/.exec((await t.once("cat /proc/self/status", { security: { ...SECURITY, ...security } })).stdout)?.[1]}`,
    );
  assert.equal(await effective({}), 0xa80425fbn);
  assert.equal(await effective({ dropCapabilities: ["ALL"], addCapabilities: ["NET_BIND_SERVICE"] }), 0x400n);
  assert.ok((await effective({ privileged: true })) & (1n << 21n), "CAP_SYS_ADMIN");
});

trial("runtime-default seccomp forbids unshare and is fast the second time", async (t) => {
  const security = { ...SECURITY, seccomp: "runtime-default" };
  const first = await t.once("grep Seccomp: /proc/self/status; unshare -U true 2>&1; echo $?", { security });
  assert.match(first.stdout, /Seccomp:\s+2\n.*not permitted\n1$/s);
  const again = await t.once("grep Seccomp: /proc/self/status; unshare -U true 2>&1; echo $?", { security });
  assert.equal(again.stdout, first.stdout);
});

trial("no new privileges, read-only root, masked and read-only paths", async (t) => {
  const security = { ...SECURITY, readOnlyRootfs: true, noNewPrivileges: true };
  const { stdout } = await t.once(
    "grep NoNewPrivs /proc/self/status; touch /x 2>&1; cat /proc/keys; echo 1 > /proc/sys/kernel/shmmax; echo done",
    { security },
  );
  assert.match(stdout, /NoNewPrivs:\s+1/);
  assert.match(stdout, /touch: \/x: Read-only file system/);
  assert.match(stdout, /done$/);
});

trial("a privileged container sees the host's devices and can mount", async (t) => {
  const { exitCode, stdout } = await t.once(
    "ls /dev/vda /dev/loop-control /dev/fuse 2>/dev/null | head -1; mkdir /m && mount -t tmpfs x /m && echo mounted",
    {
      security: { ...SECURITY, privileged: true },
    },
  );
  assert.equal(exitCode, 0);
  assert.match(stdout, /mounted$/);
});

trial("start errors name what could not be run", async (t) => {
  const sandbox = await t.sandbox();
  for (const [command, cause] of [
    [["/no/such"], 'exec: "/no/such": stat /no/such: no such file or directory'],
    [["nosuch", "arg"], 'exec: "nosuch": executable file not found in $PATH'],
    [["/etc/passwd"], 'exec: "/etc/passwd": permission denied'],
  ] as const) {
    const message = `OCI runtime create failed: unable to start container process: ${cause}`;
    const id = await t.create(sandbox, command);
    await assert.rejects(
      t.engine.startContainer(id),
      (error) => isEngineError(error, "start-failed") && error.message === message,
    );
    const { state, exitCode, reason, message: told } = t.engine.container(id)!;
    assert.deepEqual(
      { state, exitCode, reason, told },
      { state: "exited", exitCode: 128, reason: "StartError", told: message },
    );
  }
});

trial("a container that takes more memory than it may is OOMKilled, its neighbour is not", async (t) => {
  const sandbox = await t.sandbox();
  const other = await t.run(sandbox, ["sh", "-c", "sleep 2; exit 1"], { resources: { memoryLimitBytes: 32 << 20 } });
  const id = await t.run(sandbox, ["sh", "-c", "x=a; while true; do x=$x$x; done"], {
    resources: { memoryLimitBytes: 16 << 20 },
  });
  const status = await exitOf(t.engine, id);
  assert.deepEqual([status.exitCode, status.reason], [137, "OOMKilled"]);
  assert.equal((await exitOf(t.engine, other)).reason, "Error");
});

trial("limits are in the control group, can be changed, and are measured", async (t) => {
  const sandbox = await t.sandbox({ qosClass: "Burstable", resources: { cpuShares: 512 } });
  const resources = { cpuShares: 256, cpuQuota: 50_000, cpuPeriod: 100_000, memoryLimitBytes: 64 << 20, pidsLimit: 50 };
  const id = await t.run(sandbox, ["sh", "-c", "while true; do :; done"], { resources });
  await t.engine.updateContainer(id, { memoryLimitBytes: 128 << 20 });
  const after = t.engine.container(id)!.resources;
  assert.deepEqual(after, { ...resources, memoryLimitBytes: 128 << 20 });
  const limit = await t.sh(
    id,
    "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null || true",
  );
  assert.equal(limit, String(128 << 20));
  const stats = await t.engine.stats(id);
  assert.ok(stats.memoryUsageBytes > 0 && stats.pids >= 1 && stats.cpuUsageNanoseconds > 0, JSON.stringify(stats));
});

trial("the stop signal is sent, then KILL after the grace period", async (t) => {
  const sandbox = await t.sandbox();
  const polite = await t.run(sandbox, ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"]);
  const usr1 = await t.run(sandbox, ["sh", "-c", "trap 'exit 21' USR1; while true; do sleep 0.1; done"], {
    stopSignal: "SIGUSR1",
  });
  const stubborn = await t.run(sandbox, ["sh", "-c", "trap '' TERM; while true; do sleep 0.1; done"]);
  await new Promise((resolve) => setTimeout(resolve, 300)); // until the traps are set
  await Promise.all([polite, usr1].map((id) => t.engine.stopContainer(id, { graceMs: 10_000 })));
  await t.engine.stopContainer(stubborn, { graceMs: 300 });
  assert.deepEqual(
    [polite, usr1, stubborn].map((id) => t.engine.container(id)?.exitCode),
    [0, 21, 137],
  );
  assert.equal(t.engine.container(polite)?.reason, "Completed");
});

trial("a shared process namespace has the pause container as process 1", async (t) => {
  const sandbox = await t.sandbox({ namespaces: { network: "pod", pid: "pod", ipc: "pod" } });
  const one = await t.run(sandbox, ["sleep", "1111"]);
  await t.run(sandbox, ["sleep", "2222"]);
  const seen = await t.sh(one, "ps -o pid,args");
  assert.match(seen, /^\s+1 .*(catatonit|pause)/m);
  assert.match(seen, /sleep 2222/);
});

trial("the host's process namespace and network", async (t) => {
  const sandbox = await t.sandbox({ namespaces: { network: "node", pid: "node", ipc: "node" } });
  const id = await t.run(sandbox, ["sleep", "1000"]);
  for (const kind of ["net", "uts", "ipc", "pid"])
    assert.equal(await t.sh(id, `readlink /proc/self/ns/${kind}`), readlinkSync(`/proc/self/ns/${kind}`));
  assert.match(await t.sh(id, `test -d /proc/${process.pid} && echo there`), /there/);
});

trial("an ephemeral container sees the processes of its target", async (t) => {
  const sandbox = await t.sandbox();
  const target = await t.run(sandbox, ["sleep", "3333"]);
  const debug = await t.run(sandbox, ["sleep", "4444"], { targetContainerId: target });
  assert.match(await t.sh(debug, "ps -o pid,args"), /1 sleep 3333/);
});

trial("sysctls of the pod's own namespaces are set, others are refused", async (t) => {
  const sandbox = await t.sandbox({
    sysctls: { "kernel.shm_rmid_forced": "1", "net.ipv4.ip_local_port_range": "20000 20100" },
  });
  const id = await t.run(sandbox, ["sleep", "1000"]);
  assert.equal(
    await t.sh(id, "cat /proc/sys/kernel/shm_rmid_forced /proc/sys/net/ipv4/ip_local_port_range"),
    "1\n20000\t20100",
  );
  await assert.rejects(t.sandbox({ sysctls: { "kernel.hostname": "x" } }), (error) =>
    isEngineError(error, "invalid-config"),
  );
  await assert.rejects(t.sandbox({ sysctls: { "net.ipv4.no_such_thing": "1" } }), (error) =>
    isEngineError(error, "sandbox-failed"),
  );
  assert.equal(t.engine.sandboxes().length, 1);
});
