import type { Clock, Logger, Random } from "#base";
import {
  type ApiRequest,
  type ApiResponse,
  internalError,
  type NodeConnector,
  type Scheme,
  StatusError,
  type UserInfo,
} from "#kinds";
import { isStoreError, type Store } from "#store";
import { withConversion } from "./crd/converting-store.ts";
import { createDiscovery } from "./discovery/discovery.ts";
import { type Health, healthPaths } from "./discovery/health.ts";
import type { OpenApi } from "./openapi/openapi.ts";
import type { VersionInfo } from "./discovery/version.ts";
import { acceptOf, errorFormatOf } from "./negotiation/accept.ts";
import { createMetrics } from "./metrics.ts";
import { bodyOf } from "./negotiation/shape.ts";
import { authorize } from "./pipeline/authorize.ts";
import type { Call, ServerContext } from "./pipeline/call.ts";
import { requestInfoOf } from "./pipeline/request-info.ts";
import { checkRoute, methodNotAllowed, pathNotServed } from "./pipeline/routing.ts";
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
    checkRoute(kind, info, request.method);
    // what can't be answered is not begun
    acceptOf(request, {
      collection: info.name === "",
      watch: info.verb === "watch",
      shaped: kind.verbs.includes("get"),
    });
    const warnings = new Set(kind.deprecation ? [kind.deprecation] : []);
    const call: Call = { server: context, request, info, kind, user, warnings };
    try {
      const run = (one: Call) => (info.subresource ? subresource(one) : resourceVerb(one));
      const answer = kind.convert
        ? await withConversion(kind, { ...context, watches: info.verb === "watch" }, (shown, store) =>
            run({ ...call, kind: shown, server: { ...context, store } }),
          )
        : await run(call);
      return withWarnings(answer, call.warnings);
    } catch (error) {
      if (isStoreError(error)) throwStoreError(error, kind, info.name);
      if (error instanceof StatusError && call.warnings.size > 0)
        return withWarnings(errorResponse(request, error), call.warnings);
      throw error;
    }
  }

  async function other(request: ApiRequest, info: RequestInfo, user: UserInfo): Promise<ApiResponse> {
    for (const one of deps.routes ?? []) {
      const answer = await one.handle(request, info, user);
      if (answer) return answer;
    }
    if (request.path === "/metrics") return plainText(metrics.text());
    const listed = discovery.handle(request);
    const isVersion = VERSION_PATH.test(request.path);
    if ((listed || isVersion) && request.method !== "GET") throw methodNotAllowed();
    const answer = listed ?? health(request) ?? (await deps.openapi?.handle(request));
    if (answer) return answer;
    if (isVersion) return { code: 200, headers: {}, body: { kind: "object", object: options.version } };
    if (request.path === "/")
      return { code: 200, headers: {}, body: { kind: "object", object: { paths: pathsOf(deps.scheme) } } };
    if (isServedGroup(deps.scheme, request.path)) throw pathNotServed();
    return pageNotFound();
  }

  const metrics = createMetrics({
    store: deps.store,
    scheme: deps.scheme,
    now: () => deps.clock.monotonic(),
    startedAt: deps.clock.now(),
  });

  return {
    context,
    async handle(request) {
      const answered = metrics.begin(request, requestInfoOf(request));
      const response = await answer(request);
      answered(response);
      return response;
    },
  };

  async function answer(request: ApiRequest): Promise<ApiResponse> {
    try {
      return await route(request);
    } catch (error) {
      if (error instanceof StatusError) return errorResponse(request, error);
      deps.logger.error("a request failed unexpectedly", { method: request.method, path: request.path, error });
      return errorResponse(request, internalError(error));
    }
  }
}

const VERSION_PATH = /^\/version\/?$/;

/** Whether a path lies below a group that is there. */
function isServedGroup(scheme: Scheme, path: string): boolean {
  const [root, ...parts] = path.split("/").slice(1);
  if (root === "api") return true;
  return root === "apis" && scheme.all().some(({ group }) => group === parts[0]);
}

function plainText(text: string): ApiResponse {
  const contentType = "text/plain; version=0.0.4; charset=utf-8";
  return { code: 200, headers: {}, body: { kind: "bytes", bytes: Buffer.from(text), contentType } };
}

/** What is behind no router of the API: plain text, as from any web server. */
function pageNotFound(): ApiResponse {
  return {
    code: 404,
    headers: { "x-content-type-options": "nosniff" },
    body: { kind: "bytes", bytes: Buffer.from("404 page not found\n"), contentType: "text/plain; charset=utf-8" },
  };
}

function pathsOf(scheme: Scheme): string[] {
  const groups = scheme
    .all()
    .filter(({ group }) => group !== "")
    .flatMap(({ group, version }) => [`/apis/${group}`, `/apis/${group}/${version}`]);
  return [...new Set([...FIXED_PATHS, ...groups])].sort();
}
const FIXED_PATHS = [
  "/.well-known/openid-configuration",
  "/api",
  "/api/v1",
  "/apis",
  "/apis/",
  "/healthz",
  "/livez",
  "/metrics",
  "/openapi/v2",
  "/openapi/v3",
  "/openapi/v3/",
  "/openid/v1/jwks",
  "/readyz",
  "/version",
];

function errorResponse(request: ApiRequest, error: StatusError): ApiResponse {
  const retry = error.status.details?.retryAfterSeconds;
  return {
    code: error.code,
    headers: retry ? { "retry-after": String(retry) } : {},
    body: bodyOf(error.status, errorFormatOf(request)),
  };
}

/** `Warning: 299 - "text"`; RFC 7234 wants quotes and backslashes escaped, and no line ends. */
function withWarnings(response: ApiResponse, warnings: ReadonlySet<string>): ApiResponse {
  if (warnings.size === 0) return response;
  const warning = [...warnings].map((text) => `299 - "${text.replace(/[\r\n]+/g, " ").replace(/[\\"]/g, "\\$&")}"`);
  return { ...response, headers: { ...response.headers, warning } };
}
