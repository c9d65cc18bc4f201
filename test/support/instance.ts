import { execFile, execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const home: string = join(import.meta.dirname, "../..");

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A slimd of its own: data directory, free port, real engine. Disposing it purges everything, also after a failure. */
export interface TestInstance extends AsyncDisposable {
  readonly dir: string;
  readonly kubeconfig: string;
  readonly env: NodeJS.ProcessEnv;
  pid(): number;
  start(): Promise<void>;
  /** Kills slimd at once, as a crash would. */
  crash(): Promise<void>;
  /** The real kubectl; rejects when it ends with another code than 0. */
  kubectl(...args: string[]): Promise<string>;
  /** The same with any outcome, and with standard input. */
  tryKubectl(args: readonly string[], options?: { stdin?: string; timeoutMs?: number }): Promise<Outcome>;
  slim(...args: string[]): Promise<Outcome>;
}

export async function startInstance(more: NodeJS.ProcessEnv = {}): Promise<TestInstance> {
  const dir = mkdtempSync(join(tmpdir(), "slim-e2e-"));
  const env = { ...process.env, SLIM_DATA: dir, SLIM_KUBE_API_ADDR: "127.0.0.1:0", SLIM_NODE_NAME: "node", ...more };
  const kubeconfig = join(dir, "kubeconfig");
  const run = (file: string, args: readonly string[], options: { stdin?: string; timeoutMs?: number } = {}) =>
    new Promise<Outcome>((resolve) => {
      const child = execFile(
        file,
        args,
        { env: { ...env, KUBECONFIG: kubeconfig }, timeout: options.timeoutMs ?? 120_000, maxBuffer: 2 ** 26 },
        (error, stdout, stderr) => {
          resolve({ code: error ? (typeof error.code === "number" ? error.code : 255) : 0, stdout, stderr });
        },
      );
      child.stdin?.end(options.stdin ?? "");
    });
  const instance: TestInstance = {
    dir,
    kubeconfig,
    env,
    pid: () => Number(readFileSync(join(dir, "run/slimd.pid"), "utf8").split(" ")[0]),
    async start() {
      const { code, stderr } = await instance.slim("up");
      if (code !== 0) throw new Error(`slim up ended with ${code}: ${stderr}`);
    },
    async crash() {
      const pid = instance.pid();
      process.kill(pid, "SIGKILL");
      while (existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z "))
        await new Promise((r) => setTimeout(r, 5));
    },
    async kubectl(...args) {
      const outcome = await run(join(home, "build/bin/kubectl"), args);
      if (outcome.code !== 0)
        throw new Error(`kubectl ${args.join(" ")} ended with ${outcome.code}: ${outcome.stderr}`);
      return outcome.stdout;
    },
    tryKubectl: (args, options) => run(join(home, "build/bin/kubectl"), args, options),
    slim: (...args) => run(join(home, "bin/slim"), args),
    async [Symbol.asyncDispose]() {
      const { code, stderr } = await instance.slim("down", "--purge");
      if (code !== 0) throw new Error(`slim down ended with ${code}: ${stderr}`);
      rmSync(dir, { recursive: true, force: true });
    },
  };
  try {
    await instance.start();
    await until(
      async () => (await instance.tryKubectl(["get", "serviceaccount", "default"])).code === 0,
      "the default ServiceAccount",
    );
    return instance;
  } catch (error) {
    await Promise.resolve(instance[Symbol.asyncDispose]()).catch(() => {});
    throw error;
  }
}

/** Looks until `test` holds. @throws Error naming what did not come */
export async function until(test: () => Promise<boolean> | boolean, what: string, timeoutMs = 60_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await test())) {
    if (performance.now() > end) throw new Error(`${what} did not come within ${timeoutMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What an instance may leave on the host: mounts, links, tables, control groups and processes that carry its marks. */
export function tracesOf(dir: string, id: string): string[] {
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .filter((line) => line.includes(dir));
  const links = execFileSync("ip", ["-o", "link"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => new RegExp(`\\b${id}[a-z]`).test(line));
  const tables = execFileSync("nft", ["list", "tables"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(id));
  const groups = spawnSync("find", ["/sys/fs/cgroup", "-maxdepth", "3", "-name", `slim-${id}*`], { encoding: "utf8" })
    .stdout.split("\n")
    .filter(Boolean);
  const processes = spawnSync("pgrep", ["-af", dir], { encoding: "utf8" })
    .stdout.split("\n")
    .filter((line) => line && !line.includes("pgrep"));
  return [...mounts, ...links, ...tables, ...groups, ...processes];
}
