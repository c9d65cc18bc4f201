import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import type { DeepReadonly } from "#base";
import type { ValidatingWebhook } from "#kinds";
import type { Reader } from "../../ports.ts";
import { resolveService } from "./resolve-service.ts";

type ClientConfig = DeepReadonly<ValidatingWebhook["clientConfig"]>;

/** Sends a review to a webhook and gives the parsed answer. @throws Error in the words of the original's HTTP client */
export type PostReview = (config: ClientConfig, body: string, timeoutSeconds: number) => Promise<unknown>;

/** An answer above this is no answer, bytes. */
const MAX_ANSWER = 10 << 20;

interface Destination {
  readonly url: URL;
  readonly address: { readonly host: string; readonly port: number };
  readonly ca: string | undefined;
}

/** Connections are kept and used again, one set for each authority that signs them. */
export function createPostReview({ reader }: { reader: Reader }): PostReview {
  const agents = new Map<string, https.Agent>();
  return async (config, body, timeoutSeconds) => {
    const url = urlOf(config, timeoutSeconds);
    try {
      const destination = { url, address: addressOf(config, url, reader), ca: bundleOf(config) };
      return await send(destination, agentFor(agents, destination), body, timeoutSeconds);
    } catch (error) {
      if (error instanceof AnswerError) throw error;
      throw new Error(`Post ${JSON.stringify(url.href)}: ${dialText(error as NodeJS.ErrnoException)}`, {
        cause: error,
      });
    }
  };
}

function urlOf({ service, url }: ClientConfig, timeoutSeconds: number): URL {
  // the port is shown even where it is the default one, which URL would leave out
  const target = service
    ? new URL(`https://${service.name}.${service.namespace}.svc/${(service.path ?? "").replace(/^\//, "")}`)
    : new URL(url ?? "");
  target.searchParams.set("timeout", `${timeoutSeconds}s`);
  if (!service) return target;
  const port = service.port ?? 443;
  return Object.defineProperty(target, "href", {
    value: `https://${target.hostname}:${port}${target.pathname}${target.search}`,
  });
}

function addressOf({ service }: ClientConfig, url: URL, reader: Reader) {
  if (service) return resolveService(reader, service.namespace, service.name, service.port ?? 443);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { host, port: Number(url.port) || (url.protocol === "http:" ? 80 : 443) };
}

const bundleOf = ({ caBundle }: ClientConfig) =>
  caBundle ? Buffer.from(caBundle, "base64").toString("utf8") : undefined;

function agentFor(agents: Map<string, https.Agent>, { ca, url }: Destination): https.Agent {
  const id = `${url.hostname} ${ca ?? ""}`;
  let agent = agents.get(id);
  if (!agent) {
    agent = new https.Agent({ keepAlive: true, maxFreeSockets: 4, timeout: 60_000 });
    agents.set(id, agent);
  }
  return agent;
}

/** The webhook answered, and not with a review. */
class AnswerError extends Error {
  override readonly name = "AnswerError";
}

function send({ url, address, ca }: Destination, agent: https.Agent, body: string, timeoutSeconds: number) {
  const plain = url.protocol === "http:";
  const signal = AbortSignal.timeout(timeoutSeconds * 1000);
  const options: https.RequestOptions = {
    ...address,
    method: "POST",
    path: url.pathname + url.search,
    headers: {
      "content-type": "application/json",
      accept: "application/json, */*",
      host: url.host,
      "content-length": Buffer.byteLength(body),
      "user-agent": "kube-apiserver-admission",
    },
    signal,
    ...(plain ? {} : { agent, ...(ca ? { ca } : {}) }),
    ...(plain || /^[\d.]+$|:/.test(url.hostname) ? {} : { servername: url.hostname }),
  };
  return new Promise<unknown>((resolve, reject) => {
    const failed = (error: Error) => reject(signal.aborted ? new Error("context deadline exceeded") : error);
    const request = (plain ? http : https).request(options, (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size <= MAX_ANSWER) chunks.push(chunk);
        else request.destroy(new Error("http: response body too large"));
      });
      response.on("error", failed);
      response.on("end", () => {
        try {
          resolve(
            parseAnswer(
              response.statusCode ?? 0,
              Buffer.concat(chunks).toString("utf8"),
              response.headers["content-type"] ?? "",
            ),
          );
        } catch (error) {
          reject(error as Error);
        }
      });
    });
    request.on("error", failed);
    request.end(body);
  });
}

function parseAnswer(code: number, text: string, contentType: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = text;
  }
  const { kind, message } = (parsed ?? {}) as { kind?: string; message?: string };
  if (code < 200 || code > 206) throw new AnswerError((kind === "Status" && message) || codeText(code, text));
  if (text === "")
    throw new AnswerError(`0-length response with status code: ${code} and content type: ${contentType}`);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new AnswerError(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${kindOfJson(parsed)} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
    );
  return parsed;
}

const kindOfJson = (value: unknown): string =>
  Array.isArray(value) ? "array" : value === null ? "null" : typeof value;

const CODES: Readonly<Record<number, string>> = {
  400: "the server rejected our request for an unknown reason",
  401: "the server has asked for the client to provide credentials",
  404: "the server could not find the requested resource",
  405: "the server does not allow this method on the requested resource",
  406: "the server was unable to respond with a content type that the client supports",
  409: "the server reported a conflict",
  415: "the server rejected our request due to an unsupported content type",
  429: "the server has received too many requests and has asked us to try again later",
  503: "the server is currently unable to handle the request",
  504: "the server was unable to return a response in the time allotted, but may still be processing the request",
};

function codeText(code: number, text: string): string {
  if (code === 403) return text;
  if (CODES[code]) return CODES[code];
  if (code >= 500) return `an error on the server (${JSON.stringify(text)}) has prevented the request from succeeding`;
  return `the server responded with the status code ${code} but did not return more information`;
}

/** What went wrong on the way, as Go says it. */
function dialText(error: NodeJS.ErrnoException & { address?: string; port?: number; hostname?: string }): string {
  const at = `${error.address?.includes(":") ? `[${error.address}]` : error.address}:${error.port}`;
  switch (error.code) {
    case "ECONNREFUSED":
      return `dial tcp ${at}: connect: connection refused`;
    case "EHOSTUNREACH":
      return `dial tcp ${at}: connect: no route to host`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `dial tcp: lookup ${error.hostname}: no such host`;
    case "ECONNRESET":
      return "EOF";
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
      return "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `tls: failed to verify certificate: x509: ${otherNames(error.message)}`;
    case "EPROTO":
    case "ERR_SSL_WRONG_VERSION_NUMBER":
      return "http: server gave HTTP response to HTTPS client";
    default:
      return error.message;
  }
}

function otherNames(message: string): string {
  const [, host = ""] = /(?:Host|IP): (\S+?)\.? /.exec(message) ?? [];
  const kind = isIP(host) ? "IP Address" : "DNS";
  const names = [...message.matchAll(new RegExp(`${kind}:([^,\\s]+)`, "g"))].map(([, name]) => name);
  if (names.length > 0) return `certificate is valid for ${names.join(", ")}, not ${host}`;
  return isIP(host)
    ? `cannot validate certificate for ${host} because it doesn't contain any IP SANs`
    : `certificate is not valid for any names, but wanted to match ${host}`;
}
