import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock } from "#base";
import { type ApiBody, type ApiResponse, internalError, type Status, StatusError } from "#kinds";
import { writeWatch } from "./watch.ts";

const gzipAsync = promisify(gzip);
/** Bytes; smaller bodies are not worth compressing (the API server's own threshold). */
const GZIP_FROM = 128 * 1024;
const GZIP_LEVEL = 1;
const NEWLINE = Buffer.from("\n");

export interface Sending {
  readonly clock: Clock;
  readonly auditId: string;
  /** Called for every long-lived response when the server shuts down. */
  readonly closing: Set<() => void>;
}

/** Writes the response and resolves when it is handed over or the client is gone. */
export async function sendResponse(
  req: IncomingMessage,
  res: ServerResponse,
  response: ApiResponse,
  sending: Sending,
): Promise<void> {
  const { body } = response;
  const headers = baseHeaders(response, sending.auditId);
  switch (body.kind) {
    case "object":
      return sendBytes(req, res, response.code, headers, jsonOf(req, body), "application/json");
    case "bytes":
      return sendBytes(req, res, response.code, headers, body.bytes, body.contentType);
    case "stream":
      headers["content-type"] ??= body.contentType;
      res.writeHead(response.code, headers);
      res.flushHeaders();
      return sendStream(res, body.stream, sending);
    case "watch":
      headers["content-type"] ??= "application/json";
      headers["transfer-encoding"] = "chunked";
      res.writeHead(response.code, headers);
      return writeWatch(res, body.watch, sending);
    case "session":
      return sendResponse(req, res, errorResponse(upgradeRequired()), sending);
  }
}

type Headers = Record<string, string | string[]>;

function baseHeaders(response: ApiResponse, auditId: string): Headers {
  return { "audit-id": auditId, "cache-control": "no-cache, private", ...(response.headers as Headers) };
}

const upgradeRequired = () =>
  new StatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: "Upgrade request required",
    reason: "BadRequest",
    code: 400,
  });

function jsonOf(req: IncomingMessage, body: Extract<ApiBody, { kind: "object" }>): Buffer {
  if (wantsPretty(req)) return Buffer.from(`${JSON.stringify(body.object, null, 2)}\n`);
  const json = body.json?.() ?? Buffer.from(JSON.stringify(body.object));
  return json.length > GZIP_FROM ? json : Buffer.concat([json, NEWLINE], json.length + 1);
}

/** `?pretty=…`, else people's own tools, as the original decides. */
function wantsPretty(req: IncomingMessage): boolean {
  const url = req.url ?? "";
  const at = url.indexOf("pretty=");
  if (at > 0) return !/^pretty=(?:false|0)/.test(url.slice(at));
  const agent = req.headers["user-agent"];
  return agent !== undefined && /^(?:curl|Wget|Mozilla\/5\.0)/.test(agent);
}

async function sendBytes(
  req: IncomingMessage,
  res: ServerResponse,
  code: number,
  headers: Headers,
  bytes: Buffer,
  contentType: string,
): Promise<void> {
  headers["content-type"] ??= contentType;
  let out = bytes;
  if (bytes.length > GZIP_FROM && code === 200 && headers["content-encoding"] === undefined) {
    headers.vary = "Accept-Encoding";
    if (/\bgzip\b/.test(String(req.headers["accept-encoding"] ?? ""))) {
      out = await gzipAsync(bytes, { level: GZIP_LEVEL });
      headers["content-encoding"] = "gzip";
    }
  }
  if (res.destroyed) return;
  if (code !== 304 && code !== 204) headers["content-length"] = String(out.length);
  res.writeHead(code, headers);
  res.end(out);
}

async function sendStream(
  res: ServerResponse,
  stream: Extract<ApiBody, { kind: "stream" }>["stream"],
  sending: Sending,
): Promise<void> {
  const stop = () => stream.destroy();
  sending.closing.add(stop);
  // Lines of a followed log must not wait in a compressor; the stream is passed on as it comes.
  await pipeline(stream, res).catch(() => res.destroy());
  sending.closing.delete(stop);
}

/** What is sent for an error: its Status, or an internal error for anything that is not a StatusError. */
export function errorResponse(error: unknown): ApiResponse {
  const status: Status = error instanceof StatusError ? error.status : internalError(error).status;
  const retry = status.details?.retryAfterSeconds;
  return {
    code: status.code ?? 500,
    headers: retry ? { "retry-after": String(retry) } : {},
    body: { kind: "object", object: status },
  };
}
