import type { Duplex } from "node:stream";
import type { ContainerConfig, ExecResult, SandboxConfig } from "../port.ts";

/** What one run of a fake container does. All absent: it starts at once and runs until it is told to stop. */
export interface FakeScript {
  /** Milliseconds that creating takes. */
  readonly createMs?: number;
  /** Creating fails with this message. */
  readonly createError?: string;
  /** Milliseconds that starting takes. */
  readonly startMs?: number;
  /** Starting fails with this message (`StartError`, 128). */
  readonly startError?: string;
  /** Milliseconds until it ends by itself; absent: never. */
  readonly runMs?: number;
  /** Code with which it ends by itself. Default 0. */
  readonly exitCode?: number;
  /** It ends as killed for its memory use: 137, `OOMKilled`. */
  readonly oomKilled?: boolean;
  /** What a stop signal does: `ignore` leaves it to KILL; default: it ends at once as killed by the signal (143). */
  readonly onStop?: "ignore" | { readonly exitCode: number; readonly afterMs?: number };
  /** Lines of output, `atMs` after the start (default 0). */
  readonly output?: readonly { readonly atMs?: number; readonly stream?: "stdout" | "stderr"; readonly text: string }[];
  /** Files that it writes when it starts, by path in the container; written where the path is a mount. */
  readonly writes?: Readonly<Record<string, string>>;
  /** Answers exec, probes included. Default: exit code 0, no output. */
  exec?(command: readonly string[], at: FakeMoment): FakeExec;
  /** Takes connections to its ports; undefined or absent: refused. */
  connect?(port: number): Duplex | undefined;
}

/** Result of an exec, `afterMs` after it was asked for (default 0; `Infinity` hangs until it is killed). */
export interface FakeExec {
  readonly exitCode?: number;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly afterMs?: number;
}

export interface FakeMoment {
  /** Milliseconds since the container started. */
  readonly runningMs: number;
  /** Execs of this run before this one. */
  readonly execs: number;
}

export interface FakeContainer {
  readonly config: ContainerConfig;
  readonly sandbox: SandboxConfig;
}

/** How pulling an image goes. */
export interface FakePull {
  /** Default 0. */
  readonly afterMs?: number;
  /** Failure: the code of the EngineError (default `pull-failed`) and its message. */
  readonly error?: string;
  readonly code?: "pull-denied" | "pull-not-found" | "pull-failed";
}

export interface FakeEngineOptions {
  /** What a container does; undefined: the default script, made from its command (see `scriptOfCommand`). */
  script?(container: FakeContainer): FakeScript | undefined;
  /** What pulling a reference does. Default: succeeds at once. */
  pull?(reference: string): FakePull;
  /** Failure of making a sandbox: its message; and how long it takes. */
  sandbox?(config: SandboxConfig): { error?: string; afterMs?: number } | undefined;
  /** References that are there from the start. Default `slim/busybox:latest`, `nebula/pause:slim`. */
  readonly images?: readonly (string | FakeImage)[];
  /** First two or three numbers of pod addresses. Default `10.244`: 10.244.0.2, … */
  readonly network?: string;
  /** True: logs are written to `logPath` as a real engine does. Default: kept in memory, see `FakeEngine.output`. */
  readonly logFiles?: boolean;
}

export interface FakeImage {
  readonly reference: string;
  readonly user?: string;
  readonly size?: number;
  readonly stopSignal?: string;
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
}

export type { ExecResult };

/** Understands `sleep N`, `true`, `false`, `exit N`, `echo TEXT`, `kill -9 $$`, also in `sh -c` joined by `;` or `&&`. */
export function scriptOfCommand(command: readonly string[]): FakeScript {
  const run: { ms: number; code: number; lines: { atMs: number; text: string }[]; forever: boolean } = {
    ms: 0,
    code: 0,
    lines: [],
    forever: false,
  };
  const program = command[0]?.split("/").pop() ?? "";
  const isShell = /^(sh|bash|ash)$/.test(program) && command[1] === "-c";
  const parts = isShell ? (command[2] ?? "").split(/;|&&|\n/) : [command.join(" ")];
  for (const part of parts) if (step(part.trim(), run)) break;
  if (run.forever) return { output: run.lines };
  return { runMs: run.ms, exitCode: run.code, output: run.lines };
}

/** One command; true ends the script. */
function step(
  text: string,
  run: { ms: number; code: number; lines: { atMs: number; text: string }[]; forever: boolean },
): boolean {
  if (text === "") return false;
  const [name = "", ...words] = text.split(/\s+/);
  const number = Number.parseFloat(words[0] ?? "");
  switch (name) {
    case "true":
    case ":":
      run.code = 0;
      return false;
    case "false":
      run.code = 1;
      return false;
    case "exit":
      run.code = Number.isFinite(number) ? number : run.code;
      return true;
    case "sleep":
      if (!Number.isFinite(number)) {
        run.forever = true;
        return true;
      }
      run.ms += number * 1000;
      run.code = 0;
      return false;
    case "echo":
      run.lines.push({ atMs: run.ms, text: words.join(" ").replace(/^(['"])(.*)\1$/, "$2") });
      run.code = 0;
      return false;
    default:
      run.forever = true;
      return true;
  }
}
