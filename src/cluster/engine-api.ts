import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Logger } from "#base";
import { type ContainerStatus, type Engine, isEngineError, type PullOptions } from "#engine";
import { badRequest, failure, forbidden, notFound, StatusError, type UserInfo } from "#kinds";

export interface EngineApiDeps {
  readonly engine: Engine;
  readonly logger: Logger;
  /** What `slim status` shows beside the engine. */
  info(): Record<string, unknown>;
  /** Lines of a container's log, as `kubectl logs` would print them. */
  readLog(
    container: ContainerStatus,
    options: { follow: boolean; tail?: number; timestamps: boolean },
    signal: AbortSignal,
  ): Promise<Readable>;
}

/** Answers one request under `/engine/v1/`. Never rejects. */
export type EngineApi = (req: IncomingMessage, res: ServerResponse, user: UserInfo) => Promise<void>;

/**
 * The engine's own paths, for `slim ps`, `slim image` and their like; only cluster admins may use them:
 *
 * | path | |
 * |---|---|
 * | `GET info` | engine and instance |
 * | `GET containers`, `GET containers/<id>` | state |
 * | `POST containers/<id>/kill?signal=` | signal |
 * | `GET containers/<id>/logs?follow&tail&timestamps` | text, streamed |
 * | `GET images`, `POST images/load` (archive as body), `pull`, `remove`, `prune` | image store |
 * | `GET events` | a JSON object a line, streamed |
 */
export function createEngineApi(deps: EngineApiDeps): EngineApi {
  return async (req, res, user) => {
    const abort = new AbortController();
    res.once("close", () => abort.abort(new Error("the client closed the connection")));
    try {
      if (!user.groups.includes("system:masters")) {
        throw forbidden({ group: "", resource: "engine" }, "", `User "${user.username}" is not a cluster admin`);
      }
      const url = new URL(req.url ?? "/", "http://localhost");
      await route(
        deps,
        { req, res, query: url.searchParams, signal: abort.signal },
        url.pathname.slice("/engine/v1/".length).split("/"),
      );
    } catch (error) {
      fail(res, statusOf(error), deps.logger);
    }
  };
}

interface Call {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly query: URLSearchParams;
  readonly signal: AbortSignal;
}

async function route(deps: EngineApiDeps, call: Call, [area = "", id = "", action = ""]: string[]): Promise<void> {
  const { engine } = deps;
  const key = `${call.req.method} ${area}${id ? "/*" : ""}${action ? `/${action}` : ""}`;
  switch (key) {
    case "GET info":
      return send(call.res, { engine: engine.info, ...deps.info() });
    case "GET containers":
      return send(call.res, { items: engine.containers().map(rowOf) });
    case "GET containers/*":
      return send(call.res, containerOf(engine, id));
    case "POST containers/*/kill":
      await engine.signalContainer(containerOf(engine, id).id, signalOf(call.query.get("signal") ?? "KILL"));
      return send(call.res, {});
    case "GET containers/*/logs":
      return sendLog(deps, call, containerOf(engine, id));
    case "GET events":
      return sendEvents(engine, call);
    case "GET images":
      return send(call.res, { items: engine.images.list() });
    default:
      if (area === "images" && call.req.method === "POST") return imageAction(engine, call, id);
      throw failure(404, "NotFound", `the engine has no path ${call.req.method} ${call.req.url}`);
  }
}

async function imageAction(engine: Engine, call: Call, action: string): Promise<void> {
  const { images } = engine;
  if (action === "load") return send(call.res, { items: await images.load(call.req, { signal: call.signal }) });
  const body = (await readJson(call.req)) as { reference?: string; username?: string; password?: string };
  if (action === "prune") return send(call.res, await images.prune());
  if (typeof body.reference !== "string") throw badRequest("reference: Required value");
  if (action === "remove") {
    await images.remove(body.reference);
    return send(call.res, {});
  }
  if (action !== "pull") throw failure(404, "NotFound", `images has no action "${action}"`);
  const auth =
    body.username === undefined ? {} : { auths: [{ username: body.username, password: body.password ?? "" }] };
  const options: PullOptions = { ...auth, signal: call.signal };
  return send(call.res, await images.pull(body.reference, options));
}

