import { execFile } from "node:child_process";
import { join } from "node:path";

const home = join(import.meta.dirname, "../..");
export const KUBECTL: string = join(home, "build/bin/kubectl");
export const KUBECTL_SLIM: string = join(home, "bin/kubectl-slim");

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function runProgram(
  program: string,
  args: readonly string[],
  options: { env: NodeJS.ProcessEnv; stdin?: string },
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(
      program,
      args,
      { env: options.env, timeout: 60_000, maxBuffer: 2 ** 26 },
      (error, stdout, stderr) => {
        resolve({ code: error ? (typeof error.code === "number" ? error.code : 255) : 0, stdout, stderr });
      },
    );
    child.stdin?.end(options.stdin ?? "");
  });
}

/** What differs between two runs of the same program: ages, and when something happened. */
export function masked(text: string): string {
  return text
    .replace(/\b\d+(\.\d+)?(ms|s|m|h|d)(\d+(s|m|h))?\b/g, "AGE")
    .replace(/AGE( +)/g, (_, spaces: string) => `AGE${spaces.length > 1 ? "  " : " "}`)
    .replace(/ {2,}(?=AGE)/g, "  ")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME")
    .replace(/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, "DATE")
    .replace(/(resourceVersion|uid|generation): "?[\w-]+"?/g, "$1: MASKED")
    .replace(/"(resourceVersion|uid)": "[\w-]+"/g, '"$1": MASKED');
}
