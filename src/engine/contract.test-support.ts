import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { isEngineError } from "./errors.ts";
import type { ContainerConfig, ContainerStatus, Engine, EngineEvent, SandboxConfig } from "./port.ts";

/** One engine under test, empty, and what is needed to try it. */
export interface ContractSubject {
  readonly engine: Engine;
  /** A new, absolute directory for logs. */
  readonly logDirectory: string;
  /** Closes the engine without stopping anything and opens another one on the same state. */
  reopen?(): Promise<Engine>;
  dispose(): Promise<void>;
}

export interface ContractOptions {
  /** An image with `sh`, `sleep`, `echo`, `cat` that is there from the start. */
  readonly image: string;
  /** What this adapter cannot do, with the reason; those tests are skipped and say it. */
  readonly skip?: Partial<Record<ContractFeature, string>>;
}

/** `files`: logs are files. `exec`: commands really run. `restart`: state survives the process. */
export type ContractFeature = "files" | "exec" | "restart";

/** Every adapter of the engine port passes these tests. */
export function engineContract(name: string, open: () => Promise<ContractSubject>, options: ContractOptions): void {
  const it = (title: string, body: (subject: Trial) => Promise<void>, feature?: ContractFeature) => {
    const skip = feature === undefined ? undefined : options.skip?.[feature];
    test(`${name}: ${title}`, skip === undefined ? {} : { skip }, async () => {
      const subject = await open();
      const keepAlive = setInterval(() => {}, 1000); // engines never keep a process alive by themselves
      try {
        await body(trialOf(subject, options.image));
      } finally {
        clearInterval(keepAlive);
        await subject.dispose();
      }
    });
  };
  sandboxTests(it);
  containerTests(it);
  streamTests(it);
  restartTests(it);
}

type It = (title: string, body: (trial: Trial) => Promise<void>, feature?: ContractFeature) => void;

/** Short ways to say what the tests do. */
interface Trial extends ContractSubject {
  readonly image: string;
  sandbox(changes?: Partial<SandboxConfig>): Promise<string>;
  /** Created, not started. */
  create(sandboxId: string, command: readonly string[], changes?: Partial<ContainerConfig>): Promise<string>;
  /** Created and started. */
  run(sandboxId: string, command: readonly string[], changes?: Partial<ContainerConfig>): Promise<string>;
  /** Waits until the container is `exited`. */
  exited(id: string, engine?: Engine): Promise<ContainerStatus>;
}

function sandboxTests(it: It): void {
  it("a sandbox is ready with an address of its own and is listed", async ({ engine, sandbox }) => {
    const [one, two] = [await sandbox({ uid: "one" }), await sandbox({ uid: "two" })];
    const [first, second] = engine.sandboxes();
    assert.deepEqual([first?.id, second?.id], [one, two]);
    assert.equal(first?.state, "ready");
    assert.match(first?.ips[0] ?? "", /^\d+\.\d+\.\d+\.\d+$/);
    assert.notEqual(first?.ips[0], second?.ips[0]);
  });

  it("a sandbox on the host's network has no address", async ({ engine, sandbox }) => {
    const id = await sandbox({ namespaces: { network: "node", pid: "container", ipc: "node" } });
    assert.deepEqual(engine.sandboxes().find((s) => s.id === id)?.ips, []);
  });

  it("stopping a sandbox kills its containers; stopping twice and removing twice succeed", async (t) => {
    const sandboxId = await t.sandbox();
    const id = await t.run(sandboxId, ["sleep", "1000"]);
    await t.engine.stopSandbox(sandboxId);
    await t.engine.stopSandbox(sandboxId);
    assert.equal(t.engine.container(id)?.state, "exited");
    assert.equal(t.engine.container(id)?.exitCode, 137);
    assert.equal(t.engine.sandboxes()[0]?.state, "not-ready");
    await t.engine.removeSandbox(sandboxId);
    await t.engine.removeSandbox(sandboxId);
    assert.deepEqual(t.engine.sandboxes(), []);
    assert.deepEqual(t.engine.containers(), []);
  });

  it("removing a sandbox that runs removes everything in it", async (t) => {
    const sandboxId = await t.sandbox();
    await t.run(sandboxId, ["sleep", "1000"]);
    await t.create(sandboxId, ["sleep", "1000"], { name: "other" });
    await t.engine.removeSandbox(sandboxId);
    assert.deepEqual([t.engine.sandboxes(), t.engine.containers()], [[], []]);
  });

  it("an unknown runtime handler is refused", async ({ sandbox }) => {
    await assert.rejects(sandbox({ runtimeHandler: "no-such-runtime" }), (error) =>
      isEngineError(error, "unknown-runtime"),
    );
  });

  it("no container is made in a sandbox that is stopped or unknown", async (t) => {
    const sandboxId = await t.sandbox();
    await t.engine.stopSandbox(sandboxId);
    await assert.rejects(t.create(sandboxId, ["sleep", "1"]), (error) => isEngineError(error));
    await assert.rejects(t.create("no-such-sandbox", ["sleep", "1"]), (error) => isEngineError(error, "not-found"));
  });
}

