import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type ApiRequest, failure, type Status, StatusError, type WatchEvent, type WatchSink } from "#kinds";
import type { Transport } from "./transport.ts";

// Imported, node:http would load all of undici for the sake of three exports; 15 ms that every program here would pay.
const http = process.getBuiltinModule("node:http");
const https = process.getBuiltinModule("node:https");

export interface HttpTransportOptions {
  /** `https://127.0.0.1:6443`, `http://…`, or `unix:/path` (`unix:\\.\pipe\name` on Windows). */
  server: string;
  /** PEM. */
  ca?: string;
  cert?: string;
  key?: string;
  token?: string;
  /** Accept any server certificate. Default false. */
  insecure?: boolean;
  serverName?: string;
  /** Connections at once for calls that are not watches. Default 32. */
  maxSockets?: number;
  /** Sent with every request: impersonation. */
  headers?: Readonly<Record<string, string | string[]>>;
  /** Told the text of every `Warning` header. */
  onWarning?(text: string): void;
}

export interface HttpTransport extends Transport {
  /** A call whose bodies are streamed both ways. @throws StatusError */
  stream(method: string, path: string, from?: Readable): Promise<Readable>;
  /** Ends idle connections. */
  close(): void;
}

/** Calls over HTTP(S), a unix socket or a named pipe. */
export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const { module, base, tls } = addressOf(options);
  const settings = { keepAlive: true, maxSockets: options.maxSockets ?? 32 };
  const agent = new module.Agent(settings);
  const watchAgent = new module.Agent({ keepAlive: false });

  function send(request: ApiRequest): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const watching = request.query.get("watch") === "true" || request.query.get("watch") === "1";
      const query = request.query.size > 0 ? `?${request.query}` : "";
      const body = bodyOf(request);
      const headers: Record<string, string | string[] | number> = { ...options.headers };
      for (const [name, value] of Object.entries(request.headers)) if (value !== undefined) headers[name] = value;
      if (options.token) headers.authorization = `Bearer ${options.token}`;
      if (body) headers["content-length"] = body.length;
      else delete headers["content-type"];
      const outgoing = module.request({
        ...base,
        agent: watching ? watchAgent : agent,
        method: request.method,
        path: request.path + query,
        headers,
        ...(request.signal ? { signal: request.signal } : {}),
      });
      outgoing.on("response", (response) => {
        if (options.onWarning) for (const text of warningsOf(response)) options.onWarning(text);
        resolve(response);
      });
      outgoing.on("error", (cause) => reject(unreachable(options.server, cause)));
      outgoing.end(body);
    });
  }

  return {
    async call(request) {
      if (/\/(exec|attach|portforward)$/.test(request.path)) {
        // loaded when it is needed: it costs more than all the rest of the client
        const { webSocketSession } = await import("./websocket-session.ts");
        const session = webSocketSession(
          {
            server: options.server,
            ...("socketPath" in base ? { socketPath: base.socketPath } : {}),
            tls,
            headers: { ...options.headers, ...(options.token ? { authorization: `Bearer ${options.token}` } : {}) },
          },
          request,
        );
        return { code: 101, headers: {}, body: { kind: "session", session } };
      }
      const response = await send(request);
      const code = response.statusCode ?? 0;
      const headers = flatten(response.headers);
      const type = response.headers["content-type"] ?? "";
      const watching =
        code < 300 &&
        request.query.has("watch") &&
        request.query.get("watch") !== "false" &&
        request.query.get("watch") !== "0";
      if (watching)
        return { code, headers, body: { kind: "watch", watch: { start: (sink) => readFrames(response, sink) } } };
      if (code < 300 && /\/log$/.test(request.path))
        return { code, headers, body: { kind: "stream", stream: response, contentType: type } };
      const bytes = await readAll(response);
      if (!type.includes("json")) return { code, headers, body: { kind: "bytes", bytes, contentType: type } };
      return { code, headers, body: { kind: "object", object: JSON.parse(bytes.toString("utf8")), json: () => bytes } };
    },
    async stream(method, path, from) {
      const outgoing = module.request({
        ...base,
        agent: watchAgent,
        method,
        path,
        headers: {
          ...(from ? { "content-type": "application/octet-stream" } : {}),
          accept: "*/*",
          ...(options.token ? { authorization: `Bearer ${options.token}` } : {}),
        },
      });
      const answer = new Promise<IncomingMessage>((resolve, reject) => {
        outgoing.on("response", resolve);
        outgoing.on("error", (cause) => reject(unreachable(options.server, cause)));
      });
      if (from)
        pipeline(from, outgoing).catch(() => undefined); // an upload that is refused half-way is answered before it was read
      else outgoing.end();
      const response = await answer;
      if ((response.statusCode ?? 500) < 400) return response;
      throw refusal(response.statusCode ?? 500, await readAll(response));
    },
    close() {
      agent.destroy();
      watchAgent.destroy();
    },
  };
}

