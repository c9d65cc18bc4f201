import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { NativeEngineOptions } from "#engine/native";
import { exitOf } from "../../src/engine/contract.test-support.ts";
import { trial, type Trial } from "./trial.test-support.ts";

/** Everything on the host that carries the instance's names. */
function traces({ cgroupParent, interfacePrefix, instanceId, dataDir, runDir }: NativeEngineOptions): string[] {
  const found: string[] = [];
  for (const line of readFileSync("/proc/self/mountinfo", "utf8").split("\n")) {
    const point = line.split(" ")[4] ?? "";
    if (point.startsWith(`${runDir}/`) || point.startsWith(`${dataDir}/`)) found.push(`mount ${point}`);
  }
  for (const name of readdirSync("/sys/class/net"))
    if (name.startsWith(interfacePrefix)) found.push(`interface ${name}`);
  for (const controller of ["", ...readdirSync("/sys/fs/cgroup")])
    if (existsSync(join("/sys/fs/cgroup", controller, cgroupParent))) found.push(`cgroup ${controller}${cgroupParent}`);
  const tables = execFileSync("nft", ["list", "tables"], { encoding: "utf8" });
  if (tables.includes(instanceId)) found.push("nft table");
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(runDir)) found.push(`process ${pid}`);
    } catch {
      // ended meanwhile
    }
  }
  return found;
}

