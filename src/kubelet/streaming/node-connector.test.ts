import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext } from "node:test";
import { silentLogger, systemClock } from "#base";
import type { ContainerStatus, Engine, EngineEvent, EngineSession, SandboxStatus } from "#engine";
import type { ContainerStatus as ApiStatus, LogOptions, Pod } from "#kinds";
import { createNodeConnector } from "./node-connector.ts";
import { parseNetDev } from "./usage.ts";

const REF = { namespace: "ns", name: "p", uid: "u1" };
const LOGS: LogOptions = { container: "c", follow: false, previous: false, timestamps: false };

async function bench(
  t: TestContext,
  status: Partial<ApiStatus> | undefined,
  state: ContainerStatus["state"] = "running",
) {
  const directory = await mkdtemp(join(tmpdir(), "slim-connector-"));
  t.after(() => rm(directory, { recursive: true }));
  const logPath = join(directory, "0.log");
  await writeFile(logPath, "2026-01-01T00:00:01Z stdout F hello\n");
  const labels = { "io.kubernetes.pod.uid": "u1", "io.kubernetes.container.name": "c" };
  const container = {
    id: "id1",
    sandboxId: "s1",
    state,
    createdAt: 0,
    startedAt: 1000,
    config: { logPath, labels, tty: false, imageRef: "img" },
  };
  const known = new Map([["id1", container as unknown as ContainerStatus]]);
  const listeners = new Set<(event: EngineEvent) => void>();
  const calls: unknown[] = [];
  const session = (): EngineSession => ({
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    resize: (size) => void calls.push(["resize", size]),
    done: Promise.resolve({ exitCode: 3 }),
    close: () => void calls.push(["close"]),
  });
  const fault: { exec?: Error; connect?: Error } = {};
  const engine = {
    info: { scheme: "slim" },
    containers: () => [...known.values()],
    sandboxes: () => [{ state: "ready" }],
    container: (id: string) => known.get(id),
    images: { usage: async () => ({ usedBytes: 1, capacityBytes: 3, availableBytes: 2 }) },
    stats: async () => ({
      cpuUsageNanoseconds: 2e9,
      memoryWorkingSetBytes: 7,
      memoryUsageBytes: 8,
      memoryRssBytes: 6,
      pids: 1,
    }),
    onEvent(listener: (event: EngineEvent) => void) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    async exec(id: string, options: unknown) {
      if (fault.exec) throw fault.exec;
      calls.push(["exec", id, options]);
      return session();
    },
    async attach(id: string, options: unknown) {
      calls.push(["attach", id, options]);
      return session();
    },
    async connect(id: string, port: number) {
      if (fault.connect) throw fault.connect;
      calls.push(["connect", id, port]);
      return new PassThrough();
    },
  };
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: REF,
    spec: { containers: [{ name: "c", image: "img" }] },
    ...(status
      ? {
          status: {
            containerStatuses: [{ name: "c", image: "img", imageID: "", ready: false, restartCount: 0, ...status }],
          },
        }
      : {}),
  };
  const sandbox = { id: "s1", state: "ready", netnsPath: "/run/netns/x" } as unknown as SandboxStatus;
  const connector = createNodeConnector(
    {
      engine: engine as unknown as Engine,
      clock: systemClock,
      logger: silentLogger,
      runtime: {
        pod: ({ name }) => (name === "p" ? pod : undefined),
        pods: () => [pod],
        sandbox: () => sandbox,
        container: (_uid, name, options) => (name === "c" && !options?.previous ? known.get("id1") : undefined),
      },
    },
    { nodeName: "node-a", configuration: { maxPods: 110 }, hostLogs: directory },
  );
  const logs = async (options: Partial<LogOptions> = {}) =>
    text(await connector.logs(REF, { ...LOGS, ...options }, new AbortController().signal));
  return { connector, logs, calls, fault, known, logPath, listeners, container, directory };
}
const running = { state: { running: { startedAt: "" } }, containerID: "slim://id1" };

