import type * as Http from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { gunzip, inflate } from "node:zlib";
import { type ApiResponse, badRequest, failure, notFound, type Pod, resources, type Service } from "#kinds";
import type { Call } from "../pipeline/call.ts";
import { rewriteHtml, rewriteLink } from "./proxy-rewrite.ts";

// imported, node:http would load all of undici
const http = process.getBuiltinModule("node:http");
const https = process.getBuiltinModule("node:https");

/** `nodes|pods|services/<name>/proxy/<path>`: the request goes on to the node's agent, the pod or one of the service's pods. */
export async function proxy(call: Call): Promise<ApiResponse> {
  const { kind, info, server, request } = call;
  const bare = info.rest.length === 0 && !request.path.endsWith("/");
  // so that relative links of the site's first page stay below the proxy
  if (bare && (request.method === "GET" || request.method === "HEAD")) return toDirectory(call);
  const path = `/${info.rest.join("/")}${request.path.endsWith("/") && info.rest.length > 0 ? "/" : ""}`;
  if (kind.resource === "nodes") {
    const agent = server.connector(partsOf(info.name).name);
    if (!agent) throw notFound(kind, info.name);
    const { code, contentType, body } = await agent.proxy(path, request.query);
    return { code, headers: {}, body: { kind: "bytes", bytes: body, contentType } };
  }
  if (kind.resource === "pods") return forward(call, podTarget(call), path);
  if (kind.resource === "services") return forward(call, serviceTarget(call), path);
  throw notFound(kind, info.name);
}

function toDirectory({ request }: Call): ApiResponse {
  const query = request.query.size > 0 ? `?${request.query}` : "";
  return {
    code: 301,
    headers: { location: `${request.path}/${query}` },
    body: { kind: "bytes", bytes: Buffer.alloc(0), contentType: "text/plain" },
  };
}

interface Target {
  readonly scheme: string;
  readonly host: string;
  readonly port: number;
}

/** `[scheme:]name[:port]` */
function partsOf(text: string): { scheme: string; name: string; port: string } {
  const parts = text.split(":");
  if (parts.length === 3) return { scheme: parts[0] || "http", name: parts[1]!, port: parts[2]! };
  return { scheme: "http", name: parts[0]!, port: parts[1] ?? "" };
}

function podTarget({ server, info, kind }: Call): Target {
  const { scheme, name, port } = partsOf(info.name);
  const pod = server.reader.get(resources.pods, info.namespace, name);
  if (!pod) throw notFound(kind, name);
  const host = pod.status?.podIP;
  if (!host) throw badRequest(`address not allowed: pod ${name} has no address`);
  return { scheme, host, port: Number(port) || firstPort(pod) };
}

function firstPort(pod: Pod): number {
  return pod.spec?.containers.flatMap((container) => container.ports ?? [])[0]?.containerPort ?? 80;
}

function serviceTarget({ server, info, kind }: Call): Target {
  const { scheme, name, port } = partsOf(info.name);
  const service: Service | undefined = server.reader.get(resources.services, info.namespace, name);
  if (!service) throw notFound(kind, name);
  const ports = service.spec?.ports ?? [];
  const chosen = port === "" ? ports[0] : ports.find((one) => one.name === port || String(one.port) === port);
  const slices = server.reader
    .list(resources.endpointSlices, info.namespace)
    .filter((slice) => slice.metadata.labels?.["kubernetes.io/service-name"] === name);
  for (const slice of slices) {
    const endpoint = slice.endpoints?.find((one) => one.conditions?.ready !== false);
    const at = slice.ports?.find((one) => (one.name ?? "") === (chosen?.name ?? ""));
    if (endpoint?.addresses[0] && at?.port) return { scheme, host: endpoint.addresses[0], port: at.port };
  }
  throw failure(503, "ServiceUnavailable", `no endpoints available for service "${info.name}"`);
}

const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
  "content-length",
  "authorization",
]);

function forward(call: Call, target: Target, path: string): Promise<ApiResponse> {
  const { request } = call;
  const headers = Object.fromEntries(
    Object.entries(request.headers).filter(([name, value]) => value !== undefined && !HOP_BY_HOP.has(name)),
  );
  const query = request.query.size > 0 ? `?${request.query}` : "";
  const module = target.scheme === "https" ? https : http;
  return new Promise((resolve, reject) => {
    const outgoing = module.request(
      {
        host: target.host,
        port: target.port,
        method: request.method,
        path: encodeURI(path) + query,
        headers: headers as Http.OutgoingHttpHeaders,
        agent: false,
        timeout: 30_000,
        ...(target.scheme === "https" ? { rejectUnauthorized: false } : {}),
        ...(request.signal ? { signal: request.signal } : {}),
      },
      (response) => void answerOf(call, target, path, response).then(resolve, reject),
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error("i/o timeout")));
    outgoing.on("error", (error) =>
      reject(failure(503, "ServiceUnavailable", `error trying to reach service: ${error.message}`)),
    );
    if (request.body && "bytes" in request.body) Readable.from([request.body.bytes]).pipe(outgoing);
    else outgoing.end();
  });
}

/** The site's answer, its links and redirections leading through the proxy. */
async function answerOf(
  { request }: Call,
  { host, port }: Target,
  path: string,
  response: Http.IncomingMessage,
): Promise<ApiResponse> {
  const kept = Object.entries(response.headers).filter(
    ([name, value]) => value !== undefined && !HOP_BY_HOP.has(name) && name !== "content-type",
  );
  const headers = Object.fromEntries(kept) as Record<string, string>;
  const place = {
    prefix: request.path.slice(0, request.path.length - path.length),
    targetHost: `${host}:${port}`,
    requestHost: String(request.headers.host ?? ""),
  };
  if (headers.location !== undefined) headers.location = rewriteLink(headers.location, place);
  const contentType = response.headers["content-type"] ?? "text/plain";
  const code = response.statusCode ?? 502;
  const unpack = UNPACK[headers["content-encoding"] ?? ""];
  if (!/^text\/html\b/i.test(contentType) || !unpack)
    return { code, headers, body: { kind: "stream", stream: response, contentType } };
  const page = await unpack(await buffer(response));
  delete headers["content-encoding"];
  // by characters of one byte each, whatever the page's own encoding is: links are in ASCII
  const bytes = Buffer.from(rewriteHtml(page.toString("latin1"), place), "latin1");
  return { code, headers, body: { kind: "bytes", bytes, contentType } };
}

/** How pages are read that links are looked for in; others pass as they are. */
const UNPACK: Readonly<Record<string, (bytes: Buffer) => Promise<Buffer>>> = {
  "": async (bytes) => bytes,
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
};