function containerTests(it: It): void {
  it("a container goes through created, running and exited", async (t) => {
    const sandboxId = await t.sandbox();
    const id = await t.create(sandboxId, ["sleep", "1000"]);
    const created = t.engine.container(id);
    assert.deepEqual([created?.state, created?.sandboxId, created?.pid], ["created", sandboxId, 0]);
    assert.match(created?.imageId ?? "", /^sha256:[0-9a-f]{64}$/);
    await t.engine.startContainer(id);
    const running = t.engine.container(id);
    assert.equal(running?.state, "running");
    assert.ok(running.pid > 0);
    assert.ok((running.startedAt ?? 0) >= running.createdAt);
    await t.engine.signalContainer(id, "KILL");
    const exited = await t.exited(id);
    assert.deepEqual([exited?.state, exited?.exitCode, exited?.reason, exited?.pid], ["exited", 137, "Error", 0]);
    assert.ok((exited?.finishedAt ?? 0) >= (exited?.startedAt ?? 0));
  });

  for (const [code, reason] of [
    [0, "Completed"],
    [3, "Error"],
  ] as const) {
    it(`exit code ${code} is ${reason}`, async (t) => {
      const id = await t.run(await t.sandbox(), ["sh", "-c", `exit ${code}`]);
      const status = await t.exited(id);
      assert.deepEqual([status.exitCode, status.reason], [code, reason]);
    });
  }

  it("what was started once is not started again", async (t) => {
    const id = await t.run(await t.sandbox(), ["sh", "-c", "exit 0"]);
    await t.exited(id);
    await assert.rejects(t.engine.startContainer(id), (error) => isEngineError(error, "start-failed"));
    assert.equal(t.engine.container(id)?.exitCode, 0);
  });

  it("stopping and removing what is gone succeed; naming what never was does not", async (t) => {
    const id = await t.run(await t.sandbox(), ["sh", "-c", "exit 0"]);
    await t.exited(id);
    await t.engine.stopContainer(id, { graceMs: 1000 });
    await t.engine.removeContainer(id);
    await t.engine.removeContainer(id);
    await t.engine.stopContainer(id, { graceMs: 1000 });
    assert.equal(t.engine.container(id), undefined);
    await assert.rejects(t.engine.startContainer("no-such-container"), (error) => isEngineError(error, "not-found"));
    await assert.rejects(t.engine.signalContainer("no-such-container", "TERM"), (error) =>
      isEngineError(error, "not-found"),
    );
  });

  it("removing a running container kills it", async (t) => {
    const sandboxId = await t.sandbox();
    const id = await t.run(sandboxId, ["sleep", "1000"]);
    await t.engine.removeContainer(id);
    assert.deepEqual(t.engine.containers(), []);
    assert.equal(t.engine.sandboxes()[0]?.state, "ready");
  });

  it("an image that is not there is named", async (t) => {
    const sandboxId = await t.sandbox();
    await assert.rejects(t.create(sandboxId, ["true"], { image: "no-such-image:1" }), (error) => {
      return isEngineError(error, "image-not-found") && /no-such-image/.test(error.message);
    });
    assert.deepEqual(t.engine.containers(), []);
  });

  it("labels and annotations come back as they were given", async (t) => {
    const sandboxId = await t.sandbox({ labels: { a: "1" }, annotations: { b: "2" } });
    const id = await t.create(sandboxId, ["true"], { labels: { c: "3" }, annotations: { d: "4" } });
    const sandbox = t.engine.sandboxes()[0]?.config;
    const container = t.engine.container(id)?.config;
    assert.deepEqual(
      [sandbox?.labels, sandbox?.annotations, container?.labels, container?.annotations],
      [{ a: "1" }, { b: "2" }, { c: "3" }, { d: "4" }],
    );
  });

  it("events tell every change, and the state is there when they come", async (t) => {
    const seen: string[] = [];
    const note = (event: EngineEvent) => {
      const state = event.containerId === undefined ? "" : (t.engine.container(event.containerId)?.state ?? "gone");
      seen.push(`${event.type} ${state}`.trim());
    };
    using _ = t.engine.onEvent(note);
    const sandboxId = await t.sandbox();
    const id = await t.run(sandboxId, ["sleep", "1000"]);
    await t.engine.stopContainer(id, { graceMs: 0 });
    await t.engine.removeContainer(id);
    await t.engine.removeSandbox(sandboxId);
    assert.deepEqual(seen, [
      "sandbox-ready",
      "container-started running",
      "container-exited exited",
      "container-removed gone",
      "sandbox-stopped",
      "sandbox-removed",
    ]);
  });

  it("two calls for one container at once are put in order", async (t) => {
    const id = await t.create(await t.sandbox(), ["sleep", "1000"]);
    const started = t.engine.startContainer(id);
    const stopped = t.engine.stopContainer(id, { graceMs: 0 });
    await Promise.all([started, stopped]);
    assert.equal(t.engine.container(id)?.state, "exited");
  });
}