describe("logs()", () => {
  it("of a running container", async (t) => assert.equal(await (await bench(t, running)).logs(), "hello\n"));
  it("of one that has ended and waits", async (t) => {
    const lastState = { terminated: { exitCode: 1, containerID: "slim://id1" } };
    const b = await bench(t, { state: { waiting: { reason: "CrashLoopBackOff" } }, lastState }, "exited");
    assert.equal(await b.logs(), "hello\n");
    assert.equal(await b.logs({ previous: true }), "hello\n");
  });
  it("of one that the status does not show running yet", async (t) =>
    assert.equal(await (await bench(t, { state: { waiting: { reason: "ContainerCreating" } } })).logs(), "hello\n"));
  it("of one that the engine has forgotten", async (t) => {
    const b = await bench(t, running);
    b.known.clear();
    assert.equal(await b.logs(), "unable to retrieve container logs for slim://id1");
  });
  it("follow until the container ends", async (t) => {
    const b = await bench(t, running);
    const all = b.logs({ follow: true });
    await systemClock.sleep(20);
    await appendFile(b.logPath, "2026-01-01T00:00:02Z stdout F bye\n");
    b.container.state = "exited";
    for (const listener of b.listeners) listener({ type: "container-exited", sandboxId: "s1", containerId: "id1" });
    assert.equal(await all, "hello\nbye\n");
    assert.equal(b.listeners.size, 0);
  });

  const waiting = (reason: string): Partial<ApiStatus> => ({ state: { waiting: { reason } } });
  const faults: [string, Partial<ApiStatus> | undefined, Partial<LogOptions>, string][] = [
    ["waiting", waiting("ContainerCreating"), {}, 'container "c" in pod "p" is waiting to start: ContainerCreating'],
    ["no image", waiting("ErrImagePull"), {}, `container "c" in pod "p" is waiting to start: image can't be pulled`],
    [
      "image back-off",
      waiting("ImagePullBackOff"),
      {},
      'container "c" in pod "p" is waiting to start: trying and failing to pull image',
    ],
    ["no previous", running, { previous: true }, 'previous terminated container "c" in pod "p" not found'],
    ["no status", undefined, {}, 'container "c" in pod "p" is not available'],
    ["unknown container", running, { container: "x" }, "container x is not valid for pod p"],
  ];
  for (const [name, status, options, message] of faults) {
    it(`refuses: ${name}`, async (t) => {
      const b = await bench(t, status, "created");
      await assert.rejects(b.logs(options), { code: 400, reason: "BadRequest", message });
    });
  }
});

describe("exec(), attach(), portForward()", () => {
  const options = { command: ["sh"], stdin: true, stdout: true, stderr: true, tty: false };
  it("reach the container", async (t) => {
    const b = await bench(t, running);
    const session = await b.connector.exec(REF, "c", options);
    session.resize({ width: 1, height: 2 });
    assert.deepEqual(await session.done, { exitCode: 3 });
    await b.connector.portForward(REF, 80);
    assert.deepEqual(b.calls, [
      ["exec", "id1", options],
      ["resize", { width: 1, height: 2 }],
      ["connect", "s1", 80],
    ]);
  });
  it("attach gives only the streams that were asked for", async (t) => {
    const b = await bench(t, running);
    const session = await b.connector.attach(REF, "c", { stdin: false, stdout: true, stderr: false, tty: true });
    assert.deepEqual([session.stdin, session.stdout === null, session.stderr], [null, false, null]);
    // The terminal is the container's, not the caller's, choice.
    assert.deepEqual(b.calls, [["attach", "id1", { stdin: false, tty: false }]]);
  });
  it("name what cannot be reached", async (t) => {
    const b = await bench(t, running, "exited");
    await assert.rejects(b.connector.exec(REF, "c", options), {
      message: 'unable to upgrade connection: container not found ("c")',
    });
    await assert.rejects(b.connector.attach(REF, "c", options), {
      message: "unable to upgrade connection: container c not found in pod p_ns",
    });
    await assert.rejects(b.connector.exec({ ...REF, name: "q" }, "c", options), {
      code: 404,
      message: 'pods "q" not found',
    });
    await assert.rejects(b.connector.exec({ ...REF, uid: "other" }, "c", options), { code: 404 });
  });
  it("tell why a command cannot be started", async (t) => {
    const b = await bench(t, running);
    b.fault.exec = new Error('exec: "nosuch": executable file not found in $PATH');
    await assert.rejects(b.connector.exec(REF, "c", options), {
      reason: "InternalError",
      message:
        'Internal error occurred: Internal error occurred: error executing command in container: failed to exec in container: exec: "nosuch": executable file not found in $PATH',
    });
  });
  it("tell why a port cannot be reached", async (t) => {
    const b = await bench(t, running);
    b.fault.connect = new Error("connect ECONNREFUSED 127.0.0.1:81");
    await assert.rejects(b.connector.portForward(REF, 81), /error forwarding port 81 to pod s1.*ECONNREFUSED/);
  });
});

