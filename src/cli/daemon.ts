import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Client, createClient, createHttpTransport, hostTarget, type Transport, trusted } from "#client";
import { CodedError, hasCode, systemClock } from "#base";
import { type InstanceConfig, lockPathOf, holderOf } from "#cluster";

/** A client of the daemon over its socket; `close` lets the process end. */
export interface DaemonConnection {
  readonly client: Client;
  readonly transport: Transport;
  /** Copies the body of a GET to `to` as it comes. @throws StatusError */
  pipe(path: string, query: Readonly<Record<string, string>>, to: Writable): Promise<void>;
  /** POSTs a stream and gives the answer's object. @throws StatusError */
  upload(path: string, from: Readable): Promise<unknown>;
  close(): void;
}

/** Over the instance's socket, or over TCP where `SLIM_KUBE_HOST` names another host's. */
export async function connect(config: InstanceConfig): Promise<DaemonConnection> {
  const host = remoteHost();
  const transport = createHttpTransport(
    host
      ? await trusted(hostTarget(process.env, (path) => readFileSync(path, "utf8"), host))
      : { server: `unix:${config.kubeSocket}` },
  );
  return {
    client: createClient(transport, { userAgent: "slim" }),
    transport,
    async pipe(path, query, to) {
      await pipeline(await transport.stream("GET", `${path}?${new URLSearchParams(query)}`), to, { end: false });
    },
    async upload(path, from) {
      const response = await transport.stream("POST", path, from);
      return JSON.parse((await response.toArray()).join(""));
    },
    close: () => transport.close(),
  };
}

/** `tcp://…` of an instance elsewhere; a socket that is named goes before it. */
export function remoteHost(): string | undefined {
  return process.env.SLIM_KUBE_SOCKET ? undefined : process.env.SLIM_KUBE_HOST || undefined;
}

export async function isServing(connection: DaemonConnection): Promise<boolean> {
  return connection.client.request({ method: "GET", path: "/readyz", signal: AbortSignal.timeout(5000) }).then(
    () => true,
    () => false,
  );
}

/** @throws CodedError `not-running` with the way out */
export async function requireDaemon(config: InstanceConfig): Promise<DaemonConnection> {
  const connection = await connect(config);
  if (await isServing(connection)) return connection;
  connection.close();
  throw new CodedError("not-running", `no slimd answers at ${remoteHost() ?? config.kubeSocket}`, {
    hint: remoteHost()
      ? "Start it there with SLIM_TCP_ADDR set."
      : "Start it with `slim up`, or name its data directory with SLIM_DATA.",
  });
}

/** Starts slimd in the background unless it runs; resolves once it serves. `started` tells which it was. */
export async function ensureDaemon(config: InstanceConfig): Promise<DaemonConnection & { started: boolean }> {
  const connection = await connect(config);
  if (await isServing(connection)) return { ...connection, started: false };
  if (remoteHost()) {
    connection.close();
    return { ...(await requireDaemon(config)), started: false };
  }
  const holder = await holderOf(lockPathOf(config));
  const child = holder ? undefined : startDaemon(config);
  const deadline = systemClock.monotonic() + 60_000;
  while (!(await isServing(connection))) {
    if (child && child.exitCode() !== undefined) {
      connection.close();
      throw new CodedError("start-failed", lastLines(child.logPath, child.logStart), {
        hint: `The whole log is in ${child.logPath}.`,
      });
    }
    if (systemClock.monotonic() > deadline) {
      connection.close();
      throw new CodedError("start-failed", "slimd does not serve after 60 s", {
        hint: `Its log is in ${join(config.dataDir, "slimd.log")}.`,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  return { ...connection, started: child !== undefined };
}

function startDaemon(config: InstanceConfig) {
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const logPath = join(config.dataDir, "slimd.log");
  const log = openSync(logPath, "a", 0o600);
  const logStart = statSync(logPath).size;
  const program = join(import.meta.dirname, "slimd.js");
  const child = spawn(process.execPath, ["--no-warnings", ...SMALL, program], {
    detached: true,
    stdio: ["ignore", log, log],
    env: { MALLOC_ARENA_MAX: "1", ...process.env },
    cwd: "/",
  });
  let code: number | undefined;
  child.on("exit", (exit) => (code = exit ?? 1));
  child.on("error", () => (code = 1));
  child.unref();
  closeSync(log);
  return { logPath, logStart, exitCode: () => code };
}

/** What slimd said at its end, without its own prefix. */
function lastLines(path: string, from: number): string {
  try {
    const text = readFileSync(path).subarray(from).toString("utf8").trim();
    return (
      text
        .split("\n")
        .slice(-3)
        .join("\n")
        .replace(/^slimd: /, "") || "slimd ended without a word"
    );
  } catch (error) {
    if (hasCode(error, "ENOENT")) return "slimd ended without a word";
    throw error;
  }
}

/** Some 20 MiB less for a tenth of the speed; `bin/slimd` does the same. */
const SMALL = ["--max-semi-space-size=4", "--optimize-for-size"];