function streamTests(it: It): void {
  it(
    "output is in the log, one line each, in CRI form",
    async (t) => {
      const id = await t.run(await t.sandbox(), ["sh", "-c", "echo one; echo two"]);
      await t.exited(id);
      const log = await readFile(join(t.logDirectory, "main.log"), "utf8");
      const lines = log
        .trimEnd()
        .split("\n")
        .map((line) => line.split(" "));
      assert.deepEqual(
        lines.map(([, ...rest]) => rest.join(" ")),
        ["stdout F one", "stdout F two"],
      );
      for (const [time] of lines) assert.ok(!Number.isNaN(Date.parse(time ?? "")), `not a time: ${time}`);
    },
    "files",
  );

  it(
    "execSync gives output and exit code",
    async (t) => {
      const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
      const result = await t.engine.execSync(id, {
        command: ["sh", "-c", "echo out; echo err >&2; exit 4"],
        timeoutMs: 10_000,
      });
      assert.deepEqual(result, { exitCode: 4, stdout: "out\n", stderr: "err\n", timedOut: false });
    },
    "exec",
  );

  it(
    "execSync past its timeout is killed, and says so",
    async (t) => {
      const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
      const result = await t.engine.execSync(id, { command: ["sh", "-c", "echo begun; sleep 1000"], timeoutMs: 300 });
      assert.equal(result.timedOut, true);
      assert.notEqual(result.exitCode, 0);
      assert.equal(result.stdout, "begun\n");
      const left = await t.engine.execSync(id, {
        command: ["sh", "-c", "ps -o args | grep -c '^sleep 1000$'"],
        timeoutMs: 10_000,
      });
      assert.equal(left.stdout, "1\n"); // the container's own
    },
    "exec",
  );

  it(
    "exec passes input, output and the exit code on",
    async (t) => {
      const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
      const session = await t.engine.exec(id, {
        command: ["sh", "-c", "cat; exit 5"],
        stdin: true,
        stdout: true,
        stderr: true,
        tty: false,
      });
      session.stdin?.end("hello\n");
      assert.equal(await text(session.stdout!), "hello\n");
      assert.deepEqual(await session.done, { exitCode: 5 });
    },
    "exec",
  );

  it("exec into what does not run is refused", async (t) => {
    const id = await t.create(await t.sandbox(), ["sleep", "1000"]);
    const command = { command: ["true"], timeoutMs: 1000 };
    await assert.rejects(t.engine.execSync(id, command), (error) => isEngineError(error, "not-running"));
    await assert.rejects(t.engine.execSync("no-such-container", command), (error) => isEngineError(error, "not-found"));
  });
}

