import { type Duplex, Readable, Writable } from "node:stream";
import type { Clock, Random } from "#base";
import { EngineError } from "../errors.ts";
import type { Engine, EngineEvent, EngineSession, ExecResult, SandboxConfig, SandboxStatus } from "../port.ts";
import { createFakeRun, type FakeRun } from "./container.ts";
import { createFakeImages } from "./images.ts";
import { fakeMounts } from "./mounts.ts";
import { type FakeEngineOptions, type FakeExec, scriptOfCommand } from "./script.ts";

/** An engine without a kernel: containers follow scripts, on the clock that it is given. */
export interface FakeEngine extends Engine {
  /** Lines that a container has written so far. */
  output(
    containerId: string,
  ): readonly { readonly stream: "stdout" | "stderr"; readonly text: string; readonly at: number }[];
  /** Ends a running container from outside, as an administrator's kill would. */
  crash(containerId: string, exitCode?: number, reason?: string): void;
  /** The sandbox is lost (its network is gone), its containers with it. */
  loseSandbox(sandboxId: string): void;
  /** A connection to a port of the pod that has this address; what probes use in place of the network. */
  dial(ip: string, port: number): Promise<Duplex>;
}

/** Needs neither root nor Linux. State lives as long as the object: hand it to a second kubelet to play a restart. */
export function createFakeEngine(deps: { clock: Clock; random: Random }, options: FakeEngineOptions = {}): FakeEngine {
  const { clock, random } = deps;
  const sandboxes = new Map<string, SandboxStatus>();
  const runs = new Map<string, FakeRun>();
  const listeners = new Set<(event: EngineEvent) => void>();
  const emit = (event: EngineEvent) => {
    for (const listener of listeners) listener(event);
  };
  const addresses = createAddresses(options.network ?? "10.244");
  let pid = 1000;
  const newId = () => (random.uuid() + random.uuid()).replaceAll("-", "");

  const inUse = (imageId: string) => [...runs.values()].some((run) => run.status().imageId === imageId);
  const images = createFakeImages({ clock, inUse }, options);
  const need = (id: string): FakeRun => {
    const run = runs.get(id);
    if (!run) throw new EngineError("not-found", `no container ${id}`);
    return run;
  };
  const running = (id: string): FakeRun => {
    const run = need(id);
    if (run.status().state !== "running") throw new EngineError("not-running", `container ${id} is not running`);
    return run;
  };
  const inSandbox = (id: string) => [...runs.values()].filter((run) => run.sandboxId === id);
  const stopSandbox = (id: string, exitCode = 137) => {
    const sandbox = sandboxes.get(id);
    if (!sandbox || sandbox.state === "not-ready") return;
    for (const run of inSandbox(id)) if (run.status().state === "running") run.end(exitCode);
    for (const ip of sandbox.ips) addresses.release(ip);
    sandboxes.set(id, { ...sandbox, state: "not-ready", ips: [] });
    emit({ type: "sandbox-stopped", sandboxId: id });
  };
  const removeContainer = (id: string) => {
    const run = runs.get(id);
    if (!run) return;
    run.end(137);
    run.dispose();
    runs.delete(id);
    emit({ type: "container-removed", sandboxId: run.sandboxId, containerId: id });
  };
  const portOf = (sandboxId: string, port: number): Duplex => {
    for (const run of inSandbox(sandboxId)) {
      const stream = run.status().state === "running" ? run.script.connect?.(port) : undefined;
      if (stream) return stream;
    }
    const ip = sandboxes.get(sandboxId)?.ips[0] ?? "127.0.0.1";
    throw Object.assign(new Error(`connect ECONNREFUSED ${ip}:${port}`), { code: "ECONNREFUSED", address: ip, port });
  };
  const execOf = (run: FakeRun, command: readonly string[]): FakeExec => {
    const runningMs = clock.now() - (run.status().startedAt ?? clock.now());
    return run.script.exec?.(command, { runningMs, execs: run.execs++ }) ?? {};
  };

  const engine: FakeEngine = {
    info: { name: "fake", version: "1", scheme: "slim", cgroupVersion: 0, runtimes: ["fake"], notices: [] },
    images,
    async runSandbox(config) {
      const plan = options.sandbox?.(config) ?? {};
      if (plan.afterMs) await clock.sleep(plan.afterMs);
      if (plan.error !== undefined) throw new EngineError("sandbox-failed", plan.error);
      checkRuntime(config);
      const status: SandboxStatus = {
        id: newId(),
        config,
        state: "ready",
        createdAt: clock.now(),
        ips: config.namespaces.network === "node" ? [] : [addresses.take()],
      };
      sandboxes.set(status.id, status);
      emit({ type: "sandbox-ready", sandboxId: status.id });
      return status;
    },
    async stopSandbox(id) {
      stopSandbox(id);
    },
    async removeSandbox(id) {
      stopSandbox(id);
      for (const run of inSandbox(id)) removeContainer(run.id);
      if (sandboxes.delete(id)) emit({ type: "sandbox-removed", sandboxId: id });
    },
    sandboxes: () => [...sandboxes.values()],

    async createContainer(sandboxId, config) {
      const sandbox = sandboxes.get(sandboxId);
      if (!sandbox) throw new EngineError("not-found", `no sandbox ${sandboxId}`);
      if (sandbox.state !== "ready") throw new EngineError("not-running", `sandbox ${sandboxId} is not ready`);
      const image = images.get(config.image);
      if (!image) throw new EngineError("image-not-found", `image ${config.image} is not in the store`);
      const script = options.script?.({ config, sandbox: sandbox.config }) ?? defaultScript(config, image.config);
      if (script.createMs) await clock.sleep(script.createMs);
      if (script.createError !== undefined) throw new EngineError("create-failed", script.createError);
      const id = newId();
      const run = createFakeRun(
        {
          clock,
          logFiles: options.logFiles ?? false,
          changed: (type) => emit({ type, sandboxId, containerId: id }),
          nextPid: () => pid++,
        },
        { id, sandboxId, config, image, script },
      );
      runs.set(id, run);
      return id;
    },
    async startContainer(id) {
      const run = need(id);
      const { state } = run.status();
      if (state === "running") return;
      if (state !== "created")
        throw new EngineError("start-failed", `container ${id} is in ${state} state, it can be started only once`);
      const failure = await run.start();
      if (failure !== undefined) throw new EngineError("start-failed", failure);
    },
    async stopContainer(id, { graceMs, signal }) {
      const run = runs.get(id);
      if (run?.status().state !== "running") return;
      run.signal(
        signal ?? run.status().config.stopSignal ?? images.get(run.status().imageId)?.config.StopSignal ?? "TERM",
      );
      const timer = clock.setTimer(() => run.signal("KILL"), graceMs);
      await run.exited;
      timer.clear();
    },
    async signalContainer(id, signal) {
      running(id).signal(signal);
    },
    async removeContainer(id) {
      removeContainer(id);
    },
    containers: () => [...runs.values()].map((run) => run.status()),
    container: (id) => runs.get(id)?.status(),
    async updateContainer(id, resources) {
      running(id).update(resources);
    },
    async updateSandbox(id, resources) {
      const sandbox = sandboxes.get(id);
      if (!sandbox) throw new EngineError("not-found", `no sandbox ${id}`);
      sandboxes.set(id, {
        ...sandbox,
        config: { ...sandbox.config, resources: { ...sandbox.config.resources, ...resources } },
      });
    },
    async stats(id) {
      running(id);
      return {
        cpuUsageNanoseconds: 0,
        memoryWorkingSetBytes: 1 << 20,
        memoryUsageBytes: 1 << 20,
        memoryRssBytes: 1 << 20,
        pids: 1,
      };
    },
    async reopenLog(id) {
      running(id);
    },
    async exec(id, request) {
      const run = running(id);
      return fakeSession(clock, execOf(run, request.command), run, request);
    },
    async execSync(id, request): Promise<ExecResult> {
      const run = running(id);
      const plan = execOf(run, request.command);
      const afterMs = plan.afterMs ?? 0;
      const limit = request.timeoutMs > 0 ? request.timeoutMs : Number.POSITIVE_INFINITY;
      const wait = Math.min(afterMs, limit);
      const ended = await waitOrExit(clock, run, wait);
      if (ended) return { exitCode: 137, stdout: "", stderr: "", timedOut: false };
      if (afterMs > limit) return { exitCode: 137, stdout: "", stderr: "", timedOut: true };
      const most = request.maxOutput ?? 16 << 10;
      const cut = (text = "") => (text.length > most ? text.slice(0, most) : text);
      return { exitCode: plan.exitCode ?? 0, stdout: cut(plan.stdout), stderr: cut(plan.stderr), timedOut: false };
    },
    async attach(id, request) {
      return fakeSession(clock, { afterMs: Number.POSITIVE_INFINITY }, running(id), {
        ...request,
        stdout: true,
        stderr: !request.tty,
      });
    },
    async connect(sandboxId, port) {
      return portOf(sandboxId, port);
    },
    async dial(ip, port) {
      const sandbox = [...sandboxes.values()].find((candidate) => candidate.ips.includes(ip));
      if (!sandbox)
        throw Object.assign(new Error(`connect EHOSTUNREACH ${ip}:${port}`), {
          code: "EHOSTUNREACH",
          address: ip,
          port,
        });
      return portOf(sandbox.id, port);
    },
    onEvent(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    mounts: fakeMounts(),
    async purge() {
      for (const id of [...sandboxes.keys()]) await engine.removeSandbox(id);
    },
    async [Symbol.asyncDispose]() {
      for (const run of runs.values()) run.dispose();
      listeners.clear();
    },

    output: (id) => runs.get(id)?.output ?? [],
    crash: (id, exitCode = 137, reason) => running(id).end(exitCode, reason),
    loseSandbox: (id) => stopSandbox(id),
  };
  return engine;
}

function checkRuntime(config: SandboxConfig): void {
  if (config.runtimeHandler && config.runtimeHandler !== "fake") {
    throw new EngineError("unknown-runtime", `no runtime for "${config.runtimeHandler}" is configured`);
  }
}

function defaultScript(
  config: { command?: readonly string[]; args?: readonly string[] },
  image: { Entrypoint?: readonly string[]; Cmd?: readonly string[] },
) {
  const command = config.command ?? image.Entrypoint ?? [];
  const args = config.args ?? (config.command ? [] : (image.Cmd ?? []));
  const whole = [...command, ...args];
  return whole.length === 0 ? {} : scriptOfCommand(whole);
}

/** True when the container ended first. */
async function waitOrExit(clock: Clock, run: FakeRun, ms: number): Promise<boolean> {
  if (ms <= 0) return false;
  const done = Promise.withResolvers<boolean>();
  const timer = Number.isFinite(ms) ? clock.setTimer(() => done.resolve(false), ms) : undefined;
  void run.exited.then(() => done.resolve(true));
  const ended = await done.promise;
  timer?.clear();
  return ended;
}

function fakeSession(
  clock: Clock,
  plan: FakeExec,
  run: FakeRun,
  request: { stdin: boolean; stdout: boolean; stderr: boolean; tty: boolean },
): EngineSession {
  const stdout = request.stdout ? new Readable({ read() {} }) : null;
  const stderr = request.stderr && !request.tty ? new Readable({ read() {} }) : null;
  const closed = Promise.withResolvers<"closed">();
  const finish = async () => {
    const ended = await Promise.race([waitOrExit(clock, run, plan.afterMs ?? 0), closed.promise]);
    if (plan.stdout) stdout?.push(plan.stdout);
    if (plan.stderr) (stderr ?? stdout)?.push(plan.stderr);
    stdout?.push(null);
    stderr?.push(null);
    return { exitCode: ended ? 137 : (plan.exitCode ?? 0) };
  };
  return {
    stdin: request.stdin ? new Writable({ write: (_chunk, _encoding, done) => done() }) : null,
    stdout,
    stderr,
    resize() {},
    done: finish(),
    close: () => closed.resolve("closed"),
  };
}

/** Pod addresses below a prefix of two or three numbers, lowest free one first, .0 and .1 left out. */
function createAddresses(prefix: string): { take(): string; release(ip: string): void } {
  const numbers = prefix.split(".").length;
  const free: number[] = [];
  let next = 2;
  return {
    take() {
      const number = free.shift() ?? next++;
      if (numbers === 3) return `${prefix}.${number}`;
      return `${prefix}.${Math.floor(number / 250)}.${(number % 250) + (number < 250 ? 0 : 2)}`;
    },
    release(ip) {
      const [a = 0, b = 0] = numbers === 3 ? [0, Number(ip.split(".")[3])] : ip.split(".").slice(2).map(Number);
      free.push(a * 250 + b - (a > 0 ? 2 : 0));
    },
  };
}
