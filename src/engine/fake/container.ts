import { appendFileSync, mkdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { dirname } from "node:path";
import { type Clock, hasCode, type Timer } from "#base";
import type { ContainerConfig, ContainerStatus, ImageStatus, LinuxResources } from "../port.ts";
import type { FakeScript } from "./script.ts";

/** 128 + signal, as a shell reports it. */
export function exitCodeOf(signal: string): number {
  const name = signal.startsWith("SIG") ? signal : `SIG${signal}`;
  return 128 + (constants.signals[name as NodeJS.Signals] ?? Number(signal));
}

export interface FakeRun {
  readonly id: string;
  readonly sandboxId: string;
  readonly script: FakeScript;
  readonly output: { stream: "stdout" | "stderr"; text: string; at: number }[];
  execs: number;
  status(): ContainerStatus;
  /** @throws never; a start that fails ends it as `StartError`. */
  start(): Promise<string | undefined>;
  /** Resolves when it has ended. */
  readonly exited: Promise<void>;
  signal(name: string): void;
  /** Ends it at once, as a kill from outside the script. */
  end(exitCode: number, reason?: string): void;
  update(resources: LinuxResources): void;
  dispose(): void;
}

export interface FakeRunDeps {
  readonly clock: Clock;
  readonly logFiles: boolean;
  changed(type: "container-started" | "container-exited"): void;
  nextPid(): number;
}

export function createFakeRun(
  deps: FakeRunDeps,
  options: { id: string; sandboxId: string; config: ContainerConfig; image: ImageStatus; script: FakeScript },
): FakeRun {
  const { clock } = deps;
  const { id, sandboxId, config, image, script } = options;
  const timers = new Set<Timer>();
  const exited = Promise.withResolvers<void>();
  const output: FakeRun["output"] = [];
  const createdAt = clock.now();
  let resources = config.resources;
  let current: ContainerStatus;
  const set = (change: Partial<ContainerStatus>) => {
    current = { ...current, ...change, resources };
  };
  current = { id, sandboxId, config, state: "created", createdAt, imageId: image.id, pid: 0, resources };

  const later = (fn: () => void, ms: number) => {
    const timer = clock.setTimer(() => {
      timers.delete(timer);
      fn();
    }, ms);
    timers.add(timer);
  };
  const end = (exitCode: number, reason?: string, message?: string) => {
    if (current.state === "exited") return;
    for (const timer of timers) timer.clear();
    timers.clear();
    set({
      state: "exited",
      exitCode,
      finishedAt: clock.now(),
      reason: reason ?? (exitCode === 0 ? "Completed" : "Error"),
      ...(message ? { message } : {}),
      pid: 0,
    });
    exited.resolve();
    deps.changed("container-exited");
  };
  const write = (line: { stream?: "stdout" | "stderr"; text: string }) => {
    const stream = line.stream ?? "stdout";
    output.push({ stream, text: line.text, at: clock.now() });
    if (!deps.logFiles) return;
    const record = `${new Date(clock.now()).toISOString().replace("Z", "000000Z")} ${stream} F ${line.text}\n`;
    append(record);
  };
  // At once, so that whoever sees the end sees all lines; a log directory that was removed loses them, as it would with a real engine.
  const append = (text: string) => {
    try {
      appendFileSync(config.logPath, text);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw error;
    }
  };
  if (deps.logFiles) {
    mkdirSync(dirname(config.logPath), { recursive: true });
    append("");
  }

  const stopName = () => (config.stopSignal ?? image.config.StopSignal ?? "SIGTERM").replace(/^SIG/, "");
  return {
    id,
    sandboxId,
    script,
    output,
    execs: 0,
    exited: exited.promise,
    status: () => current,
    async start() {
      if (script.startMs) await clock.sleep(script.startMs);
      if (current.state !== "created") return undefined;
      if (script.startError !== undefined) {
        set({ startedAt: clock.now() });
        end(128, "StartError", script.startError);
        return script.startError;
      }
      const uid = config.security.runAsUser ?? image.uid ?? 0;
      const gid = config.security.runAsGroup ?? 0;
      const groups = [...new Set([gid, ...config.security.supplementalGroups])];
      set({
        state: "running",
        startedAt: clock.now(),
        pid: deps.nextPid(),
        user: { uid, gid, supplementalGroups: groups },
      });
      await writeFiles(config, script.writes ?? {});
      for (const line of script.output ?? []) line.atMs ? later(() => write(line), line.atMs) : write(line);
      if (script.runMs !== undefined || script.oomKilled) {
        const finish = () => (script.oomKilled ? end(137, "OOMKilled") : end(script.exitCode ?? 0));
        later(finish, script.runMs ?? 0);
      }
      deps.changed("container-started");
      return undefined;
    },
    signal(name) {
      if (current.state !== "running") return;
      const signal = name.replace(/^SIG/, "");
      if (signal === "KILL") return end(137);
      if (signal !== stopName() && signal !== "TERM" && signal !== "INT") return;
      if (script.onStop === "ignore") return;
      const { exitCode = exitCodeOf(signal), afterMs = 0 } = script.onStop ?? {};
      if (afterMs > 0) later(() => end(exitCode), afterMs);
      else end(exitCode);
    },
    end: (exitCode, reason) => end(exitCode, reason),
    update(change) {
      resources = { ...resources, ...change };
      set({});
    },
    dispose() {
      for (const timer of timers) timer.clear();
      timers.clear();
    },
  };
}

/** Files land in the mount that covers their path; elsewhere there is no file system to hold them. */
async function writeFiles(config: ContainerConfig, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const mount = config.mounts
      .filter((m) => path === m.containerPath || path.startsWith(`${m.containerPath}/`))
      .sort((a, b) => b.containerPath.length - a.containerPath.length)[0];
    if (!mount || mount.readOnly) continue;
    const host = `${mount.hostPath}${path.slice(mount.containerPath.length)}`;
    await mkdir(dirname(host), { recursive: true });
    await writeFile(host, text);
  }
}
