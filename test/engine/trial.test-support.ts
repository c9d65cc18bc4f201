import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ContainerConfig, Engine, ExecResult, SandboxConfig } from "#engine";
import type { NativeEngineOptions } from "#engine/native";
import { containerConfig, exitOf, sandboxConfig } from "../../src/engine/contract.test-support.ts";
import { type NativeSubject, openNative } from "./native.test-support.ts";

export const IMAGE = "slim/busybox:latest";

export interface Trial extends NativeSubject {
  sandbox(changes?: Partial<SandboxConfig>): Promise<string>;
  create(sandboxId: string, command: readonly string[], changes?: Partial<ContainerConfig>): Promise<string>;
  run(sandboxId: string, command: readonly string[], changes?: Partial<ContainerConfig>): Promise<string>;
  /** Runs a shell script in a running container; demands exit code 0 and gives its output without the last newline. */
  sh(id: string, script: string, engine?: Engine): Promise<string>;
  /** Runs a shell script as a container of its own to its end. */
  once(script: string, changes?: Partial<ContainerConfig>, sandbox?: Partial<SandboxConfig>): Promise<ExecResult>;
}

/** A test with a native engine of its own, which is purged afterwards. */
export function trial(
  title: string,
  body: (t: Trial, context: TestContext) => Promise<void>,
  options: Partial<NativeEngineOptions> = {},
): void {
  test(title, async (context) => {
    const subject = await openNative(options);
    const keepAlive = setInterval(() => {}, 1000); // engines never keep a process alive by themselves
    try {
      await body(trialOf(subject), context);
    } finally {
      await subject.dispose();
      clearInterval(keepAlive);
    }
  });
}

function trialOf(subject: NativeSubject): Trial {
  const { engine, logDirectory } = subject;
  let serial = 0;
  const sandbox: Trial["sandbox"] = async (changes) =>
    (await engine.runSandbox(sandboxConfig(logDirectory, { uid: `uid-${serial++}`, ...changes }))).id;
  const create: Trial["create"] = (sandboxId, command, changes) =>
    engine.createContainer(
      sandboxId,
      containerConfig(IMAGE, logDirectory, command, { name: `c${serial++}`, ...changes }),
    );
  const run: Trial["run"] = async (sandboxId, command, changes) => {
    const id = await create(sandboxId, command, changes);
    await engine.startContainer(id);
    return id;
  };
  const sh: Trial["sh"] = async (id, script, other = engine) => {
    const result = await other.execSync(id, { command: ["sh", "-c", script], timeoutMs: 10_000 });
    assert.equal(result.exitCode, 0, `${script}: ${result.stdout}${result.stderr}`);
    return result.stdout.replace(/\n$/, "");
  };
  return {
    ...subject,
    sandbox,
    create,
    run,
    sh,
    async once(script, changes, sandboxChanges) {
      const { readFile } = await import("node:fs/promises");
      const id = await run(await sandbox(sandboxChanges), ["sh", "-c", script], changes);
      const status = await exitOf(engine, id);
      const lines = (await readFile(status.config.logPath, "utf8")).split("\n").map((line) => line.split(" "));
      // a line that was written in pieces is logged in pieces, tagged P but for the last
      const of = (wanted: string) =>
        lines
          .filter(([, stream]) => stream === wanted)
          .map(([, , tag, ...words]) => words.join(" ") + (tag === "F" ? "\n" : ""))
          .join("")
          .replace(/\n$/, "");
      return { exitCode: status.exitCode ?? -1, stdout: of("stdout"), stderr: of("stderr"), timedOut: false };
    },
  };
}

export const SECURITY = {
  privileged: false,
  supplementalGroups: [],
  addCapabilities: [],
  dropCapabilities: [],
  readOnlyRootfs: false,
  noNewPrivileges: false,
  seccomp: "unconfined",
} as const;
