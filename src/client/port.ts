import type { DeepReadonly } from "#base";
import type { ApiObject, Resource, WatchEvent } from "#kinds";

/** Everything that controllers, scheduler, kubelet, proxy and embedders do with the API. Failures are StatusErrors. */
export interface Client {
  get<T>(resource: Resource<T>, name: string, options?: GetOptions): Promise<DeepReadonly<T>>;
  list<T>(resource: Resource<T>, options?: ListOptions): Promise<List<T>>;
  create<T>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<DeepReadonly<T>>;
  /** PUT: needs `metadata.resourceVersion` for optimistic concurrency. */
  update<T>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<DeepReadonly<T>>;
  patch<T>(resource: Resource<T>, name: string, patch: Patch, options?: WriteOptions): Promise<DeepReadonly<T>>;
  /** Server-side apply; `fieldManager` is required. */
  apply<T>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions & { fieldManager: string; force?: boolean },
  ): Promise<DeepReadonly<T>>;
  delete<T>(resource: Resource<T>, name: string, options?: DeleteOptions): Promise<DeepReadonly<T> | undefined>;
  deleteCollection<T>(resource: Resource<T>, options?: ListOptions & DeleteOptions): Promise<void>;
  /** Events from `resourceVersion` on, until the signal aborts or the server ends it (then the iterator is done). */
  watch<T>(resource: Resource<T>, options: WatchOptions<T>): Watch;
  /** Any path: discovery, `/version`, raw. */
  request(options: {
    method: string;
    path: string;
    query?: Record<string, string>;
    body?: unknown;
    headers?: Record<string, string>;
    signal?: AbortSignal;
  }): Promise<unknown>;
}

export interface GetOptions {
  namespace?: string | undefined;
  /** `status`, `scale`, … */
  subresource?: string;
  resourceVersion?: string;
  signal?: AbortSignal;
}

export interface ListOptions {
  /** Absent: all namespaces. */
  namespace?: string | undefined;
  labelSelector?: string;
  fieldSelector?: string;
  limit?: number;
  continue?: string;
  resourceVersion?: string;
  resourceVersionMatch?: "Exact" | "NotOlderThan";
  signal?: AbortSignal;
}

export interface List<T> {
  readonly items: readonly DeepReadonly<T>[];
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
}

export interface WriteOptions {
  /** Where the object does not carry it (patch, subresources). */
  namespace?: string | undefined;
  /** The object's name where the body is not the object itself (binding, eviction, token). */
  name?: string;
  subresource?: string;
  fieldManager?: string;
  dryRun?: boolean;
  signal?: AbortSignal;
}

export interface DeleteOptions {
  namespace?: string | undefined;
  gracePeriodSeconds?: number;
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
  preconditions?: { uid?: string; resourceVersion?: string };
  signal?: AbortSignal;
}

export type Patch =
  | { type: "merge" | "strategic"; body: unknown }
  | { type: "json"; body: readonly { op: string; path: string; value?: unknown; from?: string }[] };

export interface WatchOptions<T> {
  namespace?: string | undefined;
  labelSelector?: string;
  fieldSelector?: string;
  resourceVersion: string;
  allowBookmarks?: boolean;
  onEvent(event: WatchEvent<DeepReadonly<T>>): void;
  /** Ended by the server or lost; called once. Not called after `stop`. */
  onEnd(error?: unknown): void;
}

export interface Watch {
  stop(): void;
}

/** A cached, indexed, self-repairing view of one resource: list, then watch, again after every loss. */
export interface Informer<T> {
  readonly resource: Resource<T>;
  /** Resolves when the first list is in the cache. */
  synced(signal?: AbortSignal): Promise<void>;
  readonly hasSynced: boolean;
  get(namespace: string | undefined, name: string): DeepReadonly<T> | undefined;
  /** All, or those of a namespace. Order: not defined. */
  list(namespace?: string): readonly DeepReadonly<T>[];
  /** Objects for which the index function `name` gave `value`. */
  byIndex(name: string, value: string): readonly DeepReadonly<T>[];
  addIndex(name: string, keys: (object: DeepReadonly<T>) => readonly string[]): void;
  /** Handlers are called synchronously after the cache changed; objects that are there already come as `add`. */
  onChange(handler: ChangeHandler<T>): Disposable;
}

export interface ChangeHandler<T> {
  add?(object: DeepReadonly<T>): void;
  update?(object: DeepReadonly<T>, previous: DeepReadonly<T>): void;
  delete?(object: DeepReadonly<T>): void;
}

/** Informers shared by all who ask for the same resource and filter. */
export interface Informers extends AsyncDisposable {
  for<T>(
    resource: Resource<T>,
    filter?: { namespace?: string; labelSelector?: string; fieldSelector?: string },
  ): Informer<T>;
}

export type { ApiObject };
