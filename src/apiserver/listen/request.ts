import type { IncomingMessage } from "node:http";
import { type ApiRequest, badRequest, failure, type UserInfo } from "#kinds";

/** Bytes; the API server's limit for a request body. */
export const MAX_BODY: number = 3 * 1024 * 1024;

/** Method, path and query of a request line. @throws StatusError 400 */
export function parseTarget(req: IncomingMessage): { path: string; query: URLSearchParams } {
  const url = req.url ?? "/";
  const mark = url.indexOf("?");
  const raw = mark < 0 ? url : url.slice(0, mark);
  // `OPTIONS *` and proxies' absolute form have no meaning here.
  if (!raw.startsWith("/")) throw badRequest(`invalid request target ${JSON.stringify(raw)}`);
  return {
    path: raw.includes("%") ? decode(raw) : raw,
    query: new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1)),
  };
}

function decode(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw badRequest(`invalid URL escape in ${JSON.stringify(raw)}`);
  }
}

const tooLarge = () => failure(413, "RequestEntityTooLarge", `Request entity too large: limit is ${MAX_BODY}`);

/** The whole body; undefined when there is none. @throws StatusError 413, or Error when the client went away */
export function readBody(req: IncomingMessage): Promise<Buffer | undefined> | undefined {
  const length = req.headers["content-length"];
  if (length === undefined ? req.headers["transfer-encoding"] === undefined : length === "0") return undefined;
  if (length !== undefined && Number(length) > MAX_BODY) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_BODY) {
        req.removeAllListeners("data");
        req.resume();
        reject(tooLarge());
      } else chunks.push(chunk);
    });
    req.once("end", () => resolve(size === 0 ? undefined : chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    req.once("error", reject);
    req.once("close", () => reject(new Error("the client closed the connection before its request was complete")));
  });
}

/** Watches, logs, sessions and proxied requests: no deadline, not counted as in flight. */
export function isLongRunning(path: string, query: URLSearchParams): boolean {
  if (query.size > 0) {
    const watch = query.get("watch");
    if (watch !== null && watch !== "false" && watch !== "0") return true;
  }
  return LONG_RUNNING.test(path);
}

const LONG_RUNNING =
  /^\/apis?\/(?:.*\/)?(?:(?:pods|services|nodes)\/[^/]+\/(?:exec|attach|portforward|log|proxy)(?:\/|$)|[^/]+\/watch\/|watch\/)/;

/** The request as the pipeline takes it. The signal is made when somebody asks for it: most requests never do. */
export class IncomingApiRequest implements ApiRequest {
  readonly method: ApiRequest["method"];
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: ApiRequest["headers"];
  readonly body?: { readonly bytes: Buffer };
  readonly user: UserInfo;
  readonly remoteAddress: string;
  #abort: AbortController | undefined;
  #aborted: { reason: unknown } | undefined;

  constructor(
    req: IncomingMessage,
    target: { path: string; query: URLSearchParams },
    user: UserInfo,
    body: Buffer | undefined,
  ) {
    this.method = req.method as ApiRequest["method"];
    this.path = target.path;
    this.query = target.query;
    this.headers = req.headers as ApiRequest["headers"];
    this.user = user;
    this.remoteAddress = req.socket.remoteAddress ?? "";
    if (body) this.body = { bytes: body };
  }

  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#aborted) this.#abort.abort(this.#aborted.reason);
    }
    return this.#abort.signal;
  }

  /** The client went away or the deadline passed. */
  abort(reason: unknown): void {
    this.#aborted = { reason };
    this.#abort?.abort(reason);
  }
}

/** A Go duration (`1m30s`, `500ms`) or plain seconds, in milliseconds; undefined when it is neither. */
export function parseDuration(text: string | null): number | undefined {
  if (!text) return undefined;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    total += Number(amount) * { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit as "ms" | "s" | "m" | "h"];
  }
  return total;
}
