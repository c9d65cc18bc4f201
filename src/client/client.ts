import type { ApiBody, ApiObject, ApiRequest, ApiResponse, ObjectMetaLike, Resource, Status, WatchEvent } from "#kinds";
import { apiVersionOf, failure, internalError, StatusError } from "#kinds";
import { pathOf, queryOf } from "./paths.ts";
import type { Client, List, Patch, Watch, WatchOptions, WriteOptions } from "./port.ts";
import type { Transport } from "./transport.ts";

/** A client over a transport. `userAgent` becomes the default field manager of its writes. */
export function createClient(transport: Transport, options: { userAgent: string }): Client {
  const base = { "user-agent": options.userAgent, accept: "application/json", "content-type": "application/json" };

  async function call(request: {
    method: ApiRequest["method"];
    path: string;
    query?: URLSearchParams;
    body?: unknown;
    headers?: Record<string, string>;
    signal?: AbortSignal | undefined;
  }): Promise<unknown> {
    const response = await transport.call({
      method: request.method,
      path: request.path,
      query: request.query ?? new URLSearchParams(),
      headers: request.headers ? { ...base, ...request.headers } : base,
      ...(request.body === undefined ? {} : { body: { object: request.body } }),
      ...(request.signal ? { signal: request.signal } : {}),
    });
    return contentOf(response);
  }

  const writeQuery = (write: WriteOptions | undefined, more: Record<string, string | boolean | undefined> = {}) =>
    queryOf({ fieldManager: write?.fieldManager, dryRun: write?.dryRun ? "All" : undefined, ...more });

  const target = <T>(resource: Resource<T>, object: T | undefined, write?: WriteOptions) => {
    const metadata = (object as ApiObject | undefined)?.metadata as ObjectMetaLike | undefined;
    return {
      namespace: write?.namespace ?? metadata?.namespace,
      name: write?.name ?? metadata?.name,
      subresource: write?.subresource,
      resource,
    };
  };
  const typed = <T>(resource: Resource<T>, object: T): unknown =>
    (object as ApiObject).kind ? object : { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };

  const client = {
    get: (resource, name, get) =>
      call({
        method: "GET",
        path: pathOf(resource, { ...get, name }),
        query: queryOf({ resourceVersion: get?.resourceVersion }),
        signal: get?.signal,
      }),

    async list(resource, list) {
      const { namespace, signal, ...query } = list ?? {};
      const result = (await call({
        method: "GET",
        path: pathOf(resource, { namespace }),
        query: queryOf(query),
        signal,
      })) as List<never>;
      return { items: result.items ?? [], metadata: result.metadata };
    },

    create(resource, object, write) {
      const at = target(resource, object, write);
      const path = pathOf(resource, write?.subresource ? at : { namespace: at.namespace });
      return call({
        method: "POST",
        path,
        query: writeQuery(write),
        body: typed(resource, object),
        signal: write?.signal,
      });
    },

    update(resource, object, write) {
      const path = pathOf(resource, target(resource, object, write));
      return call({
        method: "PUT",
        path,
        query: writeQuery(write),
        body: typed(resource, object),
        signal: write?.signal,
      });
    },

    patch: (resource, name, patch, write) =>
      call({
        method: "PATCH",
        path: pathOf(resource, { ...write, name }),
        query: writeQuery(write),
        body: patch.body,
        headers: { "content-type": PATCH_TYPES[patch.type] },
        signal: write?.signal,
      }),

    apply: (resource, object, write) =>
      call({
        method: "PATCH",
        path: pathOf(resource, target(resource, object, write)),
        query: writeQuery(write, { force: write.force }),
        body: typed(resource, object),
        headers: { "content-type": "application/apply-patch+yaml" },
        signal: write.signal,
      }),

    delete: (resource, name, remove) =>
      call({
        method: "DELETE",
        path: pathOf(resource, { namespace: remove?.namespace, name }),
        body: deleteOptions(remove),
        signal: remove?.signal,
      }),

    async deleteCollection(resource, remove) {
      await call({
        method: "DELETE",
        path: pathOf(resource, { namespace: remove?.namespace }),
        query: queryOf({ labelSelector: remove?.labelSelector, fieldSelector: remove?.fieldSelector }),
        body: deleteOptions(remove),
        signal: remove?.signal,
      });
    },

    watch: (resource, watch) => startWatch(transport, base, resource, watch),

    request: ({ method, path, query, body, headers, signal }) =>
      call({
        method: method as ApiRequest["method"],
        path,
        query: new URLSearchParams(query),
        body,
        ...(headers ? { headers } : {}),
        signal,
      }),
  } as Client;
  return client;
}

const PATCH_TYPES: Record<Patch["type"], string> = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
};

function deleteOptions(remove?: {
  gracePeriodSeconds?: number;
  propagationPolicy?: string;
  preconditions?: object;
}): unknown {
  const { gracePeriodSeconds, propagationPolicy, preconditions } = remove ?? {};
  return {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(preconditions === undefined ? {} : { preconditions }),
  };
}

/** The object of a response. @throws StatusError when the response is a failure. */
function contentOf(response: ApiResponse): unknown {
  const content = objectOf(response.body);
  if (response.code < 400) return content;
  const status = content as Status | undefined;
  if (status?.kind === "Status") throw new StatusError({ ...status, code: status.code ?? response.code });
  throw failure(response.code, "Unknown", `the server answered ${response.code}: ${String(content)}`);
}

function objectOf(body: ApiBody): unknown {
  switch (body.kind) {
    case "object":
      return body.object;
    case "bytes": {
      const text = body.bytes.toString("utf8");
      return /\bjson\b/.test(body.contentType) ? JSON.parse(text) : text;
    }
    case "stream":
    case "watch":
    case "session":
      throw internalError(`a ${body.kind} came where an object was expected`);
  }
}

function startWatch<T>(
  transport: Transport,
  headers: Record<string, string>,
  resource: Resource<T>,
  options: WatchOptions<T>,
): Watch {
  const abort = new AbortController();
  let running: { stop(): void } | undefined;
  let over = false;
  const end = (error?: unknown) => {
    if (over) return;
    over = true;
    options.onEnd(error);
  };
  const query = queryOf({
    watch: true,
    resourceVersion: options.resourceVersion,
    allowWatchBookmarks: options.allowBookmarks,
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
  });
  void (async () => {
    const path = pathOf(resource, { namespace: options.namespace });
    const response = await transport.call({ method: "GET", path, query, headers, signal: abort.signal });
    if (response.body.kind !== "watch") {
      contentOf(response);
      throw internalError(`watching ${path} gave no watch`);
    }
    if (over) return;
    running = response.body.watch.start({
      event(event) {
        if (over) return;
        if (event.type === "ERROR") end(new StatusError(event.object as Status));
        else options.onEvent(event as WatchEvent<never>);
      },
      end: () => end(),
    });
    if (over) running.stop();
  })().catch(end);
  return {
    stop() {
      over = true;
      abort.abort();
      running?.stop();
    },
  };
}
