import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Libc } from "./libc.ts";

/** What a descriptor of the new process is: nothing, a pipe that we read from, or one that we write to. */
export type Channel = "null" | "read" | "write";

export interface Launched {
  readonly pid: number;
  /** Our ends, by descriptor. */
  readonly streams: readonly (Duplex | null)[];
  /** Exit code, or 128 + signal. */
  readonly exited: Promise<number>;
}

export interface LaunchOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly channels: readonly Channel[];
  /** Default: this process's own. */
  readonly cwd?: string;
}

/** Starts programs whose course is followed: monitors and execs. */
export interface Launcher extends Disposable {
  /** At most eight channels. @throws Error when the program can't be started */
  launch(program: string, args: readonly string[], options: LaunchOptions): Launched;
}

/** Each program gets a session of its own. None of it keeps this process alive by itself. */
export function createLauncher(libc: Libc | undefined): Launcher {
  return libc ? bySpawnCall(libc) : byNode();
}

function bySpawnCall(libc: Libc): Launcher {
  const running = new Map<number, (code: number) => void>();
  const nothing = aboveChannels(() => openSync("/dev/null", "r+"));
  /** Node reaps only what it started itself, so these children are ours to reap. */
  const reap = () => {
    for (const [pid, ended] of running) {
      const status = libc.waitStatus(pid);
      if (status === undefined) continue;
      running.delete(pid);
      ended((status & 0x7f) === 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f));
    }
    if (disposed && running.size === 0) removeReaper(reap);
  };
  let disposed = false;
  addReaper(reap);
  return {
    launch(program, args, { env, channels, cwd }) {
      const theirs: number[] = [];
      const streams: (Socket | null)[] = [];
      try {
        for (const channel of channels) {
          if (channel === "null") {
            theirs.push(nothing);
            streams.push(null);
            continue;
          }
          const [readEnd, writeEnd] = libc.pipe();
          theirs.push(aboveChannels(() => (channel === "read" ? writeEnd : readEnd)));
          streams.push(
            new Socket({
              fd: channel === "read" ? readEnd : writeEnd,
              readable: channel === "read",
              writable: channel === "write",
            }),
          );
        }
        const pid = libc.spawn(program, args, {
          env,
          descriptors: theirs,
          newSession: true,
          ...(cwd === undefined ? {} : { cwd }),
        });
        const exited = new Promise<number>((resolve) => running.set(pid, resolve));
        return { pid, streams, exited };
      } catch (error) {
        for (const stream of streams) stream?.destroy();
        throw error;
      } finally {
        for (const fd of theirs) if (fd !== nothing) closeSync(fd);
      }
    },
    [Symbol.dispose]() {
      disposed = true;
      closeSync(nothing);
      reap(); // what still runs is reaped when it ends: no zombie is left to the embedding program
    },
  };
}

/** One listener of the process for all engines in it, and none when there is none. */
const reapers = new Set<() => void>();
const reapAll = () => {
  for (const reap of reapers) reap();
};

function addReaper(reap: () => void): void {
  if (reapers.size === 0) process.on("SIGCHLD", reapAll);
  reapers.add(reap);
}

function removeReaper(reap: () => void): void {
  reapers.delete(reap);
  if (reapers.size === 0) process.off("SIGCHLD", reapAll);
}

const MAX_CHANNELS = 8;

/** A descriptor that no channel of the new process overwrites before it was used. Node itself holds the low ones, so this is the rule. */
function aboveChannels(open: () => number): number {
  const fd = open();
  if (fd < MAX_CHANNELS) throw new Error(`descriptor ${fd} is too low`);
  return fd;
}

function byNode(): Launcher {
  return {
    launch(program, args, { env, channels, cwd }) {
      const child = spawn(program, args, {
        env,
        cwd,
        detached: true,
        stdio: channels.map((channel) => (channel === "null" ? "ignore" : "pipe")),
      });
      child.unref();
      const exited = new Promise<number>((resolve, reject) => {
        child.once("error", reject);
        child.once("exit", (code, signal) => resolve(code ?? 128 + (signal === "SIGKILL" ? 9 : 15)));
      });
      exited.catch(() => {}); // told by whoever waits for it
      return { pid: child.pid ?? 0, streams: child.stdio.map((stream) => (stream ?? null) as Duplex | null), exited };
    },
    [Symbol.dispose]() {},
  };
}
