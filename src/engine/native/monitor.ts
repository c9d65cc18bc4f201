import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "#base";
import type { Launched, Launcher } from "./sys/launcher.ts";

export interface MonitorOptions {
  readonly conmon: string;
  readonly runtime: string;
  readonly runtimeRoot: string;
  readonly id: string;
  readonly bundle: string;
  readonly logPath: string;
  readonly exits: string;
  readonly persist: string;
  readonly sockets: string;
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
}

export interface Monitored {
  /** The container's main process, created but not started. */
  readonly pid: number;
  readonly monitorPid: number;
  /** Resolves when conmon has ended, which it does after it has written the exit file. */
  readonly ended: Promise<void>;
}

/**
 * Starts conmon, which creates the container and stays to hold its output, its terminal and its exit code; it is nobody's
 * business whether this process lives on. @throws Error with what the runtime said
 */
export async function startMonitor(launcher: Launcher, options: MonitorOptions): Promise<Monitored> {
  const directory = join(options.persist, options.id);
  mkdirSync(directory, { recursive: true });
  const child = launcher.launch(options.conmon, conmonArguments(options), {
    channels: ["null", "null", "read", "read", "write"],
    // conmon leaves a file `oom` in its working directory, which else is that of the program that embeds the engine
    cwd: directory,
    env: {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      _OCI_SYNCPIPE: "3",
      _OCI_STARTPIPE: "4",
    },
  });
  try {
    const pid = await createdAnswer(child);
    return { pid, monitorPid: child.pid, ended: child.exited.then(() => {}) };
  } finally {
    for (const stream of child.streams) stream?.destroy();
  }
}

function conmonArguments(options: MonitorOptions): string[] {
  return [
    "--api-version",
    "1",
    "--sync",
    "--no-sync-log",
    "-c",
    options.id,
    "-u",
    socketName(options.id),
    "-n",
    options.id,
    "-r",
    options.runtime,
    "--runtime-arg",
    `--root=${options.runtimeRoot}`,
    "-b",
    options.bundle,
    "-p",
    join(options.bundle, "pidfile"),
    "-P",
    join(options.bundle, "conmon.pid"),
    "-l",
    `k8s-file:${options.logPath}`,
    "--log-level",
    "error",
    "--exit-dir",
    options.exits,
    "--persist-dir",
    join(options.persist, options.id),
    "--socket-dir-path",
    options.sockets,
    ...(options.tty ? ["-t"] : []),
    ...(options.stdin ? ["-i"] : []),
    ...(options.stdin && !options.stdinOnce ? ["--leave-stdin-open"] : []),
  ];
}

/** A unix socket's path has at most 107 bytes, so the attach sockets have shorter names than containers. */
export function socketName(id: string): string {
  return id.slice(0, 20);
}

/** Lets the creation begin and waits for `{"data":PID}` or `{"data":-1,"message":…}`. */
function createdAnswer({ streams, exited }: Launched): Promise<number> {
  const [, , stderr, sync, start] = streams;
  let text = "";
  let errors = "";
  return new Promise((resolve, reject) => {
    const settle = () => {
      const line = text.split("\n").find((candidate) => candidate.trim() !== "");
      if (line === undefined) return reject(new Error(errors.trim() || "conmon ended without an answer"));
      const answer = JSON.parse(line) as { data: number; message?: string };
      if (answer.data > 0) resolve(answer.data);
      else reject(new Error(answer.message?.trim() || errors.trim() || "the runtime did not say why"));
    };
    stderr!.on("data", (chunk: Buffer) => {
      errors += chunk.toString("utf8");
    });
    sync!.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
      if (text.includes("\n")) settle();
    });
    sync!.on("end", settle);
    exited.catch(reject);
    for (const stream of [stderr, sync, start]) stream!.on("error", () => {}); // it ended: its answer or exit tells
    start!.end("\0");
  });
}

/** The exit code that conmon wrote, 128 + signal for a killed process; undefined while it runs or when conmon was killed. */
export function readExit(exits: string, id: string): number | undefined {
  try {
    const text = readFileSync(join(exits, id), "utf8").trim();
    return /^-?\d+$/.test(text) ? Number(text) : undefined;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
