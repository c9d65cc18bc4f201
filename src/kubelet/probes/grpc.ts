import { type ClientHttp2Session, connect, constants } from "node:http2";
import { type Dial, hostPort, isTimeout } from "./dial.ts";
import { goDuration } from "../duration.ts";
import { failure, type Outcome, success } from "./outcome.ts";

const STATUS = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const CODES = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
];

/**
 * `Check` of the gRPC health checking protocol, without encryption.
 * https://github.com/grpc/grpc/blob/master/doc/health-checking.md
 */
export async function probeGrpc(
  dial: Dial,
  target: { host: string; port: number; service: string; timeoutMs: number },
  signal: AbortSignal,
): Promise<Outcome> {
  const address = hostPort(target.host, target.port);
  const within = goDuration(target.timeoutMs);
  let session: ClientHttp2Session;
  try {
    const socket = await dial(target.host, target.port, signal);
    session = await open(address, socket, signal);
  } catch {
    return failure(`timeout: failed to connect service "${address}" within ${within}: context deadline exceeded`);
  }
  try {
    return interpret(await check(session, target.service, signal));
  } catch (error) {
    if (isTimeout(error)) return failure(`timeout: health rpc did not complete within ${within}`);
    const text = error instanceof Error ? error.message : String(error);
    return failure(`error: health rpc probe failed: rpc error: code = Unavailable desc = ${text}`);
  } finally {
    session.destroy();
  }
}

function open(address: string, socket: import("node:stream").Duplex, signal: AbortSignal): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const session = connect(`http://${address}`, { createConnection: () => socket });
    const fail = (error: unknown) => {
      session.destroy();
      reject(error);
    };
    session.once("error", fail);
    // Ready to send is not enough: only the peer's settings show that it speaks HTTP/2.
    session.once("remoteSettings", () => {
      session.removeListener("error", fail);
      session.on("error", () => {});
      signal.removeEventListener("abort", onAbort);
      resolve(session);
    });
    session.once("close", () => reject(new Error("connection closed")));
    const onAbort = () => fail(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

interface Answer {
  readonly code: number;
  readonly message: string;
  readonly body: Buffer;
}

function check(session: ClientHttp2Session, service: string, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      "user-agent": "kube-probe/1.36",
      te: "trailers",
    });
    const abort = () => {
      reject(signal.reason);
      stream.close();
    };
    signal.addEventListener("abort", abort, { once: true });
    const chunks: Buffer[] = [];
    let status: string | undefined;
    let message = "";
    const read = (headers: Record<string, unknown>) => {
      if (headers["grpc-status"] !== undefined) status = String(headers["grpc-status"]);
      if (headers["grpc-message"] !== undefined) message = decodeURIComponent(String(headers["grpc-message"]));
    };
    stream.on("response", read);
    stream.on("trailers", read);
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.once("error", reject);
    stream.once("close", () => {
      signal.removeEventListener("abort", abort);
      if (status === undefined) reject(new Error("connection closed before the answer"));
      else resolve({ code: Number(status), message, body: Buffer.concat(chunks) });
    });
    stream.end(frame(request(service)));
  });
}

function interpret({ code, message, body }: Answer): Outcome {
  if (code === 12) {
    return failure(
      `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${message}`,
    );
  }
  if (code !== 0) {
    return failure(
      `error: health rpc probe failed: rpc error: code = ${CODES[code] ?? `Code(${code})`} desc = ${message}`,
    );
  }
  const status = statusOf(body.subarray(5));
  return status === 1 ? success : failure(`service unhealthy (responded with "${STATUS[status] ?? status}")`);
}

/** HealthCheckRequest: field 1 is the service's name. */
function request(service: string): Buffer {
  const text = Buffer.from(service);
  if (text.length === 0) return text;
  const length: number[] = [];
  for (let rest = text.length; ; rest >>>= 7) {
    length.push(rest > 127 ? (rest & 127) | 128 : rest);
    if (rest <= 127) break;
  }
  return Buffer.concat([Buffer.from([0x0a, ...length]), text]);
}

/** gRPC's length-prefixed message, not compressed. */
function frame(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** HealthCheckResponse: field 1 is the status, absent = 0. */
function statusOf(message: Buffer): number {
  return message[0] === 0x08 ? (message[1] ?? 0) : 0;
}
