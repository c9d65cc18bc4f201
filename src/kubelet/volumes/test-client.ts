import type { DeepReadonly } from "#base";
import type { Client } from "#client";
import { type ApiObject, notFound, type Resource, type TokenRequest, type WatchEvent } from "#kinds";

/** A client on a map of objects, for tests of this room: get, list and watch by name, and the token subresource. */
export interface TestClient {
  readonly client: Client;
  put(resource: Resource, object: ApiObject): void;
  remove(resource: Resource, namespace: string, name: string): void;
  /** `metadata.name` of the watches that are open. */
  readonly watched: readonly string[];
  readonly tokenRequests: readonly TokenRequest[];
  /** Ends all watches, as a server does that restarts. */
  endWatches(): void;
  /** Answers the next token requests; default: a numbered token for the time that was asked for. */
  onToken(answer: (request: TokenRequest, count: number) => TokenRequest["status"]): void;
}

interface OpenWatch {
  readonly prefix: string;
  readonly name: string;
  onEvent(event: WatchEvent<DeepReadonly<ApiObject>>): void;
  onEnd(): void;
}

export function createTestClient(now: () => number): TestClient {
  const objects = new Map<string, ApiObject>();
  const watches = new Set<OpenWatch>();
  const tokenRequests: TokenRequest[] = [];
  let revision = 0;
  let answer: (request: TokenRequest, count: number) => TokenRequest["status"] = (request, count) => ({
    token: `token-${count}`,
    expirationTimestamp: new Date(now() + (request.spec.expirationSeconds ?? 3600) * 1000).toISOString(),
  });
  const keyOf = (resource: Resource, namespace: string | undefined, name: string) =>
    `${resource.resource}/${namespace ?? ""}/${name}`;
  const send = (type: "ADDED" | "MODIFIED" | "DELETED", key: string, object: ApiObject) => {
    for (const watch of watches) if (watch.prefix + watch.name === key) watch.onEvent({ type, object });
  };
  const nameIn = (selector: string | undefined) => selector?.replace("metadata.name=", "") ?? "";
  const client = {
    async get(resource: Resource, name: string, options?: { namespace?: string }) {
      const object = objects.get(keyOf(resource, options?.namespace, name));
      if (!object) throw notFound({ group: resource.group, resource: resource.resource }, name);
      return object;
    },
    async list(resource: Resource, options?: { namespace?: string; fieldSelector?: string }) {
      const object = objects.get(keyOf(resource, options?.namespace, nameIn(options?.fieldSelector)));
      return { items: object ? [object] : [], metadata: { resourceVersion: String(revision) } };
    },
    watch(resource: Resource, options: OpenWatch & { namespace?: string; fieldSelector?: string }) {
      const watch: OpenWatch = {
        prefix: keyOf(resource, options.namespace, ""),
        name: nameIn(options.fieldSelector),
        onEvent: options.onEvent,
        onEnd: options.onEnd,
      };
      watches.add(watch);
      return { stop: () => void watches.delete(watch) };
    },
    async create(_resource: Resource, request: TokenRequest) {
      tokenRequests.push(request);
      return { ...request, status: answer(request, tokenRequests.length) };
    },
  };
  return {
    client: client as unknown as Client,
    put(resource, object) {
      const key = keyOf(resource, object.metadata.namespace, object.metadata.name);
      const type = objects.has(key) ? "MODIFIED" : "ADDED";
      const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++revision) } };
      objects.set(key, stored);
      send(type, key, stored);
    },
    remove(resource, namespace, name) {
      const key = keyOf(resource, namespace, name);
      const object = objects.get(key);
      objects.delete(key);
      revision++;
      if (object) send("DELETED", key, object);
    },
    get watched() {
      return [...watches].map(({ name }) => name).sort();
    },
    tokenRequests,
    endWatches() {
      for (const watch of [...watches]) {
        watches.delete(watch);
        watch.onEnd();
      }
    },
    onToken: (next) => {
      answer = next;
    },
  };
}
