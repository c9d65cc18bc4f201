import { randomUUID } from "node:crypto";
import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, CodedError, hasCode, type Logger, messageOf } from "#base";
import {
  type ApiBody,
  type ApiRequest,
  type ApiResponse,
  badRequest,
  failure,
  methodNotSupported,
  type Session,
  StatusError,
  type UserInfo,
} from "#kinds";
import { createInFlight, DEFAULT_LIMITS, type InFlight, type InFlightLimits } from "./in-flight.ts";
import { type Peer, peerOf, vouch } from "./peer.ts";
import { IncomingApiRequest, isLongRunning, parseDuration, parseTarget, readBody } from "./request.ts";
import { errorResponse, sendResponse } from "./respond.ts";

// imported, node:http would load all of undici for the sake of three exports
const { createServer: createHttpServer, STATUS_CODES } = process.getBuiltinModule("node:http");
const { createServer: createHttpsServer } = process.getBuiltinModule("node:https");

/** What a connection and the headers of a request say about who asks. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** All values of a header that may be repeated. */
  values(name: string): readonly string[];
  readonly peer: Peer;
}

export interface ListenerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The request pipeline. May throw; what is not a StatusError becomes a 500. */
  handle(request: ApiRequest): Promise<ApiResponse>;
  /** Authentication and impersonation. @throws StatusError 401, 403 */
  identify(credentials: Credentials): Promise<UserInfo> | UserInfo;
  /** Paths that are answered without the pipeline, bodies streamed both ways; who asks is known. Must not reject. */
  readonly raw?: {
    readonly prefix: string;
    handle(req: IncomingMessage, res: ServerResponse, user: UserInfo): Promise<void>;
  };
  /** Ties an upgraded connection to the session; loaded when the first upgrade comes. */
  upgrade?(request: UpgradeRequest): Promise<void>;
}

/** An answer that is read over an upgraded connection. */
export interface ReadSession {
  readonly kind: "read";
  readonly body: Extract<ApiBody, { kind: "watch" | "stream" | "bytes" }>;
}

export interface UpgradeRequest {
  readonly req: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly session: Session | ReadSession;
  readonly query: URLSearchParams;
}

export interface ListenerOptions {
  readonly limits?: InFlightLimits;
  /** Deadline of requests that are not long-running, milliseconds. Default 60,000. */
  readonly requestTimeout?: number;
}

/** Everything through which the API server is reached from outside the process. */
export interface Listener extends AsyncDisposable {
  /** HTTPS. Port 0 takes a free one. */
  listenTls(options: TlsOptions): Promise<{ address: string; port: number }>;
  /**
   * HTTP on a unix socket (mode 0600) or a named pipe (`\\.\pipe\…`); whoever can open it is `user`.
   * @throws CodedError `in-use` when another process serves it
   */
  listenLocal(path: string, user: UserInfo): Promise<void>;
  /** Whether the open listeners, and later ones, keep the process alive. Default: they do, as servers of `node:http`. */
  holdProcess(hold: boolean): void;
  /** Ends watches and streams, lets running requests finish for up to `graceMs` (default 2,000), then cuts what is left. */
  close(graceMs?: number): Promise<void>;
}

export interface TlsOptions {
  readonly host: string;
  readonly port: number;
  /** PEM pair of the server, and the authority of client certificates. */
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string;
}

const HTTP_OPTIONS: ServerOptions = {
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
  keepAliveTimeout: 90_000,
  // Tokens and selectors are long; Go's own limit is 1 MiB.
  maxHeaderSize: 1024 * 1024,
  requestTimeout: 60_000,
};

