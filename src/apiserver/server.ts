import type { Clock, Logger, Random } from "#base";
import {
  type ApiRequest,
  type ApiResponse,
  failure,
  internalError,
  type NodeConnector,
  type Scheme,
  StatusError,
  type UserInfo,
} from "#kinds";
import { isStoreError, type Store } from "#store";
import { createDiscovery } from "./discovery/discovery.ts";
import { type Health, healthPaths } from "./discovery/health.ts";
import type { OpenApi } from "./openapi/openapi.ts";
import type { VersionInfo } from "./discovery/version.ts";
import { authorize } from "./pipeline/authorize.ts";
import type { Call, ServerContext } from "./pipeline/call.ts";
import { requestInfoOf } from "./pipeline/request-info.ts";
import type { AdmissionPlugin, Authorizer, Reader, RequestInfo, ResourceHooks, VirtualResource } from "./ports.ts";
import { throwStoreError } from "./registry/store-errors.ts";
import { subresource } from "./subresources/route.ts";
import { resourceVerb } from "./verbs/route.ts";

export interface ApiServerDeps {
  readonly store: Store;
  readonly scheme: Scheme;
  readonly reader: Reader;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly authorizer: Authorizer;
  readonly admission: readonly AdmissionPlugin[];
  /** By `group/resource`. */
  readonly hooks?: ReadonlyMap<string, ResourceHooks>;
  /** By `group/resource[/subresource]`. */
  readonly virtual?: ReadonlyMap<string, VirtualResource>;
  connector(node: string): NodeConnector | undefined;
  /** Paths of other parts (`/openapi/v3`, `/metrics`, `/.well-known/…`, aggregated groups); asked after authorization, before discovery. */
  readonly routes?: readonly Route[];
  readonly openapi?: OpenApi;
}

/** Answers paths that are no stored kinds; undefined = not mine. */
export interface Route {
  handle(
    request: ApiRequest,
    info: RequestInfo,
    user: UserInfo,
  ): Promise<ApiResponse | undefined> | ApiResponse | undefined;
}

export interface ApiServerOptions {
  readonly version: VersionInfo;
  /** `host:port` that discovery tells. */
  serverAddress(): string;
  /** Parts of `/readyz` and `/livez`, beside the server's own. */
  readonly health?: Health;
}

/** The API: one call in, one answer out, the same for HTTP and in-process clients. */
export interface ApiServer {
  /** Authorizes and carries out a call. Never throws: failures are answers with a `Status`. */
  handle(request: ApiRequest): Promise<ApiResponse>;
  readonly context: ServerContext;
}

const NOBODY: UserInfo = { username: "system:anonymous", groups: ["system:unauthenticated"] };

/**
 * The life of a request: request info → authorization → (paths of other parts, discovery, health) → kind → verb or
 * subresource; a write goes on through admission, defaults, validation and the store. Who asks was found out by the listener.
 */
export function createApiServer(deps: ApiServerDeps, options: ApiServerOptions): ApiServer {
  const context: ServerContext = {
    store: deps.store,
    scheme: deps.scheme,
    clock: deps.clock,
    random: deps.random,
    logger: deps.logger,
    authorizer: deps.authorizer,
    reader: deps.reader,
    admission: deps.admission,
    hooks: deps.hooks ?? new Map(),
    virtual: deps.virtual ?? new Map(),
    connector: (node) => deps.connector(node),
  };
  const discovery = createDiscovery(deps.scheme, { serverAddress: options.serverAddress });
  const health = healthPaths(options.health ?? {});

  async function route(request: ApiRequest): Promise<ApiResponse> {
    const info = requestInfoOf(request);
    const user = request.user ?? NOBODY;
    const pending = authorize(deps.authorizer, user, info);
    if (pending) await pending;
    const kind = info.isResourceRequest ? deps.scheme.byResource(info.group, info.version, info.resource) : undefined;
    if (!kind) return other(request, info, user);
    if (!kind.namespaced && info.namespace && info.resource !== "namespaces") throw notServed();
    const call: Call = { server: context, request, info, kind, user, warnings: new Set() };
    try {
      return withWarnings(await (info.subresource ? subresource(call) : resourceVerb(call)), call.warnings);
    } catch (error) {
      if (isStoreError(error)) throwStoreError(error, kind, info.name);
      if (error instanceof StatusError && call.warnings.size > 0)
        return withWarnings(errorResponse(error), call.warnings);
      throw error;
    }
  }

  async function other(request: ApiRequest, info: RequestInfo, user: UserInfo): Promise<ApiResponse> {
    for (const one of deps.routes ?? []) {
      const answer = await one.handle(request, info, user);
      if (answer) return answer;
    }
    const answer = discovery.handle(request) ?? health(request) ?? (await deps.openapi?.handle(request));
    if (answer) return answer;
    if (request.path === "/version")
      return { code: 200, headers: {}, body: { kind: "object", object: options.version } };
    if (request.path === "/")
      return {
        code: 200,
        headers: {},
        body: {
          kind: "object",
          object: {
            paths: [
              "/api",
              "/apis",
              "/healthz",
              "/livez",
              "/metrics",
              "/openapi/v2",
              "/openapi/v3",
              "/readyz",
              "/version",
            ],
          },
        },
      };
    throw notServed();
  }

  return {
    context,
    async handle(request) {
      try {
        return await route(request);
      } catch (error) {
        if (error instanceof StatusError) return errorResponse(error);
        deps.logger.error("a request failed unexpectedly", { method: request.method, path: request.path, error });
        return errorResponse(internalError(error));
      }
    },
  };
}

function notServed(): StatusError {
  return failure(404, "NotFound", "the server could not find the requested resource", {});
}

function errorResponse(error: StatusError): ApiResponse {
  const retry = error.status.details?.retryAfterSeconds;
  return {
    code: error.code,
    headers: retry ? { "retry-after": String(retry) } : {},
    body: { kind: "object", object: error.status },
  };
}

/** `Warning: 299 - "text"`; RFC 7234 wants quotes and backslashes escaped, and no line ends. */
function withWarnings(response: ApiResponse, warnings: ReadonlySet<string>): ApiResponse {
  if (warnings.size === 0) return response;
  const warning = [...warnings].map((text) => `299 - "${text.replace(/[\r\n]+/g, " ").replace(/[\\"]/g, "\\$&")}"`);
  return { ...response, headers: { ...response.headers, warning } };
}
