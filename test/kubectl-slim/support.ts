import { execFile } from "node:child_process";
import path, { join } from "node:path";
import { Readable, Writable } from "node:stream";
import type { Environment, FileAccess } from "../../src/cli/kubectl-slim/environment.ts";
import { nodeEnvironment } from "../../src/cli/kubectl-slim/node-environment.ts";
import { runKubectl } from "../../src/cli/kubectl-slim/program.ts";

const home = join(import.meta.dirname, "../..");
export const KUBECTL: string = join(home, "build/bin/kubectl");

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The real kubectl. */
export function kubectl(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { env, cwd: home, timeout: 60_000, maxBuffer: 2 ** 26 };
    const child = execFile(KUBECTL, args, options, (error, stdout, stderr) => {
      resolve({ code: error ? (typeof error.code === "number" ? error.code : 255) : 0, stdout, stderr });
    });
    child.stdin?.end();
  });
}

/** Parts of the machine that a test replaces. */
export type Replaced = Partial<Omit<Environment, "stdin" | "stdout" | "stderr">> & {
  stdin?: string;
  files?: FileAccess;
};

/** kubectl-slim, in this process. */
export async function kubectlSlim(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  replaced: Replaced = {},
): Promise<Outcome> {
  const [stdout, stderr] = [new Capture(), new Capture()];
  const environment: Environment = {
    ...nodeEnvironment(),
    path,
    env,
    ...replaced,
    stdin: Readable.from(replaced.stdin === undefined ? [] : [Buffer.from(replaced.stdin)]),
    stdout,
    stderr,
  };
  const code = await runKubectl(args, environment);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

class Capture extends Writable {
  readonly #chunks: Buffer[] = [];
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
  text(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }
}

/** Hides what differs between two runs of the same program: ages, times, counts that go on, and the widths that follow from them. */
export function masked(text: string): string {
  return text
    .replace(/\b[0-9a-f]{64}\b/g, "ID")
    .replace(/ \(x\d+ over \w+\)/g, "")
    .replace(/\b[0-9a-f]{64}\b/g, "ID")
    .replace(/\b\d+(\.\d+)?(ms|s|m|h|d)(\d+(s|m|h))?\b/g, "AGE")
    .replace(/AGE( +)/g, (_, spaces: string) => `AGE${spaces.length > 1 ? "  " : " "}`)
    .replace(/ {2,}(?=AGE)/g, "  ")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME")
    .replace(/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, "DATE")
    .replace(/(resourceVersion|uid|generation): "?[\w-]+"?/g, "$1: MASKED")
    .replace(/"(resourceVersion|uid)": "[\w-]+"/g, '"$1": MASKED');
}