/** What a list of containers shows of each. */
function rowOf(status: ContainerStatus): Record<string, unknown> {
  const { labels } = status.config;
  const namespace = labels["io.kubernetes.pod.namespace"] ?? "";
  const pod = labels["io.kubernetes.pod.name"] ?? "";
  return {
    id: status.id,
    name: pod ? `${namespace}_${pod}_${status.config.name}` : status.config.name,
    image: status.config.imageRef,
    imageId: status.imageId,
    state: status.state,
    createdAt: status.createdAt,
    pod: pod ? `${namespace}/${pod}` : "",
    ...(status.exitCode === undefined ? {} : { exitCode: status.exitCode }),
  };
}

function containerOf(engine: Engine, id: string): ContainerStatus {
  const status = engine.container(id);
  if (!status) throw notFound({ group: "", resource: "containers" }, id);
  return status;
}

/** `TERM`, `SIGTERM`, `15` → `SIGTERM`, `15`. */
function signalOf(text: string): string {
  if (/^\d{1,2}$/.test(text)) return text;
  if (!/^(SIG)?[A-Z][A-Z0-9+-]*$/i.test(text))
    throw badRequest(`signal: Invalid value: "${text}": must be the name or the number of a signal`);
  const upper = text.toUpperCase();
  return upper.startsWith("SIG") ? upper : `SIG${upper}`;
}

async function sendLog(deps: EngineApiDeps, call: Call, container: ContainerStatus): Promise<void> {
  const tail = call.query.get("tail");
  if (tail !== null && !/^\d+$/.test(tail))
    throw badRequest(`tail: Invalid value: "${tail}": must be a number of lines`);
  const options = { follow: call.query.get("follow") === "true", timestamps: call.query.get("timestamps") === "true" };
  const stream = await deps.readLog(
    container,
    tail === null ? options : { ...options, tail: Number(tail) },
    call.signal,
  );
  call.res.writeHead(200, { "content-type": "text/plain" });
  call.res.flushHeaders();
  // the client hanging up is how a followed log ends
  await pipeline(stream, call.res).catch(() => call.res.destroy());
}

function sendEvents(engine: Engine, call: Call): void {
  call.res.writeHead(200, { "content-type": "application/json" });
  call.res.flushHeaders();
  const subscription = engine.onEvent((event) => call.res.write(`${JSON.stringify(event)}\n`));
  call.res.once("close", () => subscription[Symbol.dispose]());
}

async function readJson(req: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req) {
    size += (chunk as Buffer).length;
    if (size > 1024 * 1024) throw failure(413, "RequestEntityTooLarge", "the body is larger than 1 MiB");
    chunks.push(chunk as Buffer);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8") || "{}");
  } catch (cause) {
    throw badRequest(`the body is no JSON: ${(cause as Error).message}`);
  }
}

function send(res: ServerResponse, value: unknown): void {
  const body = JSON.stringify(value);
  res.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body);
}

function fail(res: ServerResponse, error: StatusError, logger: Logger): void {
  if (error.code >= 500) logger.warn("engine request failed", { error });
  if (res.headersSent) return void res.destroy();
  const body = JSON.stringify(error.status);
  res.writeHead(error.code, { "content-type": "application/json", connection: "close" }).end(body);
}

function statusOf(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (isEngineError(error, "not-found", "image-not-found", "pull-not-found")) return failure(404, "NotFound", message);
  if (isEngineError(error, "image-in-use", "not-running")) return failure(409, "Conflict", message);
  if (isEngineError(error, "disk-full")) return failure(507, "InsufficientStorage", message);
  if (isEngineError(error, "sandbox-failed", "create-failed", "start-failed", "pull-failed"))
    return failure(500, "InternalError", message);
  if (isEngineError(error)) return badRequest(message);
  return failure(500, "InternalError", message);
}
