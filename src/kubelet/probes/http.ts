import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { connect as tlsConnect } from "node:tls";
import type { DeepReadonly } from "#base";
import type { HTTPGetAction } from "#kinds";
import { type Dial, dialFailure, hostPort, isTimeout } from "./dial.ts";
import { failure, MAX_ANSWER, type Outcome, success } from "./outcome.ts";

// imported, node:http would load all of undici
const { request } = process.getBuiltinModule("node:http");

const MAX_REDIRECTS = 10;

export interface HttpTarget {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string | string[]>>;
}

/** Where a probe or hook goes; `purpose` is in the user agent: `kube-probe/1.36`. */
export function httpTarget(
  action: DeepReadonly<HTTPGetAction>,
  port: number,
  podIP: string,
  purpose: "probe" | "lifecycle",
): HttpTarget {
  const scheme = (action.scheme ?? "HTTP").toLowerCase();
  const path = action.path || "/";
  const url = new URL(`${scheme}://${hostPort(action.host || podIP, port)}`);
  const question = path.indexOf("?");
  url.pathname = question < 0 ? path : path.slice(0, question);
  url.search = question < 0 ? "" : path.slice(question);
  const headers: Record<string, string | string[]> = {};
  const names = new Map<string, string>();
  for (const { name, value = "" } of action.httpHeaders ?? []) {
    const known = names.get(name.toLowerCase());
    if (known === undefined) {
      names.set(name.toLowerCase(), name);
      headers[name] = value;
    } else headers[known] = [headers[known] ?? [], value].flat();
  }
  if (!names.has("user-agent")) headers["User-Agent"] = `kube-${purpose}/1.36`;
  const accept = names.get("accept");
  if (accept === undefined) headers.Accept = "*/*";
  else if (headers[accept] === "") delete headers[accept];
  return { url, headers };
}

/** GET, redirects on the same host followed. 200 to 399 is a success, a redirect elsewhere a warning. */
export async function probeHttp(dial: Dial, target: HttpTarget, signal: AbortSignal): Promise<Outcome> {
  let url = target.url;
  for (let redirects = 0; ; redirects++) {
    let response: Response;
    try {
      response = await get(dial, url, target.headers, signal);
    } catch (error) {
      return failure(`Get "${url.href}": ${describe(url, error)}`);
    }
    const { code, location, body } = response;
    if (code < 200 || code >= 400) return failure(`HTTP probe failed with statuscode: ${code}`);
    if (code < 300 || !location) return success;
    const next = URL.parse(location, url);
    if (!next || next.hostname !== target.url.hostname) {
      return { result: "warning", output: `Probe terminated redirects, Response body: ${body}` };
    }
    if (redirects + 1 >= MAX_REDIRECTS) return failure(`Get "${next.href}": stopped after 10 redirects`);
    url = next;
  }
}

interface Response {
  readonly code: number;
  readonly location: string | undefined;
  readonly body: string;
}

async function get(dial: Dial, url: URL, headers: HttpTarget["headers"], signal: AbortSignal): Promise<Response> {
  const secure = url.protocol === "https:";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const socket = await dial(host, Number(url.port || (secure ? 443 : 80)), signal);
  const abort = () => socket.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener("abort", abort, { once: true });
  try {
    signal.throwIfAborted();
    const stream = secure ? await encrypt(socket, host) : socket;
    return await exchange(stream, url, headers);
  } finally {
    signal.removeEventListener("abort", abort);
    socket.destroy();
  }
}

/** Certificates are not verified: probes have no authority to trust. */
function encrypt(socket: Duplex, host: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const secure = tlsConnect({ socket, rejectUnauthorized: false, ...(isIP(host) ? {} : { servername: host }) });
    secure.once("secureConnect", () => resolve(secure));
    secure.once("error", reject);
    socket.once("error", reject);
  });
}

function exchange(stream: Duplex, url: URL, headers: HttpTarget["headers"]): Promise<Response> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: url.hostname, port: url.port, path: url.pathname + url.search, headers, createConnection: () => stream },
      (incoming) => readAnswer(incoming).then(resolve, reject),
    );
    outgoing.once("error", reject);
    stream.once("error", reject);
    outgoing.end();
  });
}

function readAnswer(incoming: IncomingMessage): Promise<Response> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const done = () =>
      resolve({
        code: incoming.statusCode ?? 0,
        location: incoming.headers.location,
        body: Buffer.concat(chunks).subarray(0, MAX_ANSWER).toString(),
      });
    incoming.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= MAX_ANSWER) done();
    });
    incoming.once("end", done);
    incoming.once("error", reject);
  });
}

function describe(url: URL, error: unknown): string {
  if (isTimeout(error)) return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
  const { code, syscall } = error as { code?: string; syscall?: string };
  if (syscall === "connect" || code === "ECONNREFUSED" || code === "EHOSTUNREACH" || code === "ENOTFOUND") {
    return dialFailure(
      url.hostname.replace(/^\[|\]$/g, ""),
      Number(url.port || (url.protocol === "https:" ? 443 : 80)),
      error,
    );
  }
  if (code === "ECONNRESET") return "EOF";
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "EPROTO" || code === "ERR_SSL_PACKET_LENGTH_TOO_LONG") {
    return "http: server gave HTTP response to HTTPS client";
  }
  return error instanceof Error ? error.message : String(error);
}
