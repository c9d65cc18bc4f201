import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { silentLogger, systemClock } from "#base";
import { openRecords } from "../records.ts";
import { writeAtomically } from "./files.ts";
import { makeDirectoryInRoot, readInRoot } from "./in-root.ts";
import { createLauncher } from "./launcher.ts";
import { loadLibc } from "./libc.ts";
import { createKeyedLock, createSemaphore } from "./locks.ts";
import { sysctlPath } from "./namespaces.ts";
import { identify, isAlive, signalNumber, signalProcess } from "./process.ts";
import { createRun, mustRun } from "./run.ts";

function directory(t: { after(fn: () => void): void }): string {
  const path = mkdtempSync(join(tmpdir(), "slim-sys-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("signals by name and number; what is none is undefined", () => {
  assert.deepEqual(
    ["TERM", "SIGTERM", "sigusr1", "9", "SIGRTMIN+3", "RTMAX-1", "RTMIN"].map(signalNumber),
    [15, 15, 10, 9, 37, 63, 34],
  );
  assert.deepEqual(["", "0", "65", "NOPE", "-1"].map(signalNumber), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

for (const withLibc of [true, false])
  test(`a signal reaches the very process only ${withLibc ? "(pidfd)" : "(without koffi)"}`, async () => {
    const libc = withLibc ? await loadLibc() : undefined;
    const child = spawn("sleep", ["100"]);
    const id = identify(child.pid!)!;
    assert.equal(isAlive(id), true);
    assert.equal(signalProcess(libc, { ...id, startTime: "1" }, 9), false);
    assert.equal(isAlive(id), true);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    assert.equal(signalProcess(libc, id, 9), true);
    await ended;
    assert.equal(isAlive(id), false);
    assert.equal(signalProcess(libc, id, 9), false);
  });

test("one key's work is done in order, even after a failure; other keys do not wait", async () => {
  const lock = createKeyedLock();
  const log: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = lock.run("a", async () => {
    await gate.promise;
    log.push("a1");
    throw new Error("a1 failed");
  });
  const second = lock.run("a", async () => log.push("a2"));
  await lock.run("b", async () => log.push("b"));
  gate.resolve();
  await assert.rejects(first, /a1 failed/);
  await second;
  assert.deepEqual(log, ["b", "a1", "a2"]);
});

test("a semaphore lets so many in, and the next one when one leaves", async () => {
  const semaphore = createSemaphore(2);
  let inside = 0;
  let most = 0;
  const work = async () => {
    most = Math.max(most, ++inside);
    await new Promise((resolve) => setImmediate(resolve));
    inside--;
  };
  await Promise.all([1, 2, 3, 4, 5].map(() => semaphore.run(work)));
  await assert.rejects(semaphore.run(() => Promise.reject(new Error("x"))));
  await semaphore.run(work);
  assert.deepEqual([most, inside], [2, 0]);
});

test("programs: output, input, exit code, time limit, an environment of our own", async () => {
  const run = createRun(systemClock);
  const keepAlive = setInterval(() => {}, 100);
  try {
    assert.deepEqual(await run("sh", ["-c", "cat; echo err >&2; exit 3"], { input: "in" }), {
      code: 3,
      stdout: "in",
      stderr: "err\n",
      timedOut: false,
    });
    assert.equal((await run("sleep", ["100"], { timeoutMs: 50 })).timedOut, true);
    assert.equal((await run("env", [])).stdout.includes("HOME="), false);
    await assert.rejects(mustRun(run, "sh", ["-c", "echo why >&2; exit 1"]), /why/);
    await assert.rejects(run("/no/such/program", []), /ENOENT/);
  } finally {
    clearInterval(keepAlive);
  }
});

test("files are replaced whole; a cut-off write and a broken record do not disturb", (t) => {
  const path = directory(t);
  writeAtomically(join(path, "a.json"), JSON.stringify({ id: "a", n: 1 }));
  writeFileSync(join(path, "b.json.tmp-1-1"), "{");
  writeFileSync(join(path, "broken.json"), '{"id":');
  const records = openRecords<{ id: string; n: number }>(path, silentLogger);
  assert.deepEqual([...records.all.values()], [{ id: "a", n: 1 }]);
  records.change("a", { n: 2 });
  assert.equal(records.change("gone", { n: 3 }), undefined);
  assert.deepEqual(JSON.parse(readFileSync(join(path, "a.json"), "utf8")), { id: "a", n: 2 });
  records.remove("a");
  assert.deepEqual(readdirSync(path), []);
});

for (const withLibc of [true, false])
  test(`a root's symlinks never lead out of it ${withLibc ? "(openat2)" : "(without koffi)"}`, async (t) => {
    const libc = withLibc ? await loadLibc() : undefined;
    const root = join(directory(t), "root");
    mkdirSync(join(root, "etc"), { recursive: true });
    writeFileSync(join(root, "etc/real"), "inside");
    writeFileSync(join(root, "../secret"), "outside");
    symlinkSync("real", join(root, "etc/passwd"));
    symlinkSync("../../secret", join(root, "etc/relative"));
    symlinkSync(join(root, "../secret"), join(root, "etc/absolute"));
    symlinkSync("/dev/zero", join(root, "etc/endless"));
    assert.equal(readInRoot(libc, root, "/etc/passwd"), "inside");
    for (const name of ["relative", "absolute", "endless", "missing", "."])
      assert.equal(readInRoot(libc, root, `/etc/${name}`), "", name);
    symlinkSync("..", join(root, "up"));
    try {
      makeDirectoryInRoot(libc, root, "/up/made");
    } catch {
      // refused without koffi; with it the link leads to the root itself
    }
    assert.equal(existsSync(join(root, "../made")), false);
    makeDirectoryInRoot(libc, root, "/srv/app/data");
    assert.equal(existsSync(join(root, "srv/app/data")), true);
  });

test("sysctl names: dots or slashes, nothing that leads elsewhere", () => {
  assert.equal(sysctlPath("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
  assert.equal(sysctlPath("net/ipv4/conf/eth0.1/forwarding"), "/proc/sys/net/ipv4/conf/eth0.1/forwarding");
  for (const name of ["..", "net/../kernel", "", "a..b", "/etc"])
    assert.throws(() => sysctlPath(name), /invalid sysctl/);
});

for (const withLibc of [true, false])
  test(`launched programs: pipes, exit code, signal, session, environment ${withLibc ? "(posix_spawn)" : "(without koffi)"}`, async () => {
    const launcher = createLauncher(withLibc ? await loadLibc() : undefined);
    const keepAlive = setInterval(() => {}, 100);
    try {
      const env = { PATH: "/usr/bin:/bin", A: "b c" };
      const script = 'read x; echo "$x $A $(env | grep -c ^HOME)"; echo err >&2; exit 7';
      const one = launcher.launch("/bin/sh", ["-c", script], { env, channels: ["write", "read", "read"] });
      one.streams[0]!.end("hello\n");
      assert.equal(await text(one.streams[1]!), "hello b c 0\n");
      assert.equal(await text(one.streams[2]!), "err\n");
      assert.equal(await one.exited, 7);
      const two = launcher.launch("/bin/sh", ["-c", "exec sleep 100"], { env, channels: ["null", "null", "null"] });
      assert.equal(readFileSync(`/proc/${two.pid}/stat`, "utf8").split(") ")[1]!.split(" ")[3], String(two.pid)); // its session is its own
      process.kill(two.pid, "SIGKILL");
      assert.equal(await two.exited, 137);
      assert.equal(existsSync(`/proc/${two.pid}`), false); // reaped
      const failure = async () => launcher.launch("/no/such/program", [], { env, channels: ["null"] }).exited;
      await assert.rejects(failure, /ENOENT/);
    } finally {
      launcher[Symbol.dispose]();
      clearInterval(keepAlive);
    }
    assert.equal(process.listenerCount("SIGCHLD"), 0);
  });

test("a launcher that is disposed still reaps what it started", async () => {
  const launcher = createLauncher(await loadLibc());
  const keepAlive = setInterval(() => {}, 100);
  const child = launcher.launch("/bin/sleep", ["0.1"], { env: {}, channels: ["null", "null", "null"] });
  launcher[Symbol.dispose]();
  assert.equal(await child.exited, 0);
  assert.equal(process.listenerCount("SIGCHLD"), 0);
  clearInterval(keepAlive);
});