describe("proxy()", () => {
  const get = async (b: Awaited<ReturnType<typeof bench>>, path: string, query = "") => {
    const { code, contentType, body } = await b.connector.proxy(path, new URLSearchParams(query));
    return { code, contentType, body: body.toString() };
  };
  it("has the pages of a kubelet", async (t) => {
    const b = await bench(t, running);
    assert.deepEqual(await get(b, "healthz"), { code: 200, contentType: "text/plain; charset=utf-8", body: "ok" });
    assert.deepEqual(JSON.parse((await get(b, "/configz")).body), { kubeletconfig: { maxPods: 110 } });
    assert.equal(JSON.parse((await get(b, "pods/")).body).items[0].metadata.name, "p");
    const summary = JSON.parse((await get(b, "stats/summary")).body);
    assert.equal(summary.pods[0].containers[0].cpu.usageCoreNanoSeconds, 2e9);
    assert.equal(summary.node.runtime.imageFs.capacityBytes, 3);
    assert.equal(JSON.parse((await get(b, "stats/summary", "only_cpu_and_memory=true")).body).node.fs, undefined);
    const metrics = (await get(b, "metrics/resource")).body;
    assert.match(metrics, /^container_cpu_usage_seconds_total\{container="c",namespace="ns",pod="p"\} 2 \d+$/m);
    assert.match(metrics, /^pod_memory_working_set_bytes\{namespace="ns",pod="p"\} 7 \d+$/m);
    assert.match(
      (await get(b, "metrics/cadvisor")).body,
      /^container_memory_rss\{container="c",id="\/id1",image="img",name="id1",namespace="ns",pod="p"\} 6 \d+$/m,
    );
    assert.match((await get(b, "metrics")).body, /^kubelet_running_containers\{container_state="running"\} 1$/m);
    await assert.rejects(get(b, "nope"), { code: 404, message: "the server could not find the requested resource" });
  });
  it("shows logs of the host and nothing else", async (t) => {
    const b = await bench(t, running);
    await mkdir(join(b.directory, "sub"));
    assert.match((await get(b, "logs/")).body, /<a href="0.log">0.log<\/a>\n<a href="sub\/">sub\/<\/a>/);
    assert.match((await get(b, "logs/0.log")).body, /hello/);
    for (const path of ["logs/../x", "logs/nope", "logs//etc/../../etc/passwd"])
      await assert.rejects(get(b, path), { code: 404 });
  });
});

describe("parseNetDev()", () => {
  it("reads all interfaces but loopback", () => {
    const dev =
      "Inter-|   Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 10 1 2 0 0 0 0 0 20 1 3 0 0 0 0 0\n";
    assert.deepEqual(parseNetDev(dev), [{ name: "eth0", rxBytes: 10, rxErrors: 2, txBytes: 20, txErrors: 3 }]);
  });
});
