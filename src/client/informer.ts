import type { Clock, DeepReadonly, Logger, Random } from "#base";
import { type ApiObject, isStatus, type Resource, type WatchEvent } from "#kinds";
import type { ChangeHandler, Client, Informer, Watch } from "./port.ts";

export interface InformerFilter {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
}

export interface InformerDeps {
  client: Client;
  clock: Clock;
  random: Random;
  logger: Logger;
}

/** First wait after a failed list or watch, milliseconds; doubles up to MAX_RETRY. */
const FIRST_RETRY = 50;
const MAX_RETRY = 30_000;

/**
 * A cache kept by list, then watch. Its states: listing → watching → (lost) → watching again from the last revision →
 * (410) → listing. What changed while it was not watching is found by comparing with the new list.
 */
export function createInformer<T>(
  deps: InformerDeps,
  resource: Resource<T>,
  filter: InformerFilter = {},
): Informer<T> & { start(): void; stop(): void } {
  type Item = DeepReadonly<T>;
  const cache = new Map<string, Item>();
  const indexes = new Map<string, Index<Item>>();
  const handlers = new Set<ChangeHandler<T>>();
  const synced = Promise.withResolvers<void>();
  let state: "new" | "running" | "stopped" = "new";
  let hasSynced = false;
  let watch: Watch | undefined;
  const stopping = new AbortController();

  function put(item: Item): void {
    const key = keyOf(item);
    const previous = cache.get(key);
    if (previous && revisionOf(previous) === revisionOf(item)) return;
    cache.set(key, item);
    for (const index of indexes.values()) index.replace(key, previous, item);
    for (const handler of handlers) previous ? handler.update?.(item, previous) : handler.add?.(item);
  }
  function drop(key: string, last?: Item): void {
    const previous = cache.get(key);
    if (!previous) return;
    cache.delete(key);
    for (const index of indexes.values()) index.replace(key, previous, undefined);
    for (const handler of handlers) handler.delete?.(last ?? previous);
  }

  async function relist(): Promise<string> {
    const list = await deps.client.list(resource, { ...filter, resourceVersion: "0", signal: stopping.signal });
    const present = new Set<string>();
    for (const item of list.items) {
      present.add(keyOf(item));
      put(item);
    }
    for (const key of [...cache.keys()]) if (!present.has(key)) drop(key);
    hasSynced = true;
    synced.resolve();
    return list.metadata.resourceVersion;
  }

  /** Watches until the watch ends; gives the revision to go on from, undefined when a new list is needed. */
  function follow(from: string): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      let last = from;
      const onEvent = (event: WatchEvent<Item>) => {
        last = revisionOf(event.object);
        if (event.type === "DELETED") drop(keyOf(event.object), event.object);
        else if (event.type !== "BOOKMARK") put(event.object);
      };
      const onEnd = (error?: unknown) => {
        if (error === undefined) resolve(last);
        else if (isStatus(error, "Expired", "Gone")) resolve(undefined);
        else reject(error);
      };
      watch = deps.client.watch<T>(resource, {
        ...filter,
        resourceVersion: from,
        allowBookmarks: true,
        onEvent,
        onEnd,
      });
    });
  }

  async function run(): Promise<void> {
    let revision: string | undefined;
    let retry = FIRST_RETRY;
    while (state === "running") {
      const since = deps.clock.monotonic();
      try {
        if (revision === undefined) revision = await relist();
        if (state !== "running") return;
        revision = await follow(revision);
      } catch (error) {
        if (state !== "running") return;
        deps.logger.warn("watching failed", { resource: resource.resource, error });
      }
      if (deps.clock.monotonic() - since > 5000) retry = FIRST_RETRY;
      const pause = retry * (1 + deps.random.next());
      retry = Math.min(MAX_RETRY, retry * 2);
      await deps.clock.sleep(pause, { signal: stopping.signal }).catch(() => {});
    }
  }

  return {
    resource,
    get hasSynced() {
      return hasSynced;
    },
    synced: (signal) => (signal ? raceAbort(synced.promise, signal) : synced.promise),
    get: (namespace, name) => cache.get(resource.namespaced ? `${namespace ?? ""}/${name}` : name),
    list: (namespace) => {
      const all = [...cache.values()];
      return namespace === undefined ? all : all.filter((item) => (item as ApiObject).metadata.namespace === namespace);
    },
    byIndex(name, value) {
      const index = indexes.get(name);
      if (!index) throw new Error(`informer of ${resource.resource} has no index ${name}`);
      return [...(index.byValue.get(value) ?? [])].map((key) => cache.get(key)!);
    },
    addIndex(name, keys) {
      if (indexes.has(name)) return;
      const index = createIndex(keys);
      indexes.set(name, index);
      for (const [key, item] of cache) index.replace(key, undefined, item);
    },
    onChange(handler) {
      handlers.add(handler);
      for (const item of cache.values()) handler.add?.(item);
      return { [Symbol.dispose]: () => void handlers.delete(handler) };
    },
    start() {
      if (state !== "new") return;
      state = "running";
      void run();
    },
    stop() {
      state = "stopped";
      watch?.stop();
      stopping.abort(new Error("informer stopped"));
    },
  };
}

interface Index<Item> {
  byValue: Map<string, Set<string>>;
  replace(key: string, previous: Item | undefined, item: Item | undefined): void;
}

function createIndex<Item>(keys: (item: Item) => readonly string[]): Index<Item> {
  const byValue = new Map<string, Set<string>>();
  return {
    byValue,
    replace(key, previous, item) {
      if (previous) {
        for (const value of keys(previous)) {
          const set = byValue.get(value);
          set?.delete(key);
          if (set?.size === 0) byValue.delete(value);
        }
      }
      if (!item) return;
      for (const value of keys(item)) {
        const set = byValue.get(value);
        if (set) set.add(key);
        else byValue.set(value, new Set([key]));
      }
    },
  };
}

/** `namespace/name`, or `name` for a cluster-scoped object. */
export function keyOf(object: unknown): string {
  const { namespace, name } = (object as ApiObject).metadata;
  return namespace ? `${namespace}/${name}` : name;
}

function revisionOf(object: unknown): string {
  return (object as ApiObject).metadata.resourceVersion ?? "";
}

function raceAbort<V>(promise: Promise<V>, signal: AbortSignal): Promise<V> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