/** Another process that opens the engine, runs the script (a body of an async function of `t`) and is killed when it prints `now`. */
async function killedProcess(t: Trial, body: string): Promise<string[]> {
  const support = new URL("./crash.test-support.ts", import.meta.url).href;
  const script = `import { crashTrial } from ${JSON.stringify(support)};
    const t = await crashTrial(${JSON.stringify({ ...t.options })}, ${JSON.stringify(t.logDirectory)});
    const say = (...words) => console.log(words.join(" "));
    ${body}
    say("now"); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === "now") child.kill("SIGKILL");
    else lines.push(line);
  }
  return lines;
}

trial("kill -9 of the process: containers go on with id, address, log and exit code", async (t) => {
  await t.engine[Symbol.asyncDispose]();
  const [sandbox, lives, ends] = await killedProcess(
    t,
    `const s = await t.sandbox(); say(s);
     say(await t.run(s, ["sh", "-c", "i=0; while true; do i=$((i+1)); echo $i; sleep 0.01; done"]));
     say(await t.run(s, ["sh", "-c", "sleep 0.3; exit 42"]));`,
  );
  await new Promise((resolve) => setTimeout(resolve, 600));
  const engine = await t.reopen!();
  assert.deepEqual(
    engine.sandboxes().map(({ id, state }) => [id, state]),
    [[sandbox, "ready"]],
  );
  assert.equal(engine.container(lives!)?.state, "running");
  const { exitCode, reason } = engine.container(ends!)!;
  assert.deepEqual([exitCode, reason], [42, "Error"]);
  assert.match(await t.sh(lives!, "echo exec works", engine), /exec works/);
  await engine.stopContainer(lives!, { graceMs: 0 });
  const numbers = readFileSync(engine.container(lives!)!.config.logPath, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => Number(line.split(" ")[3]));
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => i + 1),
  );
});

trial("kill -9 in the middle of anything: the next start has whole things only, purge leaves nothing", async (t) => {
  await t.engine[Symbol.asyncDispose]();
  for (const delay of [0, 3, 8, 15, 25, 40, 60]) {
    await killedProcess(
      t,
      `void (async () => { for (let i = 0; ; i++) { const s = await t.sandbox({ uid: "${delay}-" + i }); await t.run(s, ["sleep", "1000"]); if (i % 2) await t.engine.removeSandbox(s); } })();
       await new Promise((resolve) => setTimeout(resolve, 60 + ${delay}));`,
    );
  }
  const engine = await t.reopen!();
  for (const sandbox of engine.sandboxes()) assert.ok(["ready", "not-ready"].includes(sandbox.state));
  for (const container of engine.containers()) {
    assert.ok(["created", "running", "exited"].includes(container.state), container.state);
    if (container.state === "running") assert.equal(await t.sh(container.id, "echo alive", engine), "alive");
  }
  const bundles = readdirSync(join(t.options.runDir, "bundles"));
  for (const name of bundles) assert.ok(engine.container(name), `stray bundle ${name}`);
  await engine.purge();
  await new Promise((resolve) => setTimeout(resolve, 200)); // the kernel takes interfaces away a moment after their namespace
  assert.deepEqual(traces(t.options), []);
});

trial("purge leaves nothing, also of what no record knows", async (t) => {
  const sandbox = await t.sandbox({ namespaces: { network: "pod", pid: "pod", ipc: "pod" }, qosClass: "Burstable" });
  await t.run(sandbox, ["sleep", "1000"]);
  const lost = await t.run(await t.sandbox(), ["sleep", "1000"]);
  await assert.rejects(t.run(sandbox, ["/no/such"]));
  await t.engine[Symbol.asyncDispose]();
  rmSync(join(t.options.dataDir, "containers", `${lost}.json`)); // as if a disk had lost it
  mkdirSync(join(t.options.runDir, "bundles", "stray"));
  writeFileSync(join(t.options.dataDir, "sandboxes", "broken.json"), "{");
  const engine = await t.reopen!();
  await engine.purge();
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.deepEqual(traces(t.options), []);
});

trial("a container whose monitor was killed goes on; its end is unknown", async (t) => {
  const id = await t.run(await t.sandbox(), ["sleep", "1"]);
  const pid = Number(/PPid:\s+(\d+)/.exec(readFileSync(`/proc/${t.engine.container(id)!.pid}/status`, "utf8"))?.[1]);
  process.kill(pid, "SIGKILL");
  assert.equal(await t.sh(id, "echo alive"), "alive");
  const { exitCode, reason, state } = await exitOf(t.engine, id);
  assert.deepEqual({ exitCode, reason, state }, { exitCode: 137, reason: "ContainerStatusUnknown", state: "exited" });
});

trial("the pause container comes back when it is killed, and nobody notices", async (t) => {
  const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
  const pauses = () =>
    readdirSync("/proc").filter((pid) => {
      try {
        return (
          /^\d+$/.test(pid) &&
          /catatonit|^\/pause/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8")) &&
          readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(t.options.cgroupParent)
        );
      } catch {
        return false;
      }
    });
  const pauseAfter = async (not: string | undefined) => {
    for (let tries = 60; tries > 0; tries--) {
      const found = pauses().find((pid) => pid !== not);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("no pause container");
  };
  const first = await pauseAfter(undefined);
  process.kill(Number(first), "SIGKILL");
  await pauseAfter(first);
  assert.equal(t.engine.sandboxes()[0]?.state, "ready");
  assert.equal(await t.sh(id, "echo undisturbed"), "undisturbed");
});

trial("a killed pause container of a shared process namespace ends the sandbox", async (t) => {
  const sandbox = await t.sandbox({ namespaces: { network: "pod", pid: "pod", ipc: "pod" } });
  const id = await t.run(sandbox, ["sleep", "1000"]);
  const line = /NSpid:.*/.exec(readFileSync(`/proc/${t.engine.container(id)!.pid}/status`, "utf8"));
  assert.ok(line);
  await t.sh(id, "kill -9 1 || true").catch(() => {}); // a process cannot kill its namespace's first, so this does nothing
  assert.equal(t.engine.container(id)?.state, "running");
  const records = readdirSync(join(t.options.dataDir, "sandboxes")).map(
    (name) => JSON.parse(readFileSync(join(t.options.dataDir, "sandboxes", name), "utf8")) as { pauseId: string },
  );
  await t.engine.signalContainer(records[0]!.pauseId, "KILL");
  await exitOf(t.engine, id);
  assert.equal(t.engine.sandboxes()[0]?.state, "not-ready");
});

trial("a process number that was given to another process is not taken for the container", async (t) => {
  const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
  await t.engine.stopContainer(id, { graceMs: 0 });
  await t.engine[Symbol.asyncDispose]();
  const path = join(t.options.dataDir, "containers", `${id}.json`);
  const record = JSON.parse(readFileSync(path, "utf8"));
  const other = spawn("sleep", ["1000"]);
  try {
    writeFileSync(
      path,
      JSON.stringify({
        ...record,
        state: "running",
        exitCode: undefined,
        process: { pid: other.pid, startTime: "1" },
        monitor: { pid: other.pid, startTime: "1" },
      }),
    );
    const engine = await t.reopen!();
    assert.deepEqual([engine.container(id)?.state, engine.container(id)?.reason], ["exited", "ContainerStatusUnknown"]);
    await engine.purge();
    assert.equal(other.exitCode, null);
    assert.ok(existsSync(`/proc/${other.pid}`));
  } finally {
    other.kill("SIGKILL");
  }
});

trial("two instances side by side do not touch each other", async (t) => {
  const { openNative } = await import("./native.test-support.ts");
  const other = await openNative();
  const mine = await t.run(await t.sandbox(), ["sleep", "1000"]);
  await other.engine.purge();
  await other.dispose();
  assert.equal(await t.sh(mine, "echo mine"), "mine");
});
