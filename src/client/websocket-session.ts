import type { ClientRequest, IncomingMessage } from "node:http";
import { connect } from "node:net";
import { Duplex, type Readable, type Writable } from "node:stream";
import { WebSocket } from "ws";
import { createChannels } from "#base";
import { type ApiRequest, type ExecSession, failure, type Session, type Status, StatusError } from "#kinds";

/** Where and how the upgraded connection is made. */
export interface WebSocketTarget {
  /** `https://host:port`; with `socketPath` only its path counts. */
  readonly server: string;
  /** Unix socket or named pipe. */
  readonly socketPath?: string;
  /** Client certificate, authorities and so on, as for `node:tls`. */
  readonly tls: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[]>>;
}

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const ERROR = 3;
const RESIZE = 4;

/**
 * The session of an exec, attach or port-forward request over WebSocket: the connection is made when it is started, one for
 * each port of a port-forward.
 */
export function webSocketSession(target: WebSocketTarget, request: ApiRequest): Session {
  if (request.path.endsWith("/portforward")) {
    const ports = request.query.getAll("ports").map(Number);
    return { kind: "portforward", ports, connect: (port) => forward(target, request.path, port) };
  }
  const asked = (name: string) => request.query.get(name) === "true";
  const options = { stdin: asked("stdin"), stdout: asked("stdout"), stderr: asked("stderr"), tty: asked("tty") };
  return {
    kind: "exec",
    options,
    async start() {
      const socket = await open(target, `${request.path}?${request.query}`, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
      return execSession(socket, options);
    },
  };
}

function execSession(
  socket: WebSocket,
  options: { stdin: boolean; stdout: boolean; stderr: boolean; tty: boolean },
): ExecSession {
  const channels = createChannels(socket, { base64: false });
  const errors = channels.readable(ERROR);
  const stdin = options.stdin ? channels.writable(STDIN) : null;
  // in v4 the end of the input can't be told: the connection would have to be closed
  if (socket.protocol.startsWith("v5")) stdin?.once("finish", () => void channels.end(STDIN).catch(() => undefined));
  stdin?.on("error", () => undefined); // the command ended before it had read all: its exit code is what counts
  const done = outcomeOf(errors);
  done.catch(() => undefined); // who asks late must still see it; who never asks must not crash the process
  return {
    stdin,
    stdout: options.stdout ? channels.readable(STDOUT) : null,
    stderr: options.stderr && !options.tty ? channels.readable(STDERR) : null,
    resize: ({ width, height }) =>
      void channels.send(RESIZE, Buffer.from(JSON.stringify({ Width: width, Height: height }))).catch(() => undefined),
    done,
    close: () => socket.terminate(),
  };
}

/** The Status that the server sends last tells how it ended. */
async function outcomeOf(errors: Readable): Promise<{ exitCode: number }> {
  const chunks: Buffer[] = [];
  for await (const chunk of errors) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  if (text === "") throw failure(500, "InternalError", "the connection ended before the command did");
  const status = JSON.parse(text) as Status;
  if (status.status === "Success") return { exitCode: 0 };
  const code = status.details?.causes?.find((cause) => (cause.reason as string) === "ExitCode")?.message;
  if (status.reason === "NonZeroExitCode" && code !== undefined) return { exitCode: Number(code) };
  throw new StatusError(status);
}

/** One connection to a port of the pod. */
async function forward(target: WebSocketTarget, path: string, port: number): Promise<Duplex> {
  const socket = await open(target, `${path}?ports=${port}`, ["v4.channel.k8s.io"]);
  const channels = createChannels(socket, { base64: false });
  const data = withoutAnnouncement(channels.readable(0));
  const errors = withoutAnnouncement(channels.readable(1));
  return duplexOf(data, channels.writable(0), errors, () => socket.terminate());
}

/** Both channels begin with the number of the port, two bytes. */
function withoutAnnouncement(from: Readable): Readable {
  let skip = 2;
  return from.map((chunk: Buffer) => {
    const rest = chunk.subarray(skip);
    skip -= Math.min(skip, chunk.length);
    return rest;
  });
}

function duplexOf(data: Readable, output: Writable, errors: Readable, close: () => void): Duplex {
  const duplex = new Duplex({
    read: () => void data.resume(),
    write: (chunk, _encoding, done) => void output.write(chunk, done),
    // this protocol can't tell that only one direction is over
    final: (done) => done(),
    destroy(error, done) {
      close();
      done(error);
    },
  });
  data.on("data", (chunk: Buffer) => {
    if (chunk.length > 0 && !duplex.push(chunk)) data.pause();
  });
  data.on("end", () => duplex.push(null));
  errors.on("data", (chunk: Buffer) => {
    if (chunk.length > 0) duplex.destroy(new Error(chunk.toString("utf8")));
  });
  for (const stream of [data, output, errors]) stream.on("error", (error) => duplex.destroy(error));
  return duplex;
}

/** @throws StatusError with which the server refused, or 503 when it can't be reached */
function open(target: WebSocketTarget, path: string, protocols: string[]): Promise<WebSocket> {
  const { socketPath } = target;
  const secure = socketPath === undefined && target.server.startsWith("https:");
  const authority = socketPath === undefined ? new URL(target.server).host : "localhost";
  const socket = new WebSocket(`${secure ? "wss" : "ws"}://${authority}${path}`, protocols, {
    ...target.tls,
    headers: target.headers,
    perMessageDeflate: false,
    maxPayload: 0,
    ...(socketPath === undefined ? {} : { createConnection: () => connect(socketPath) }),
  });
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve(socket));
    socket.once("unexpected-response", (_request: ClientRequest, response: IncomingMessage) => {
      refusalOf(response).then(reject, reject);
    });
    socket.once("error", (cause) =>
      reject(
        Object.assign(failure(503, "ServiceUnavailable", `cannot reach the API server: ${cause.message}`), { cause }),
      ),
    );
  });
}

async function refusalOf(response: IncomingMessage): Promise<StatusError> {
  const text = (await response.toArray()).join("");
  response.destroy();
  try {
    const status = JSON.parse(text) as Status;
    if (status.kind === "Status") return new StatusError(status);
  } catch {
    // an answer that is no Status: told as it is
  }
  return failure(response.statusCode ?? 500, "InternalError", text || `the server answered ${response.statusCode}`);
}
