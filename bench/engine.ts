/**
 * What the native engine's part of a pod costs: `node bench/engine.ts [pods]` (root). Prints milliseconds of each step, median and
 * worst of 20 pods one after another, then the wall time of `pods` (default 30) at once, started and removed.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { silentLogger, systemClock, systemRandom } from "#base";
import { createNativeEngine } from "#engine/native";
import { containerConfig, sandboxConfig } from "../src/engine/contract.test-support.ts";

const IMAGE = "slim/busybox:latest";
const ONE_BY_ONE = 20;
const pods = Number(process.argv[2] ?? 30);
const directory = await mkdtemp(join(tmpdir(), "slim-bench-"));
const logs = join(directory, "logs");
const options = {
  dataDir: join(directory, "data"),
  runDir: join(directory, "run"),
  instanceId: `b${process.pid}`,
  podCIDR: "10.90.0.0/16",
  interfacePrefix: `b${process.pid % 1_000_000}x`.slice(0, 9),
  cgroupParent: `/slim-bench-${process.pid}`,
};
const keepAlive = setInterval(() => {}, 1000);
const steps = new Map<string, number[]>();

async function timed<T>(step: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work();
  steps.set(step, [...(steps.get(step) ?? []), performance.now() - began]);
  return result;
}

await timed("open, images made", async () =>
  (await createNativeEngine({ clock: systemClock, random: systemRandom, logger: silentLogger }, options))[
    Symbol.asyncDispose
  ](),
);
const engine = await timed("open again", () =>
  createNativeEngine({ clock: systemClock, random: systemRandom, logger: silentLogger }, options),
);

async function startPod(name: string): Promise<{ sandbox: string; container: string }> {
  const sandbox = (await timed("runSandbox", () => engine.runSandbox(sandboxConfig(logs, { name, uid: name })))).id;
  const config = containerConfig(IMAGE, logs, ["sleep", "1000"], { name });
  const container = await timed("createContainer", () => engine.createContainer(sandbox, config));
  await timed("startContainer", () => engine.startContainer(container));
  return { sandbox, container };
}

async function stopPod({ sandbox, container }: { sandbox: string; container: string }): Promise<void> {
  await timed("stopContainer", () => engine.stopContainer(container, { graceMs: 0 }));
  await timed("removeContainer", () => engine.removeContainer(container));
  await timed("removeSandbox", () => engine.removeSandbox(sandbox));
}

/** User and system time of this process and of the children that it has waited for, milliseconds. */
async function cpu(): Promise<number> {
  const stat = await readFile("/proc/self/stat", "utf8");
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  return (fields.slice(11, 15) as number[]).reduce((sum, ticks) => sum + ticks, 0) * 10;
}

try {
  for (let i = 0; i < ONE_BY_ONE; i++) {
    const pod = await timed("pod up", () => startPod(`one-${i}`));
    await timed("execSync", () => engine.execSync(pod.container, { command: ["true"], timeoutMs: 5000 }));
    await timed("pod down", () => stopPod(pod));
  }
  report("one after another");
  const before = await cpu();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const began = performance.now();
  const all = await Promise.all(Array.from({ length: pods }, (_, i) => startPod(`all-${i}`)));
  const up = performance.now();
  delay.disable();
  const spent = (await cpu()) - before;
  await new Promise((resolve) => setTimeout(resolve, 3000)); // until the pause containers are there
  const paused = performance.now();
  await Promise.all(all.map(stopPod));
  const down = performance.now();
  report(`${pods} at once`);
  console.log(
    `${pods} pods up in ${(up - began).toFixed(0)} ms (${(spent / pods).toFixed(1)} ms of CPU each), down in ${(down - paused).toFixed(0)} ms; longest delay of the event loop ${(delay.max / 1e6).toFixed(0)} ms`,
  );
} finally {
  await timed("purge", () => engine.purge());
  await engine[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
  clearInterval(keepAlive);
}

function report(title: string): void {
  console.log(`\n${title.padEnd(22)}   p50 ms   worst`);
  for (const [step, times] of steps) {
    const sorted = times.toSorted((a, b) => a - b);
    console.log(
      `${step.padEnd(22)} ${sorted[Math.floor(sorted.length / 2)]!.toFixed(1).padStart(8)} ${sorted.at(-1)!.toFixed(1).padStart(7)}`,
    );
  }
  steps.clear();
}
