import { Entry } from "./entry.ts";
import { StoreError } from "./errors.ts";
import type { Change, ListOptions, ListPage, Store, StoredObject, StoreObject, WriteOptions } from "./port.ts";
import { SortedKeys } from "./sorted-keys.ts";
import { Watchers } from "./watchers.ts";
import { ChangeWindow } from "./window.ts";

/** Where writes become durable. Batches are handed over one at a time, in order. */
export interface Journal {
  /** What is there already, in order of key. */
  load(): Iterable<Entry>;
  /** The revision to go on from: no revision up to it may be used again. */
  readonly revision: number;
  /** Revisions up to this one may be used by writes that are not durable: a restart goes on behind it. */
  readonly reserved: number;
  /** Resolves when all is durable; rejects when nothing of it is. `revision` is the last one of the batch. */
  append(batch: readonly JournalWrite[], revision: number): Promise<void>;
  /** The last revision, when nothing is written any more. */
  close(revision: number): Promise<void>;
}

export type JournalWrite =
  | { readonly type: "put"; readonly entry: Entry }
  | { readonly type: "delete"; readonly key: string };

export interface VersionedOptions {
  /** Changes that stay known for watches and snapshots: at least so many. Default 10,000. */
  readonly window?: number;
}

interface PendingWrite {
  readonly change: Change;
  readonly durable: boolean;
  resolve(entry: StoredObject): void;
  reject(error: unknown): void;
}

/** The store over a journal: objects in memory, writes visible in revision order once the journal has them. */
export function createVersionedStore(journal: Journal, options: VersionedOptions = {}): Store {
  const entries = new Map<string, StoredObject>();
  const keys = new SortedKeys();
  for (const entry of journal.load()) {
    entries.set(entry.key, entry);
    keys.add(entry.key);
  }
  let revision = journal.revision;
  /** Last revision that was given to a write, visible or not. */
  let assigned = revision;
  const window = new ChangeWindow(revision, options.window ?? 10_000);
  const watchers = new Watchers();
  /** What keys hold once all writes under way are through; undefined = deleted. */
  const latest = new Map<string, StoredObject | undefined>();
  let queue: PendingWrite[] = [];
  let flushing: Promise<void> | undefined;
  let closed = false;

  const current = (key: string) => (latest.has(key) ? latest.get(key) : entries.get(key));

  function submit(change: Change, write?: WriteOptions): Promise<StoredObject> {
    latest.set(change.key, change.type === "delete" ? undefined : change.current);
    return new Promise((resolve, reject) => {
      queue.push({ change, durable: !write?.volatile, resolve, reject });
      flushing ??= flush();
    });
  }

  /** Hands what has gathered to the journal until nothing is left: writes that come meanwhile form the next batch. */
  async function flush(): Promise<void> {
    // one turn, so that writes of the same turn share a batch
    await Promise.resolve();
    while (queue.length > 0) {
      const batch = queue;
      queue = [];
      const writes = batch.filter((write) => write.durable).map(({ change }) => journalWrite(change));
      try {
        const last = batch.at(-1)!.change.revision;
        if (writes.length > 0 || last > journal.reserved) await journal.append(writes, last);
      } catch (error) {
        fail([...batch, ...queue], error);
        continue;
      }
      for (const write of batch) publish(write);
    }
    flushing = undefined;
  }

  /** Nothing of these writes happened; those behind them may build on them, so they fail too. */
  function fail(writes: readonly PendingWrite[], error: unknown): void {
    queue = [];
    latest.clear();
    for (const write of writes) write.reject(error);
  }

  function publish({ change, resolve }: PendingWrite): void {
    const { key } = change;
    if (change.type === "delete") {
      entries.delete(key);
      keys.remove(key);
    } else {
      if (!entries.has(key)) keys.add(key);
      entries.set(key, change.current);
    }
    const newest = latest.get(key);
    if (change.type === "delete" ? newest === undefined : newest === change.current) latest.delete(key);
    revision = change.revision;
    window.push(change);
    watchers.dispatch(change);
    resolve(change.current);
  }

  function expect(key: string, at: number): StoredObject {
    const now = current(key);
    if (!now) throw new StoreError("not-found", `there is no ${key}`);
    if (now.revision !== at) throw new StoreError("conflict", `${key} is at revision ${now.revision}, not ${at}`);
    return now;
  }

  function next(key: string, object: StoreObject, created?: number): Entry {
    if (closed) throw new StoreError("closed", "the store is closed");
    const at = ++assigned;
    object.metadata.resourceVersion = String(at);
    return new Entry(key, at, created ?? at, { object });
  }

  return {
    get revision() {
      return revision;
    },
    get compactedRevision() {
      return window.compacted;
    },
    get: (key) => entries.get(key),
    latest: current,
    count: (prefix) => keys.count(prefix),
    list(prefix, list = {}) {
      if (list.revision === undefined || list.revision === revision) return listNow(prefix, list);
      return listThen(prefix, list, list.revision);
    },
    async create(key, object, write) {
      if (current(key)) throw new StoreError("exists", `there is a ${key} already`);
      const entry = next(key, object);
      return submit({ type: "put", key, revision: entry.revision, current: entry, previous: undefined }, write);
    },
    async update(key, object, at, write) {
      const previous = expect(key, at);
      const entry = next(key, object, previous.created);
      return submit({ type: "put", key, revision: entry.revision, current: entry, previous }, write);
    },
    async delete(key, at, object) {
      const previous = expect(key, at);
      const last = object ?? copyWithMetadata(previous.object);
      const entry = next(key, last, previous.created);
      return submit({ type: "delete", key, revision: entry.revision, current: entry, previous });
    },
    watch(prefix, since, listener) {
      // a listener that writes is told of it later, so the past can't grow while it is read
      for (const change of window.since(since, revision)) if (change.key.startsWith(prefix)) listener(change);
      return watchers.add(prefix, listener);
    },
    async [Symbol.asyncDispose]() {
      if (closed) return;
      closed = true;
      await flushing;
      await journal.close(revision);
    },
  };

  function listNow(prefix: string, { after, limit = Infinity }: ListOptions): ListPage {
    const from = after === undefined ? prefix : `${after}\0`;
    const items: StoredObject[] = [];
    for (const key of keys.scan(prefix, from)) {
      if (items.length === limit) break;
      items.push(entries.get(key)!);
    }
    const remaining = items.length === limit ? keys.count(prefix, from) - items.length : 0;
    return { items, revision, remaining };
  }

  function listThen(prefix: string, { after, limit = Infinity }: ListOptions, at: number): ListPage {
    const overlay = window.overlay(prefix, at, revision);
    const all = new Set([...keys.scan(prefix), ...overlay.keys()]);
    const items: StoredObject[] = [];
    let remaining = 0;
    for (const key of [...all].sort()) {
      const entry = overlay.has(key) ? overlay.get(key) : entries.get(key);
      if (!entry || (after !== undefined && key <= after)) continue;
      if (items.length < limit) items.push(entry);
      else remaining++;
    }
    return { items, revision: at, remaining };
  }
}

function journalWrite(change: Change): JournalWrite {
  return change.type === "delete"
    ? { type: "delete", key: change.key }
    : { type: "put", entry: change.current as Entry };
}

/** The last value, with metadata that may be given the deletion's revision. */
function copyWithMetadata(object: StoreObject): StoreObject {
  return { ...object, metadata: { ...object.metadata } };
}