export function createListener(deps: ListenerDeps, options: ListenerOptions = {}): Listener {
  const state: State = {
    deps,
    inFlight: createInFlight(options.limits ?? DEFAULT_LIMITS),
    requestTimeout: options.requestTimeout ?? 60_000,
    closing: new Set(),
  };
  const servers = new Set<Server>();
  const locals = new Set<string>();
  const sockets = new Set<Socket>();

  const start = async (server: Server, where: { path: string } | { host: string; port: number }) => {
    wire(server, state, sockets);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(where, () => {
        server.off("error", reject);
        server.on("error", (error) => deps.logger.error("listener failed", { error }));
        resolve();
      });
    });
    servers.add(server);
    if (!holding) server.unref();
  };
  let holding = true;

  const listener: Listener = {
    async listenTls({ host, port, cert, key, clientCa }) {
      const server = createHttpsServer({
        ...HTTP_OPTIONS,
        cert,
        key,
        ca: clientCa,
        requestCert: true,
        // Tokens need no certificate; a bad one is refused by `identify` with a Status.
        rejectUnauthorized: false,
        ALPNProtocols: ["http/1.1"],
        minVersion: "TLSv1.2",
      });
      await start(server, { host, port });
      const { address, port: bound } = server.address() as AddressInfo;
      return { address, port: bound };
    },
    async listenLocal(path, user) {
      const pipe = path.startsWith("\\\\");
      if (!pipe) await removeStale(path);
      const server = createHttpServer(HTTP_OPTIONS);
      server.on("connection", (socket) => vouch(socket, user));
      await start(server, { path });
      if (pipe) return;
      chmodSync(path, 0o600);
      locals.add(path);
    },
    holdProcess(hold) {
      holding = hold;
      for (const server of servers) hold ? server.ref() : server.unref();
    },
    async close(graceMs = 2000) {
      const closed = [...servers].map((server) => new Promise((resolve) => server.close(resolve)));
      for (const end of [...state.closing]) end();
      for (const server of servers) server.closeIdleConnections();
      const late = deps.clock.setTimer(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await Promise.all(closed);
      late.clear();
      for (const socket of sockets) socket.destroy();
      for (const path of locals) ignoreAbsent(() => unlinkSync(path));
      servers.clear();
      locals.clear();
    },
    [Symbol.asyncDispose]: () => listener.close(),
  };
  return listener;
}

interface State {
  readonly deps: ListenerDeps;
  readonly inFlight: InFlight;
  readonly requestTimeout: number;
  readonly closing: Set<() => void>;
}

function wire(server: Server, state: State, sockets: Set<Socket>): void {
  server.on("request", (req, res) => void serve(state, req, res));
  if (state.deps.upgrade) server.on("upgrade", (req, socket, head) => void serveUpgrade(state, req, socket, head));
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("secureConnection", (socket: Socket) => socket.on("error", () => socket.destroy()));
  server.on("clientError", (error, socket) => {
    if (socket.writable && !hasCode(error, "ECONNRESET", "EPIPE")) {
      const code = hasCode(error, "HPE_HEADER_OVERFLOW") ? "431 Request Header Fields Too Large" : "400 Bad Request";
      socket.end(`HTTP/1.1 ${code}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${code}`);
    } else socket.destroy();
  });
}

const METHODS = new Set(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]);

/** One request, from its head to the last byte of its answer. Never rejects. */
async function serve(state: State, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { deps } = state;
  const auditId = req.headers["audit-id"];
  const sending = {
    clock: deps.clock,
    closing: state.closing,
    auditId: typeof auditId === "string" ? auditId : randomUUID(),
  };
  let response: ApiResponse;
  try {
    if (deps.raw && req.url?.startsWith(deps.raw.prefix))
      return await deps.raw.handle(req, res, await identify(state, req));
    response = await answer(state, req, res);
  } catch (error) {
    if (!(error instanceof StatusError))
      deps.logger.error("request failed", { method: req.method, url: req.url, error });
    response = errorResponse(error);
    // What was not read of the body would be taken for the next request.
    if (!req.complete) response = { ...response, headers: { ...response.headers, connection: "close" } };
  }
  if (res.destroyed) return discard(response);
  try {
    await sendResponse(req, res, response, sending);
  } catch (error) {
    deps.logger.error("response failed", { method: req.method, url: req.url, error });
    res.destroy();
  }
}

/** A response that nobody is there to take: what it holds open is let go. */
function discard({ body }: ApiResponse): void {
  if (body.kind === "stream") body.stream.destroy();
}

