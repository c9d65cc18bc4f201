/**
 * How long slim takes to be there: `node bench/start.ts [--times 10] [--json]` (root). Start of the process to /readyz with a fresh and with an
 * existing data directory, and a cold `slim up` with the example until all is Ready.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { quantile, report } from "./support/table.ts";

const { values } = parseArgs({
  options: { times: { type: "string", default: "10" }, json: { type: "boolean", default: false } },
});
const { row } = report(values.json);
const home = join(import.meta.dirname, "..");
const run = promisify(execFile);

interface Place extends AsyncDisposable {
  readonly env: NodeJS.ProcessEnv;
  readonly socket: string;
}

async function createPlace(): Promise<Place> {
  const directory = await mkdtemp(join(tmpdir(), "slim-bench-"));
  const env = { ...process.env, SLIM_DATA: directory, SLIM_KUBE_API_ADDR: "127.0.0.1:0", SLIM_LOG_LEVEL: "error" };
  return {
    env,
    socket: join(directory, "run/kube.sock"),
    async [Symbol.asyncDispose]() {
      await run(join(home, "bin/slim"), ["down", "--purge"], { env });
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Whether the API says that it is ready; false while nobody listens. */
function isReady(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({ socketPath, path: "/readyz" }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    probe.on("error", () => resolve(false));
    probe.end();
  });
}

async function startToReady({ env, socket }: Place): Promise<{ ms: number; daemon: ChildProcess }> {
  const began = performance.now();
  const daemon = spawn(join(home, "bin/slimd"), { env, stdio: "ignore" });
  while (!(await isReady(socket))) {
    if (daemon.exitCode !== null) throw new Error(`slimd ended with ${daemon.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return { ms: performance.now() - began, daemon };
}

async function stop(daemon: ChildProcess): Promise<void> {
  const ended = once(daemon, "exit");
  daemon.kill("SIGTERM");
  await ended;
}

const fresh: number[] = [];
const again: number[] = [];
const cold: number[] = [];
for (let i = 0; i < Number(values.times); i++) {
  await using place = await createPlace();
  const first = await startToReady(place);
  await stop(first.daemon);
  const second = await startToReady(place);
  await stop(second.daemon);
  fresh.push(first.ms);
  again.push(second.ms);
}
for (let i = 0; i < Math.min(5, Number(values.times)); i++) {
  await using place = await createPlace();
  const began = performance.now();
  await run(join(home, "bin/slim"), ["up", "-f", join(home, "examples/hello.yaml"), "--wait"], { env: place.env });
  cold.push(performance.now() - began);
}
row("process start to /readyz, fresh data directory, p50", quantile(fresh, 0.5), "ms");
row("process start to /readyz, existing one, p50", quantile(again, 0.5), "ms", 400);
row("cold `slim up` with the example to Ready, p50", quantile(cold, 0.5), "ms", 1000);
