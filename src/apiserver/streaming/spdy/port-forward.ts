import type { Duplex } from "node:stream";
import { messageOf } from "#base";
import type { Session } from "#kinds";
import { forwardError } from "../port-forward.ts";
import type { StreamingDeps } from "../streaming.ts";
import { type SpdyStream, serveConnection } from "./connection.ts";

type Ports = Extract<Session, { kind: "portforward" }>;

/** How long the second stream of a pair may take, milliseconds. */
const STREAM_CREATION = 30_000;

/**
 * Port-forward over SPDY, direct or tunnelled: for every forwarded connection the client opens an error and a data stream
 * with the same `requestid` header. Resolves when the client has gone.
 */
export async function serveSpdyPortForward(session: Ports, socket: Duplex, deps: StreamingDeps): Promise<void> {
  const pairs = new Map<string, { error?: SpdyStream; data?: SpdyStream }>();
  const connection = serveConnection(socket, (stream) => {
    const type = stream.headers.streamtype;
    const port = Number(stream.headers.port);
    if ((type !== "error" && type !== "data") || !Number.isInteger(port) || port < 1 || port > 65535)
      return stream.reset();
    const id = requestId(stream, type);
    const pair = pairs.get(id) ?? {};
    if (pair[type]) {
      pair.error?.end(`error processing stream for request ${id}: ${type} stream already assigned`);
      return;
    }
    pair[type] = stream;
    pairs.set(id, pair);
    if (pair.error && pair.data) {
      pairs.delete(id);
      void forward(session, port, pair.data, pair.error);
      return;
    }
    deps.clock.setTimer(() => {
      if (!pairs.delete(id)) return;
      pair.error?.end(`request ${id}: timed out waiting for streams`);
      pair.data?.reset();
    }, STREAM_CREATION);
  });
  await connection.closed;
}

/** Old clients name no request: their pairs have consecutive stream ids, the error stream first. */
function requestId({ headers, id }: SpdyStream, type: "error" | "data"): string {
  return headers.requestid ?? String(type === "error" ? id : id - 2);
}

async function forward(session: Ports, port: number, data: SpdyStream, error: SpdyStream): Promise<void> {
  error.resume();
  let target: Duplex;
  try {
    target = await session.connect(port);
  } catch (cause) {
    return fail(port, data, error, cause);
  }
  target.on("error", (cause) => fail(port, data, error, cause));
  target.on("close", () => {
    data.end();
    error.end();
  });
  data.on("close", () => target.destroy());
  data.pipe(target);
  target.pipe(data);
}

function fail(port: number, data: SpdyStream, error: SpdyStream, cause: unknown): void {
  if (error.writable) error.end(forwardError(port, messageOf(cause)));
  data.end();
}
