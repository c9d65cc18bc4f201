import { once } from "node:events";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { hasCode } from "#base";
import { EngineError } from "../../errors.ts";
import type { Context } from "../context.ts";
import type { SandboxRecord } from "../records.ts";
import type { Libc } from "../sys/libc.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM_NONBLOCK = 1 | 0o4000 | 0o2000000;
const POLLOUT = 4;
/** Loopback answers at once; only a full accept queue makes this wait. */
const CONNECT_TIMEOUT_MS = 5000;

/**
 * A TCP connection made inside the sandbox's network, so that it reaches what listens on loopback only. The socket is made during
 * a visit to the namespace and then belongs to it, wherever it is used.
 */
export async function connect(context: Context, sandbox: SandboxRecord, port: number, host?: string): Promise<Duplex> {
  if (sandbox.state !== "ready") throw new EngineError("not-running", `sandbox ${sandbox.id} is not ready`);
  if (sandbox.netnsPath === undefined || !context.libc) return direct(sandbox, port, host);
  const hosts = host === undefined || host === "localhost" ? ["127.0.0.1", "::1"] : [host];
  let failure: unknown;
  for (const address of hosts) {
    try {
      return await inNamespace(context, context.libc, sandbox.netnsPath, address, port);
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

/** The host's own network, or no koffi: then the pod's address must do. */
async function direct(sandbox: SandboxRecord, port: number, host?: string): Promise<Duplex> {
  const socket = new Socket();
  socket.connect({
    port,
    host: host ?? (sandbox.netnsPath === undefined ? "127.0.0.1" : (sandbox.ips[0] ?? "127.0.0.1")),
  });
  await once(socket, "connect");
  return socket;
}

async function inNamespace(context: Context, libc: Libc, netns: string, host: string, port: number): Promise<Duplex> {
  const address = socketAddress(host, port);
  const fd = context.namespaces.visitNetwork(netns, () =>
    libc.socket(host.includes(":") ? AF_INET6 : AF_INET, SOCK_STREAM_NONBLOCK, 0),
  );
  try {
    try {
      libc.connect(fd, address);
    } catch (error) {
      if (!hasCode(error, "EINPROGRESS")) throw error;
      if (!(await libc.poll(fd, POLLOUT, CONNECT_TIMEOUT_MS)))
        throw Object.assign(new Error("connect: ETIMEDOUT"), { code: "ETIMEDOUT" });
      finishConnect(libc, fd, address);
    }
  } catch (error) {
    libc.close(fd);
    throw Object.assign(
      new Error(`dial tcp ${host.includes(":") ? `[${host}]` : host}:${port}: ${refusal(error)}`, { cause: error }),
      { code: (error as { code?: string }).code },
    );
  }
  return new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
}

/** A second connect(2) tells how the first one ended: EISCONN is success. */
function finishConnect(libc: Libc, fd: number, address: Buffer): void {
  try {
    libc.connect(fd, address);
  } catch (error) {
    if (!hasCode(error, "EISCONN")) throw error;
  }
}

function refusal(error: unknown): string {
  if (hasCode(error, "ECONNREFUSED")) return "connect: connection refused";
  return hasCode(error, "ETIMEDOUT") ? "i/o timeout" : String(error instanceof Error ? error.message : error);
}

/** sockaddr_in or sockaddr_in6. */
function socketAddress(host: string, port: number): Buffer {
  const six = host.includes(":");
  const bytes = Buffer.alloc(six ? 28 : 16);
  bytes.writeUInt16LE(six ? AF_INET6 : AF_INET, 0);
  bytes.writeUInt16BE(port, 2);
  if (!six) Buffer.from(host.split(".").map(Number)).copy(bytes, 4);
  else if (host === "::1") bytes.writeUInt8(1, 23);
  else throw new EngineError("unsupported", `cannot dial ${host}`);
  return bytes;
}
