import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { gunzipSync } from "node:zlib";
import { silentLogger, systemClock } from "#base";
import type { ContainerStatus, Engine, EngineEvent, SandboxStatus } from "#engine";
import { createLogManager } from "./log-manager.ts";
import { removeLog, rotateLog } from "./rotation.ts";

async function directoryFor(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "slim-rotate-"));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}
const policy = { maxSizeBytes: 5, maxFiles: 3 };
const START = Date.UTC(2026, 0, 2, 3, 4, 5);

describe("rotateLog()", () => {
  it("leaves a small log alone", async (t) => {
    const path = join(await directoryFor(t), "0.log");
    await writeFile(path, "1234");
    const reopen = () => assert.fail("reopened");
    assert.equal(await rotateLog(path, policy, { now: () => START, reopen }), false);
  });

  it("keeps so many pieces, the older ones compressed", async (t) => {
    const directory = await directoryFor(t);
    const path = join(directory, "0.log");
    await writeFile(path, "turn 0");
    for (let turn = 1; turn <= 4; turn++) {
      const reopen = () => writeFile(path, `turn ${turn}`);
      assert.equal(await rotateLog(path, policy, { now: () => START + turn * 1000, reopen }), true);
    }
    assert.deepEqual((await readdir(directory)).sort(), ["0.log", "0.log.20260102-030408.gz", "0.log.20260102-030409"]);
    assert.equal(await readFile(join(directory, "0.log.20260102-030409"), "utf8"), "turn 3");
    assert.equal(gunzipSync(await readFile(join(directory, "0.log.20260102-030408.gz"))).toString(), "turn 2");
    assert.equal(await readFile(path, "utf8"), "turn 4");
  });

  it("rotates twice in one second without losing a piece", async (t) => {
    const directory = await directoryFor(t);
    const path = join(directory, "0.log");
    for (let turn = 0; turn < 2; turn++) {
      await writeFile(path, `turn ${turn}`);
      await rotateLog(path, { ...policy, maxFiles: 9 }, { now: () => START, reopen: () => writeFile(path, "") });
    }
    assert.deepEqual((await readdir(directory)).sort(), [
      "0.log",
      "0.log.20260102-030405.1",
      "0.log.20260102-030405.gz",
    ]);
  });

  it("gives the log its name back when the writer cannot reopen", async (t) => {
    const path = join(await directoryFor(t), "0.log");
    await writeFile(path, "123456");
    const reopen = () => Promise.reject(new Error("no"));
    await assert.rejects(rotateLog(path, policy, { now: () => START, reopen }), { message: "no" });
    assert.equal(await readFile(path, "utf8"), "123456");
  });

  it("clears what a broken-off compression left", async (t) => {
    const directory = await directoryFor(t);
    const path = join(directory, "0.log");
    await writeFile(path, "123456");
    await writeFile(`${path}.20260101-000000.gz.tmp`, "half");
    await writeFile(join(directory, "0.log.txt"), "not ours");
    await rotateLog(path, policy, { now: () => START, reopen: () => writeFile(path, "") });
    assert.deepEqual((await readdir(directory)).sort(), ["0.log", "0.log.20260102-030405", "0.log.txt"]);
    await removeLog(path);
    assert.deepEqual(await readdir(directory), ["0.log.txt"]);
  });
});

describe("createLogManager()", () => {
  it("rotates logs of running containers, removes those of none, keeps young ones", async (t) => {
    const root = await directoryFor(t);
    const at = (pod: string, file: string) => join(root, `ns_${pod}_uid-${pod}`, "c", file);
    const old = new Date(Date.now() - 120_000);
    for (const [pod, file, text] of [
      ["live", "0.log", "gone run"],
      ["live", "1.log", "a large log"],
      ["dead", "0.log", "x"],
      ["dead", "0.log.20260101-000000.gz", "x"],
      ["young", "0.log", "x"],
    ] as const) {
      await mkdir(dirname(at(pod, file)), { recursive: true });
      await writeFile(at(pod, file), text);
      if (pod !== "young") await utimes(at(pod, file), old, old);
    }
    const reopened: string[] = [];
    const listeners = new Set<(event: EngineEvent) => void>();
    const container = { id: "1", state: "running", config: { logPath: at("live", "1.log"), labels: {} } };
    const engine = {
      containers: () => [container] as unknown as ContainerStatus[],
      container: () => container,
      sandboxes: () => [{ config: { uid: "uid-live" } }] as unknown as SandboxStatus[],
      onEvent(listener: (event: EngineEvent) => void) {
        listeners.add(listener);
        return { [Symbol.dispose]: () => void listeners.delete(listener) };
      },
      async reopenLog(id: string) {
        reopened.push(id);
        await writeFile(at("live", "1.log"), "");
      },
    } as unknown as Engine;
    const manager = createLogManager({ engine, clock: systemClock, logger: silentLogger }, { root, maxSizeBytes: 5 });
    manager.start();
    await manager[Symbol.asyncDispose]();
    assert.deepEqual(reopened, ["1"]);
    assert.equal(listeners.size, 0);
    assert.deepEqual((await readdir(root)).sort(), ["ns_live_uid-live", "ns_young_uid-young"]);
    const left = await readdir(dirname(at("live", "1.log")));
    assert.equal(left.filter((name) => /^1\.log\.\d{8}-\d{6}$/.test(name)).length, 1);
    assert.ok(!left.includes("0.log"));
  });
});
