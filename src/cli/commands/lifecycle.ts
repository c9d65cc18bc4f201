import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type Applied,
  applyObjects,
  purgeInstance,
  readConfig,
  readHostToken,
  readManifests,
  renewHostToken,
  stopDaemon,
} from "#cluster";
import { readinessOf } from "#diagnosis";
import type { ApiObject } from "#kinds";
import { type DaemonConnection, ensureDaemon, isServing, connect } from "../daemon.ts";
import { EXIT, ExitError, readStdin } from "../program.ts";

export function addLifecycleCommands(program: Command): void {
  program
    .command("up")
    .description("start slimd in the background if it is not running, apply manifests, wait for them")
    .option(
      "-f, --filename <source>",
      "file, directory, URL or - (repeatable)",
      (value, all: string[]) => [...all, value],
      [] as string[],
    )
    .option("-n, --namespace <name>", "namespace of objects that name none", "default")
    .option("--wait", "wait until all that was applied is ready")
    .option("--timeout <seconds>", "end of the wait", "300")
    .action(up);
  program
    .command("down")
    .description("stop slimd and remove everything that it made: containers, mounts, interfaces, rules, cgroups")
    .option("--purge", "remove the data directory too: objects, images, logs, certificates")
    .action(async (options: { purge?: boolean }) => {
      const config = readConfig(process.env);
      await stopDaemon(config);
      await purgeInstance(config, { data: options.purge === true });
    });
  program
    .command("status")
    .description("tell whether slimd runs, and what it holds (exit code 3 when it does not)")
    .option("-o, --output <format>", "json")
    .action(status);
  program
    .command("token")
    .description("print the token by which programs of other hosts reach this instance (SLIM_KUBE_TOKEN there)")
    .option("--renew", "make a new one; the one before is worth nothing then")
    .action(async (options: { renew?: boolean }) => {
      const { dataDir } = readConfig(process.env);
      const known = options.renew ? undefined : readHostToken(dataDir);
      if (known) return void process.stdout.write(`${known}\n`);
      const authority = await readFile(join(dataDir, "pki/ca.crt"), "utf8").catch(() => {
        throw new ExitError(
          EXIT.absent,
          `there is no ${join(dataDir, "pki/ca.crt")}: slimd was never started with this data directory`,
        );
      });
      process.stdout.write(`${renewHostToken(dataDir, authority)}\n`);
    });
  program
    .command("kubeconfig")
    .description("print the admin kubeconfig")
    .option("--path", "print where it is instead")
    .action(async (options: { path?: boolean }) => {
      const path = join(readConfig(process.env).dataDir, "kubeconfig");
      const text = await readFile(path, "utf8").catch(() => {
        throw new ExitError(EXIT.absent, `there is no ${path}: slimd was never started with this data directory`);
      });
      process.stdout.write(options.path ? `${path}\n` : text);
    });
}

interface UpOptions {
  filename: string[];
  namespace: string;
  wait?: boolean;
  timeout: string;
}

async function up(options: UpOptions): Promise<void> {
  const objects: ApiObject[] = [];
  for (const source of options.filename) objects.push(...(await readManifests(source, readStdin)));
  const config = readConfig(process.env);
  const daemon = await ensureDaemon(config);
  try {
    if (daemon.started) process.stderr.write(`slimd serves; kubeconfig: ${join(config.dataDir, "kubeconfig")}\n`);
    const applied = await applyObjects(daemon.client, objects, {
      fieldManager: "slim",
      namespace: options.namespace,
      retry,
    });
    for (const item of applied) process.stdout.write(`${describe(item)} serverside-applied\n`);
    if (options.wait)
      await waitAll(daemon, applied, Number(options.timeout) * 1000, (line) => process.stderr.write(`${line}\n`));
  } finally {
    daemon.close();
  }
}

/** `deployment.apps/web` */
export function describe({ resource, object }: Applied): string {
  const kind = resource.kind.toLowerCase();
  return `${resource.group ? `${kind}.${resource.group}` : kind}/${object.metadata.name}`;
}

/** Waits until all are ready. @throws ExitError when one can't become ready, or at the end of the time */
export async function waitAll(
  daemon: DaemonConnection,
  applied: readonly Applied[],
  timeoutMs: number,
  progress: (line: string) => void,
): Promise<void> {
  const end = performance.now() + timeoutMs;
  await Promise.all(
    applied.map(async (item) => {
      let last = "";
      for (;;) {
        const { resource, namespace, object } = item;
        const now = (await daemon.client.get(resource, object.metadata.name, { namespace })) as ApiObject;
        const { ready, failed, why } = readinessOf(now);
        if (why !== last && why !== "exists") progress(`${describe(item)}: ${why}`);
        last = why;
        if (ready) return;
        if (failed) throw new ExitError(EXIT.failed, `${describe(item)} can't become ready: ${why}`);
        if (performance.now() > end)
          throw new ExitError(EXIT.failed, `timed out waiting for ${describe(item)}: ${why}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }),
  );
}

/** A kind whose definition was just created is served a moment later. */
export async function retry<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

async function status(options: { output?: string }): Promise<void> {
  const config = readConfig(process.env);
  const connection = await connect(config);
  try {
    const serving = await isServing(connection);
    const state = serving
      ? ((await connection.client.request({ method: "GET", path: "/engine/v1/info" })) as Record<string, unknown>)
      : {};
    const all = {
      running: serving,
      data: config.dataDir,
      socket: config.kubeSocket,
      kubeconfig: join(config.dataDir, "kubeconfig"),
      ...state,
    };
    if (options.output === "json") process.stdout.write(`${JSON.stringify(all, null, 2)}\n`);
    else
      for (const [key, value] of Object.entries(all))
        process.stdout.write(`${`${key}:`.padEnd(14)}${typeof value === "object" ? JSON.stringify(value) : value}\n`);
    if (!serving) process.exitCode = EXIT.absent;
  } finally {
    connection.close();
  }
}
