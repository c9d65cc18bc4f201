import type { Duplex, Readable } from "node:stream";
import { type ApiResponse, type ExecSession, internalError, type Session, type Status, StatusError } from "#kinds";
import { queryOf } from "./paths.ts";
import type { Transport } from "./transport.ts";

export interface PodLogQuery {
  container?: string;
  follow?: boolean;
  previous?: boolean;
  timestamps?: boolean;
  sinceSeconds?: number;
  sinceTime?: string;
  tailLines?: number;
  limitBytes?: number;
  signal?: AbortSignal;
}

export interface CommandQuery {
  container?: string;
  stdin?: boolean;
  /** Default true. */
  stdout?: boolean;
  /** Default true without a tty. */
  stderr?: boolean;
  tty?: boolean;
}

/** What flows to and from pods: in-process without a socket, over HTTP by WebSocket. Failures are StatusErrors. */
export interface PodStreams {
  logs(namespace: string, pod: string, query?: PodLogQuery): Promise<Readable>;
  exec(namespace: string, pod: string, command: readonly string[], query?: CommandQuery): Promise<ExecSession>;
  attach(namespace: string, pod: string, query?: CommandQuery): Promise<ExecSession>;
  /** A connection to a port of the pod. */
  connect(namespace: string, pod: string, port: number): Promise<Duplex>;
}

export function createPodStreams(transport: Transport, options: { userAgent: string }): PodStreams {
  const call = (method: "GET", path: string, query: URLSearchParams, signal?: AbortSignal) =>
    transport.call({
      method,
      path,
      query,
      headers: { "user-agent": options.userAgent, accept: "application/json, */*" },
      ...(signal ? { signal } : {}),
    });
  const pathTo = (namespace: string, pod: string, what: string) =>
    `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/${what}`;
  const command = (query: CommandQuery = {}) =>
    queryOf({
      container: query.container,
      stdin: query.stdin || undefined,
      stdout: query.stdout ?? true,
      stderr: query.stderr ?? !query.tty,
      tty: query.tty || undefined,
    });
  const start = async (path: string, query: URLSearchParams): Promise<ExecSession> => {
    const session = sessionOf(await call("GET", path, query));
    if (session.kind !== "exec") throw internalError(`${path} gave a ${session.kind} session`);
    return session.start();
  };
  return {
    async logs(namespace, pod, { signal, ...query } = {}) {
      const response = await call("GET", pathTo(namespace, pod, "log"), queryOf(query), signal);
      if (response.code < 400 && response.body.kind === "stream") return response.body.stream;
      throw errorOf(response);
    },
    exec(namespace, pod, words, query) {
      const all = command(query);
      for (const word of words) all.append("command", word);
      return start(pathTo(namespace, pod, "exec"), all);
    },
    attach: (namespace, pod, query) => start(pathTo(namespace, pod, "attach"), command(query)),
    async connect(namespace, pod, port) {
      const path = pathTo(namespace, pod, "portforward");
      const session = sessionOf(await call("GET", path, new URLSearchParams({ ports: String(port) })));
      if (session.kind !== "portforward") throw internalError(`${path} gave an ${session.kind} session`);
      return session.connect(port);
    },
  };
}

function sessionOf(response: ApiResponse): Session {
  if (response.body.kind === "session") return response.body.session;
  throw errorOf(response);
}

function errorOf({ code, body }: ApiResponse): StatusError {
  const status = body.kind === "object" ? (body.object as Status) : undefined;
  if (status?.kind === "Status") return new StatusError({ ...status, code: status.code ?? code });
  return internalError(`the server answered ${code} with a ${body.kind}`);
}