function restartTests(it: It): void {
  it(
    "another engine on the same state knows everything, and what runs goes on",
    async (t) => {
      const sandboxId = await t.sandbox();
      const runs = await t.run(sandboxId, ["sleep", "1000"]);
      const ended = await t.run(sandboxId, ["sh", "-c", "exit 7"], { name: "ended" });
      await t.exited(ended);
      const before = { sandboxes: t.engine.sandboxes(), runs: t.engine.container(runs) };
      await using engine = await t.reopen!();
      assert.deepEqual(
        engine.sandboxes().map((s) => [s.id, s.state, s.ips]),
        before.sandboxes.map((s) => [s.id, s.state, s.ips]),
      );
      const after = engine.container(runs);
      assert.deepEqual(
        [after?.state, after?.pid, after?.startedAt],
        ["running", before.runs?.pid, before.runs?.startedAt],
      );
      assert.deepEqual([engine.container(ended)?.state, engine.container(ended)?.exitCode], ["exited", 7]);
      await engine.stopContainer(runs, { graceMs: 0 });
      assert.equal(engine.container(runs)?.exitCode, 137);
      await engine.purge();
    },
    "restart",
  );

  it(
    "an exit code that nobody was there to see is found",
    async (t) => {
      const id = await t.run(await t.sandbox(), ["sh", "-c", "sleep 0.5; exit 9"]);
      const reopened = t.reopen!();
      await using engine = await reopened;
      const status = await t.exited(id, engine);
      assert.deepEqual([status.exitCode, status.reason], [9, "Error"]);
      await engine.purge();
    },
    "restart",
  );

  it("purge removes everything", async (t) => {
    await t.run(await t.sandbox(), ["sleep", "1000"]);
    await t.engine.purge();
    assert.deepEqual([t.engine.sandboxes(), t.engine.containers()], [[], []]);
  });
}

function trialOf(subject: ContractSubject, image: string): Trial {
  const { engine, logDirectory } = subject;
  const create: Trial["create"] = (sandboxId, command, changes) =>
    engine.createContainer(sandboxId, containerConfig(image, logDirectory, command, changes));
  return {
    ...subject,
    image,
    create,
    sandbox: async (changes) => (await engine.runSandbox(sandboxConfig(logDirectory, changes))).id,
    async run(sandboxId, command, changes) {
      const id = await create(sandboxId, command, changes);
      await engine.startContainer(id);
      return id;
    },
    exited: (id, other = engine) => exitOf(other, id),
  };
}

/** Resolves when the container has exited, by events. */
export async function exitOf(engine: Engine, id: string): Promise<ContainerStatus> {
  const target = new EventTarget();
  using _ = engine.onEvent(() => void target.dispatchEvent(new Event("change")));
  for (;;) {
    const status = engine.container(id);
    if (status?.state === "exited") return status;
    await once(target, "change", { signal: AbortSignal.timeout(15_000) });
  }
}

/** A sandbox of a pod that asks for nothing special. */
export function sandboxConfig(logDirectory: string, changes: Partial<SandboxConfig> = {}): SandboxConfig {
  return {
    name: "pod",
    namespace: "default",
    uid: "11111111-2222-3333-4444-555555555555",
    attempt: 0,
    hostname: "pod",
    labels: {},
    annotations: {},
    logDirectory,
    namespaces: { network: "pod", pid: "container", ipc: "pod" },
    sysctls: {},
    portMappings: [],
    qosClass: "BestEffort",
    resources: {},
    ...changes,
  };
}

/** A container that asks for nothing special. */
export function containerConfig(
  image: string,
  logDirectory: string,
  command: readonly string[],
  changes: Partial<ContainerConfig> = {},
): ContainerConfig {
  return {
    name: "main",
    attempt: 0,
    image,
    imageRef: image,
    command,
    env: [],
    mounts: [],
    labels: {},
    annotations: {},
    logPath: join(logDirectory, `${changes.name ?? "main"}.log`),
    stdin: false,
    stdinOnce: false,
    tty: false,
    resources: {},
    security: {
      privileged: false,
      supplementalGroups: [],
      addCapabilities: [],
      dropCapabilities: [],
      readOnlyRootfs: false,
      noNewPrivileges: false,
      seccomp: "unconfined",
    },
    ...changes,
  };
}