async function answer(state: State, req: IncomingMessage, res: ServerResponse): Promise<ApiResponse> {
  const method = req.method ?? "GET";
  if (!METHODS.has(method)) throw methodNotSupported({ group: "", resource: "" }, method);
  const target = parseTarget(req);
  const found = identify(state, req);
  const user = found instanceof Promise ? await found : found;
  const long = isLongRunning(target.path, target.query);
  const leave = long
    ? undefined
    : state.inFlight.enter(method !== "GET" && method !== "HEAD" && method !== "OPTIONS", user.username);
  try {
    const reading = readBody(req);
    const request = new IncomingApiRequest(req, target, user, reading && (await reading));
    res.once("close", () => {
      if (!res.writableFinished) request.abort(new Error("the client closed the connection"));
    });
    const running = state.deps.handle(request);
    return await (long ? running : withDeadline(state, request, running));
  } finally {
    leave?.();
  }
}

function identify(state: State, req: IncomingMessage): Promise<UserInfo> | UserInfo {
  return state.deps.identify({
    headers: req.headers as Credentials["headers"],
    values: (name) => req.headersDistinct[name] ?? [],
    peer: peerOf(req),
  });
}

function withDeadline(state: State, request: IncomingApiRequest, running: Promise<ApiResponse>): Promise<ApiResponse> {
  const asked = request.query.size > 0 ? parseDuration(request.query.get("timeout")) : undefined;
  const ms = asked ? Math.min(asked, state.requestTimeout) : state.requestTimeout;
  return new Promise((resolve, reject) => {
    const timer = state.deps.clock.setTimer(() => {
      const error = failure(
        504,
        "Timeout",
        `Timeout: request did not complete within requested timeout - context deadline exceeded`,
      );
      request.abort(error);
      reject(error);
    }, ms);
    running.then(resolve, reject).finally(() => timer.clear());
  });
}

async function serveUpgrade(state: State, req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const { deps } = state;
  socket.on("error", () => socket.destroy());
  try {
    const target = parseTarget(req);
    const user = await identify(state, req);
    const response = await deps.handle(new IncomingApiRequest(req, target, user, undefined));
    const session = sessionOf(response);
    if (!session) return refuse(socket, response, badRequest("this path does not take upgrades"));
    const stop = () => socket.destroy();
    state.closing.add(stop);
    socket.once("close", () => state.closing.delete(stop));
    await deps.upgrade!({ req, socket, head, session, query: target.query });
  } catch (error) {
    if (!(error instanceof StatusError)) deps.logger.error("upgrade failed", { url: req.url, error: messageOf(error) });
    refuse(socket, errorResponse(error));
  }
}

/** What an upgraded connection is tied to: a session, or an answer that goes on over it (a watch, a log). */
function sessionOf({ code, body }: ApiResponse): UpgradeRequest["session"] | undefined {
  if (body.kind === "session") return body.session;
  if (code < 300 && (body.kind === "watch" || body.kind === "stream" || body.kind === "bytes"))
    return { kind: "read", body };
  return undefined;
}

/** Answers on a connection that the HTTP server has let go of. */
function refuse(socket: Duplex, response: ApiResponse, instead?: StatusError): void {
  if (!socket.writable) return;
  const { code, body } = response.body.kind === "object" && response.code >= 400 ? response : errorResponse(instead);
  const json = JSON.stringify(body.kind === "object" ? body.object : {});
  socket.end(
    `HTTP/1.1 ${code} ${STATUS_CODES[code] ?? "Refused"}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(json)}\r\nConnection: close\r\n\r\n${json}`,
  );
}

/** A socket file that nobody listens on is left from a crash and goes; one that answers belongs to a living server. */
async function removeStale(path: string): Promise<void> {
  const alive = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
  if (alive) {
    throw new CodedError("in-use", `another process serves ${path}`, {
      hint: "stop it, or choose another socket path",
    });
  }
  ignoreAbsent(() => {
    if (!lstatSync(path).isSocket())
      throw new CodedError("in-use", `${path} exists and is not a socket`, { hint: "choose another socket path" });
    unlinkSync(path);
  });
}

function ignoreAbsent(fn: () => void): void {
  try {
    fn();
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
  }
}
