import assert from "node:assert/strict";
import { createFakeClock, type FakeClock, createSeededRandom, silentLogger } from "#base";
import { type ApiRequest, type ApiResponse, createScheme, type WatchEvent } from "#kinds";
import type { Store } from "#store";
import { createMemoryStore } from "../store/memory/mod.ts";
import { ADMIN, type ApiServer, createApiServer, createMastersAuthorizer, createReader, versionInfo } from "./mod.ts";
import { createNamespaceLifecycle } from "./admission/namespace-lifecycle.ts";

type Answer = ApiResponse & { object: any };

export interface Setting {
  readonly clock: FakeClock;
  readonly store: Store;
  readonly server: ApiServer;
  call(method: ApiRequest["method"], target: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  watch(target: string): Promise<{
    readonly events: WatchEvent<any>[];
    stop(): void;
    /** `ADDED name` of each event so far. */
    types(): string[];
    ended(): boolean;
  }>;
}

/** An API server in memory with a fake clock; `call` sends a request as the admin and reads the answer as JSON. */
export function setUp(): Setting {
  const clock = createFakeClock();
  const store = createMemoryStore({ window: 50 });
  const scheme = createScheme();
  const reader = createReader(store, scheme);
  const deps = {
    store,
    scheme,
    reader,
    clock,
    random: createSeededRandom(1),
    logger: silentLogger,
    authorizer: createMastersAuthorizer(),
    admission: [createNamespaceLifecycle({ reader })],
    connector: () => undefined,
  };
  const server = createApiServer(deps, {
    version: versionInfo({ platform: "linux/amd64", runtime: "v26" }),
    serverAddress: () => "127.0.0.1:6443",
  });
  const call = async (
    method: ApiRequest["method"],
    target: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiResponse & { object: any }> => {
    const [path = "", query] = target.split("?");
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const response = await server.handle({
      method,
      path,
      query: new URLSearchParams(query),
      headers: { "content-type": type, ...headers },
      user: ADMIN,
      ...(body === undefined
        ? {}
        : { body: { bytes: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)) } }),
    });
    return {
      ...response,
      object:
        response.body.kind === "object"
          ? JSON.parse((response.body.json?.() ?? Buffer.from(JSON.stringify(response.body.object))).toString())
          : undefined,
    };
  };
  const watch: Setting["watch"] = async (target) => {
    const response = await call("GET", target);
    assert.equal(response.body.kind, "watch");
    const events: WatchEvent<any>[] = [];
    let ended = false;
    const running =
      response.body.kind === "watch"
        ? response.body.watch.start({
            event: (_, json) => events.push(JSON.parse(json().toString())),
            end: () => (ended = true),
          })
        : undefined;
    return {
      events,
      stop: () => running?.stop(),
      types: () => events.map((e) => `${e.type} ${e.object.metadata?.name ?? ""}`),
      ended: () => ended,
    };
  };
  return { clock, store, server, call, watch };
}
