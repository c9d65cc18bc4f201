/** A versioned key-value store with watch. It knows keys, objects and revisions, not kinds. */
export interface Store extends AsyncDisposable {
  /** The revision of the last visible write; grows by one with every write, never repeats, survives restarts. */
  readonly revision: number;
  /** Watches may start after this revision or any later one. */
  readonly compactedRevision: number;
  get(key: string): StoredObject | undefined;
  /**
   * The value that the next write of the key builds on: the visible one, or that of a write under way. For read-modify-write
   * loops only: what it gives may still fail to become durable, and then a write on top of it fails too.
   */
  latest(key: string): StoredObject | undefined;
  /**
   * Entries whose key starts with `prefix`, ordered by key: a consistent snapshot at `revision` (default: now).
   * @throws {StoreError} `compacted` when that snapshot is no longer to be had, `future` when it is not yet.
   */
  list(prefix: string, options?: ListOptions): ListPage;
  /** Number of entries under `prefix`. */
  count(prefix: string): number;
  /**
   * Writes resolve once the write is durable and visible, in revision order. The object is taken over (not copied) and
   * frozen by convention; the store sets `metadata.resourceVersion`.
   * @throws {StoreError} `exists`
   */
  create(key: string, object: StoreObject, options?: WriteOptions): Promise<StoredObject>;
  /** Replaces the value if its revision is still `revision`. @throws {StoreError} `not-found`, `conflict` */
  update(key: string, object: StoreObject, revision: number, options?: WriteOptions): Promise<StoredObject>;
  /**
   * Removes the key if its revision is still `revision`; watchers see `object` (default: the last value) at the
   * deletion's revision. @throws {StoreError} `not-found`, `conflict`
   */
  delete(key: string, revision: number, object?: StoreObject): Promise<StoredObject>;
  /**
   * Calls `listener` synchronously, in order, for every change of a key under `prefix` after `since`; changes of the past
   * come before this returns. @throws {StoreError} `compacted`, `future`
   */
  watch(prefix: string, since: number, listener: (change: Change) => void): Disposable;
}

export interface StoreObject {
  metadata: { resourceVersion?: string };
}

export interface StoredObject {
  readonly key: string;
  /** `metadata.resourceVersion` as a number. */
  readonly revision: number;
  /** Revision of the create. */
  readonly created: number;
  /** Read-only. */
  readonly object: StoreObject;
  /** The object as JSON (UTF-8), serialized once. */
  json(): Buffer;
}

export interface ListOptions {
  /** Only keys after this one. */
  after?: string;
  limit?: number;
  revision?: number;
}

export interface ListPage {
  readonly items: readonly StoredObject[];
  readonly revision: number;
  /** Entries of the snapshot behind the last item; 0 at the end. */
  readonly remaining: number;
}

export interface WriteOptions {
  /**
   * Not written to disk: for facts that lose their meaning on a restart (a node's own lease and heartbeat). After a
   * restart the key has its last durable value, or is absent.
   */
  volatile?: boolean;
}

export interface Change {
  readonly type: "put" | "delete";
  readonly key: string;
  readonly revision: number;
  /** For a delete: the final object, its resourceVersion being the deletion's revision. */
  readonly current: StoredObject;
  /** The value before; absent for a create. */
  readonly previous: StoredObject | undefined;
}

export type StoreErrorCode =
  | "exists"
  | "not-found"
  | "conflict"
  | "compacted"
  | "future"
  | "corrupt"
  | "full"
  | "closed";