function addressOf(options: HttpTransportOptions) {
  if (options.server.startsWith("unix:"))
    return { module: http, base: { socketPath: options.server.slice(5) }, tls: {} };
  const url = new URL(options.server);
  const at = { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port || (url.protocol === "http:" ? 80 : 443) };
  if (url.protocol === "http:") return { module: http, base: at, tls: {} };
  const tls = {
    ...(options.ca ? { ca: options.ca } : {}),
    ...(options.cert ? { cert: options.cert } : {}),
    ...(options.key ? { key: options.key } : {}),
    ...(options.serverName ? { servername: options.serverName } : {}),
    rejectUnauthorized: !options.insecure,
  };
  return { module: https as unknown as typeof http, base: { ...at, ...tls }, tls };
}

/** `299 - "text"`, RFC 7234. */
function warningsOf(response: IncomingMessage): string[] {
  return (response.headersDistinct.warning ?? []).flatMap((header) =>
    [...header.matchAll(/299 \S+ "((?:\\.|[^"\\])*)"/g)].map((match) => match[1]!.replace(/\\(.)/g, "$1")),
  );
}

function bodyOf(request: ApiRequest): Buffer | undefined {
  if (!request.body) return undefined;
  return "bytes" in request.body ? request.body.bytes : Buffer.from(JSON.stringify(request.body.object));
}

function flatten(headers: IncomingHttpHeaders): Record<string, string | readonly string[]> {
  const flat: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) flat[name] = value;
  return flat;
}

async function readAll(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Reads newline-separated watch frames. A frame that is no JSON ends the watch. */
function readFrames(response: IncomingMessage, sink: WatchSink): { stop(): void } {
  let parts: Buffer[] = [];
  let over = false;
  const end = () => {
    if (over) return;
    over = true;
    sink.end();
  };
  const frame = (bytes: Buffer) => {
    if (bytes.length === 0) return;
    try {
      sink.event(JSON.parse(bytes.toString("utf8")) as WatchEvent, () => bytes);
    } catch {
      response.destroy();
    }
  };
  response.on("data", (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0 && !over; at = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, at));
      frame(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
      parts = [];
      from = at + 1;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
  });
  response.on("end", end);
  response.on("close", end);
  response.on("error", end);
  return {
    stop() {
      over = true;
      response.destroy();
    },
  };
}

function refusal(code: number, bytes: Buffer): StatusError {
  const text = bytes.toString("utf8");
  try {
    const status = JSON.parse(text) as Status;
    if (status.kind === "Status") return new StatusError(status);
  } catch {
    // an answer that is no Status: told as it is
  }
  return failure(code, "InternalError", text || `the server answered ${code}`);
}

function unreachable(server: string, cause: Error & { code?: string }): Error {
  if (cause.name === "AbortError") return cause;
  return Object.assign(
    failure(503, "ServiceUnavailable", `cannot reach the API server at ${server}: ${cause.message}`),
    { cause },
  );
}
