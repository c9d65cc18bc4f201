import { type Backoff, type Clock, createBackoff, type DeepReadonly, type Logger, messageOf, type Timer } from "#base";
import type { Client, Watch } from "#client";
import { type ApiObject, isStatus, notFound, type Resource } from "#kinds";

/**
 * Single objects of the API that pods of this node use, each watched by name as long as somebody uses it: a node reads what
 * its pods need and nothing else. An `immutable` object is read once and not watched.
 */
export interface ObjectCache extends AsyncDisposable {
  /**
   * Begins or joins the use of an object; `changed` is called after each change of it (also its removal). Dispose to end.
   * `get` gives the object as last seen; it waits for the first read, and asks the API again before it says that there is
   * none.
   */
  use<T extends ApiObject>(resource: Resource<T>, namespace: string, name: string, changed?: () => void): ObjectUse<T>;
}

export interface ObjectUse<T> extends Disposable {
  /** @throws StatusError NotFound, in the words of the kubelet: `configmap "x" not found` */
  get(): Promise<DeepReadonly<T>>;
}

interface Entry {
  readonly resource: Resource<ApiObject>;
  readonly namespace: string;
  readonly name: string;
  object: DeepReadonly<ApiObject> | undefined;
  /** Settled when the object was read once, or reading it failed. */
  first: Promise<void>;
  readonly listeners: Set<() => void>;
  users: number;
  watch: Watch | undefined;
  retry: Timer | undefined;
  readonly abort: AbortController;
}

export function createObjectCache(deps: { client: Client; clock: Clock; logger: Logger }): ObjectCache {
  const { client, clock, logger } = deps;
  const entries = new Map<string, Entry>();
  const backoff: Backoff = createBackoff(clock, { initial: 100, max: 30_000 });

  const set = (entry: Entry, object: DeepReadonly<ApiObject> | undefined) => {
    if (entry.object === object) return;
    const same = object && entry.object?.metadata.resourceVersion === object.metadata.resourceVersion;
    entry.object = object;
    if (!same) for (const listener of entry.listeners) listener();
  };

  const follow = async (key: string, entry: Entry): Promise<void> => {
    const { resource, namespace, name, abort } = entry;
    const where = { namespace, fieldSelector: `metadata.name=${name}` };
    const list = await client.list(resource, { ...where, signal: abort.signal });
    if (abort.signal.aborted) return;
    backoff.reset(key);
    set(entry, list.items[0]);
    if (isImmutable(entry.object)) return;
    entry.watch = client.watch<ApiObject>(resource, {
      ...where,
      resourceVersion: list.metadata.resourceVersion,
      onEvent: ({ type, object }) => {
        if (type === "ADDED" || type === "MODIFIED") set(entry, object);
        else if (type === "DELETED") set(entry, undefined);
        if (isImmutable(entry.object)) entry.watch?.stop();
      },
      onEnd: () => again(key, entry, 0),
    });
    if (isImmutable(entry.object)) entry.watch.stop();
  };

  const again = (key: string, entry: Entry, delay: number) => {
    if (entry.abort.signal.aborted) return;
    entry.retry = clock.setTimer(() => void start(key, entry), delay);
  };
  const start = (key: string, entry: Entry) =>
    follow(key, entry).catch((error: unknown) => {
      if (entry.abort.signal.aborted) return;
      logger.warn("cannot watch an object that a pod uses", { object: key, error: messageOf(error) });
      again(key, entry, backoff.next(key));
    });

  const stop = (key: string, entry: Entry) => {
    entries.delete(key);
    entry.abort.abort();
    entry.watch?.stop();
    entry.retry?.clear();
    backoff.reset(key);
  };

  const readNow = async (entry: Entry): Promise<DeepReadonly<ApiObject>> => {
    const { resource, namespace, name } = entry;
    try {
      const object = await client.get(resource, name, { namespace });
      set(entry, object);
      return object;
    } catch (error) {
      if (isStatus(error, "NotFound")) throw notFound({ group: "", resource: resource.kind.toLowerCase() }, name);
      throw error;
    }
  };

  return {
    use<T extends ApiObject>(resource: Resource<T>, namespace: string, name: string, changed?: () => void) {
      const key = `${resource.resource}/${namespace}/${name}`;
      const entry = entries.get(key) ?? newEntry(resource as unknown as Resource<ApiObject>, namespace, name);
      if (!entries.has(key)) {
        entries.set(key, entry);
        entry.first = start(key, entry);
      }
      entry.users++;
      const listener = () => changed?.();
      entry.listeners.add(listener);
      let open = true;
      return {
        get: async () => {
          await entry.first;
          return (entry.object ?? (await readNow(entry))) as DeepReadonly<T>;
        },
        [Symbol.dispose]() {
          if (!open) return;
          open = false;
          entry.listeners.delete(listener);
          if (--entry.users === 0) stop(key, entry);
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const [key, entry] of entries) stop(key, entry);
    },
  };
}

function newEntry(resource: Resource<ApiObject>, namespace: string, name: string): Entry {
  return {
    resource,
    namespace,
    name,
    object: undefined,
    first: Promise.resolve(),
    listeners: new Set(),
    users: 0,
    watch: undefined,
    retry: undefined,
    abort: new AbortController(),
  };
}

const isImmutable = (object: DeepReadonly<ApiObject> | undefined) => object?.immutable === true;
