import { spawn } from "node:child_process";
import type { Clock } from "#base";

export interface RunOptions {
  /** Text for standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The program is killed after this many milliseconds; default 30,000. */
  readonly timeoutMs?: number;
  /** Bytes kept of each stream; default 1 MiB. */
  readonly maxOutput?: number;
}

export interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

/** Runs a program to its end. Arguments are a list, never a shell's text. */
export type Run = (program: string, args: readonly string[], options?: RunOptions) => Promise<RunResult>;

/** A small environment of our own: nothing of the host process leaks into the programs that it starts. */
const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

export function createRun(clock: Clock): Run {
  return (program, args, options = {}) =>
    new Promise((resolve, reject) => {
      const child = spawn(program, args, {
        stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
        env: { ...ENVIRONMENT, ...options.env },
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      });
      let timedOut = false;
      const timer = clock.setTimer(() => {
        timedOut = true;
        child.kill("SIGKILL");
      }, options.timeoutMs ?? 30_000);
      const stdout = collect(child.stdout, options.maxOutput);
      const stderr = collect(child.stderr, options.maxOutput);
      child.on("error", (error) => {
        timer.clear();
        reject(error);
      });
      child.on("close", (code) => {
        timer.clear();
        resolve({ code: code ?? 128, stdout: stdout(), stderr: stderr(), timedOut });
      });
      if (child.stdin) {
        child.stdin.on("error", () => {}); // it ended without reading all of it: the exit code tells
        child.stdin.end(options.input);
      }
    });
}

function collect(stream: NodeJS.ReadableStream | null, limit = 1 << 20): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream?.on("data", (chunk: Buffer) => {
    if (size < limit) chunks.push(chunk.subarray(0, limit - size));
    size += chunk.length;
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

/** Runs a program and demands that it ends with 0. */
export async function mustRun(
  run: Run,
  program: string,
  args: readonly string[],
  options?: RunOptions,
): Promise<string> {
  const result = await run(program, args, options);
  if (result.code === 0) return result.stdout;
  const why = result.timedOut
    ? "timed out"
    : result.stderr.trim() || result.stdout.trim() || `exit code ${result.code}`;
  throw new Error(`${program} ${args.slice(0, 3).join(" ")}: ${why}`);
}
