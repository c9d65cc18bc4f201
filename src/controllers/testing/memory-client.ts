import { type Clock, deepClone, deepEqual, deepFreeze, type Random } from "#base";
import type { Client, DeleteOptions, List, ListOptions, Patch, WatchOptions, WriteOptions } from "#client";
import {
  alreadyExists,
  type ApiObject,
  apiVersionOf,
  type KindRow,
  kindTable,
  modified,
  notFound,
  type Resource,
  type WatchEvent,
} from "#kinds";

type Stored = ApiObject;
type Listener = (resource: Resource<unknown>, event: WatchEvent<Stored>) => void;

export interface MemoryClient extends Client {
  /** Makes the next calls that `when` picks fail with `error`. */
  failNext(when: (verb: string, resource: string, name: string) => boolean, error: unknown, times?: number): void;
  /** `verb resource[/subresource] name` of every write, in order. */
  readonly writes: string[];
}

/**
 * The API as far as controllers need it, for their unit tests: storage with watch, optimistic concurrency, generateName,
 * generations, the status subresource, bindings, finalizers, graceful deletion of placed pods. No defaulting, no validation,
 * no admission: what depends on those is tested against the API server.
 */
export function createMemoryClient(deps: { clock: Clock; random: Random }): MemoryClient {
  const kinds = new Map<string, Map<string, Stored>>();
  const listeners = new Set<Listener>();
  const log: { resource: Resource<unknown>; event: WatchEvent<Stored>; revision: number }[] = [];
  const failures: { when: (verb: string, resource: string, name: string) => boolean; error: unknown; times: number }[] =
    [];
  const writes: string[] = [];
  let revision = 1;

  const tableOf = (resource: Resource<unknown>) => {
    const key = `${resource.group}/${resource.resource}`;
    let table = kinds.get(key);
    if (!table) {
      table = new Map();
      kinds.set(key, table);
    }
    return table;
  };
  const keyOf = (resource: Resource<unknown>, namespace: string | undefined, name: string) =>
    resource.namespaced ? `${namespace}/${name}` : name;
  const publish = (resource: Resource<unknown>, type: WatchEvent["type"], object: Stored) => {
    const event = { type, object };
    log.push({ resource, event, revision });
    for (const listener of [...listeners]) listener(resource, event);
  };
  const save = (resource: Resource<unknown>, key: string, object: Stored, type: "ADDED" | "MODIFIED") => {
    revision++;
    object.metadata.resourceVersion = String(revision);
    const frozen = deepFreeze(object);
    tableOf(resource).set(key, frozen);
    publish(resource, type, frozen);
    return frozen;
  };
  const drop = (resource: Resource<unknown>, key: string) => {
    const last = deepClone(tableOf(resource).get(key)!) as Stored;
    tableOf(resource).delete(key);
    revision++;
    last.metadata.resourceVersion = String(revision);
    publish(resource, "DELETED", deepFreeze(last));
    return last;
  };
  const read = (resource: Resource<unknown>, namespace: string | undefined, name: string) => {
    const found = tableOf(resource).get(keyOf(resource, namespace, name));
    if (!found) throw notFound(resource, name);
    return found;
  };
  /** Every call takes a turn of the event loop, as a real one does. */
  const turn = async (verb: string, resource: Resource<unknown>, name: string, sub?: string) => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (verb !== "get" && verb !== "list") writes.push(`${verb} ${resource.resource}${sub ? `/${sub}` : ""} ${name}`);
    const failure = failures.find(({ when }) => when(verb, resource.resource, name));
    if (!failure) return;
    if (--failure.times <= 0) failures.splice(failures.indexOf(failure), 1);
    throw failure.error;
  };
  const replace = (resource: Resource<unknown>, old: Stored, next: Stored, sub?: string) => {
    const result = deepClone(sub ? { ...old, status: next.status } : { ...next, status: old.status }) as Stored;
    if (sub === "status") result.metadata = { ...deepClone(old.metadata) };
    if (result.status === undefined) delete result.status;
    if (sub === "finalize") (result.spec as { finalizers?: unknown }) = next.spec as never;
    const meta = result.metadata;
    Object.assign(meta, { uid: old.metadata.uid, creationTimestamp: old.metadata.creationTimestamp });
    if (old.metadata.deletionTimestamp) meta.deletionTimestamp = old.metadata.deletionTimestamp;
    const changed = !deepEqual(result.spec, old.spec);
    meta.generation = (old.metadata.generation ?? 1) + (changed && !sub ? 1 : 0);
    if (
      deepEqual(
        { ...result, metadata: { ...meta, resourceVersion: "" } },
        { ...old, metadata: { ...old.metadata, resourceVersion: "" } },
      )
    ) {
      return old;
    }
    const key = keyOf(resource, meta.namespace, meta.name);
    const over = meta.deletionTimestamp && !meta.finalizers?.length && meta.deletionGracePeriodSeconds === undefined;
    const saved = save(resource, key, result, "MODIFIED");
    const emptyNamespace =
      resource.resource === "namespaces" && !(result.spec as { finalizers?: unknown[] })?.finalizers?.length;
    if (over && (resource.resource !== "namespaces" || emptyNamespace)) drop(resource, key);
    return saved;
  };

  const client = {
    writes,
    failNext(when, error, times = 1) {
      failures.push({ when, error, times });
    },
    async get(resource, name, options) {
      await turn("get", resource, name);
      return read(resource, options?.namespace, name);
    },
    async list(resource, options?: ListOptions): Promise<List<never>> {
      await turn("list", resource, "");
      const items = [...tableOf(resource).values()].filter(
        ({ metadata }) => !options?.namespace || metadata.namespace === options.namespace,
      );
      return { items: items as never, metadata: { resourceVersion: String(revision) } };
    },
    async create(resource, object, options?: WriteOptions) {
      const given = object as unknown as Stored;
      const name = options?.name ?? given.metadata?.name ?? "";
      await turn("create", resource, name || (given.metadata.generateName ?? ""), options?.subresource);
      const namespace = resource.namespaced ? (options?.namespace ?? given.metadata.namespace) : undefined;
      if (options?.subresource === "binding") return bind(resource, namespace, name, given);
      if (options?.subresource) throw new Error(`no subresource ${options.subresource} here`);
      const copy = deepClone(given) as Stored;
      copy.apiVersion ??= apiVersionOf(resource);
      copy.kind ??= resource.kind;
      copy.metadata.name ||= `${copy.metadata.generateName}${deps.random.suffix(5)}`;
      if (namespace) copy.metadata.namespace = namespace;
      const key = keyOf(resource, namespace, copy.metadata.name);
      if (tableOf(resource).has(key)) throw alreadyExists(resource, copy.metadata.name);
      Object.assign(copy.metadata, {
        uid: copy.metadata.uid ?? deps.random.uuid(),
        generation: 1,
        creationTimestamp:
          copy.metadata.creationTimestamp ?? new Date(deps.clock.now()).toISOString().replace(/\.\d+/, ""),
      });
      if (resource.resource === "pods") copy.status ??= { phase: "Pending" };
      return save(resource, key, copy, "ADDED");
    },
    async update(resource, object, options?: WriteOptions) {
      const given = object as unknown as Stored;
      const { namespace, name, resourceVersion } = given.metadata;
      await turn("update", resource, name, options?.subresource);
      const old = read(resource, namespace, name);
      if (resourceVersion && resourceVersion !== old.metadata.resourceVersion) throw modified(resource, name);
      return replace(resource, old, given, options?.subresource);
    },
    async patch(resource, name, patch: Patch, options?: WriteOptions) {
      await turn("patch", resource, name, options?.subresource);
      const old = read(resource, options?.namespace, name);
      if (patch.type === "json") throw new Error("JSON patch is not supported here");
      const next = merge(old, patch.body, patch.type === "strategic") as Stored;
      if (next.metadata.uid !== old.metadata.uid) throw modified(resource, name);
      const wanted = (patch.body as Partial<Stored>).metadata?.resourceVersion;
      if (wanted && wanted !== old.metadata.resourceVersion) throw modified(resource, name);
      return replace(resource, old, next, options?.subresource);
    },
    async delete(resource, name, options?: DeleteOptions) {
      await turn("delete", resource, name);
      const old = read(resource, options?.namespace, name);
      const { uid } = options?.preconditions ?? {};
      if (uid && uid !== old.metadata.uid) throw modified(resource, name);
      const key = keyOf(resource, options?.namespace, name);
      const placed = resource.resource === "pods" && (old.spec as { nodeName?: string } | undefined)?.nodeName;
      const finalizers = [...(old.metadata.finalizers ?? [])];
      if (options?.propagationPolicy === "Foreground") finalizers.push("foregroundDeletion");
      if (options?.propagationPolicy === "Orphan") finalizers.push("orphan");
      const namespace = resource.resource === "namespaces";
      const gracefully = placed && options?.gracePeriodSeconds !== 0;
      if (finalizers.length === 0 && !gracefully && !namespace) return drop(resource, key);
      if (old.metadata.deletionTimestamp) return old;
      const copy = deepClone(old) as Stored;
      if (finalizers.length) copy.metadata.finalizers = [...new Set(finalizers)];
      copy.metadata.deletionTimestamp = new Date(deps.clock.now()).toISOString().replace(/\.\d+/, "");
      if (gracefully) copy.metadata.deletionGracePeriodSeconds = 30;
      if (namespace) copy.status = { ...(copy.status as object), phase: "Terminating" };
      return save(resource, key, copy, "MODIFIED");
    },
    async deleteCollection(resource, options) {
      const items = [...tableOf(resource).values()].filter(({ metadata }) => metadata.namespace === options?.namespace);
      for (const { metadata } of items)
        await client.delete(resource, metadata.name, { ...options, namespace: metadata.namespace });
    },
    watch(resource, options: WatchOptions<never>) {
      const since = Number(options.resourceVersion);
      let stopped = false;
      const mine = (other: Resource<unknown>) => other.resource === resource.resource && other.group === resource.group;
      const inside = ({ metadata }: Stored) => !options.namespace || metadata.namespace === options.namespace;
      const listener: Listener = (other, event) => {
        if (!stopped && mine(other) && inside(event.object)) options.onEvent(event as never);
      };
      queueMicrotask(() => {
        for (const entry of log) if (entry.revision > since) listener(entry.resource, entry.event);
        if (!stopped) listeners.add(listener);
      });
      return {
        stop() {
          stopped = true;
          listeners.delete(listener);
        },
      };
    },
    async request({ path }) {
      return discovery(path);
    },
    async apply() {
      throw new Error("apply is not supported here");
    },
  } as MemoryClient;

  function bind(resource: Resource<unknown>, namespace: string | undefined, name: string, binding: Stored): Stored {
    const old = read(resource, namespace, name);
    const copy = deepClone(old) as Stored;
    const spec = copy.spec as { nodeName?: string };
    if (spec.nodeName) throw modified(resource, name);
    spec.nodeName = (binding.target as { name: string }).name;
    return save(resource, keyOf(resource, namespace, name), copy, "MODIFIED");
  }
  return client;
}

/** `/api/v1`, `/apis`, `/apis/<group>/<version>` from the table of built-in kinds. */
function discovery(path: string): unknown {
  const rows = kindTable as readonly KindRow[];
  const of = (row: KindRow) =>
    row as unknown as {
      group: string;
      version: string;
      resource: string;
      kind: string;
      namespaced: boolean;
      verbs?: string[];
    };
  const [, root, group = "", version = ""] = path.split("/");
  if (root === "apis" && !group) {
    const groups = new Map<string, string[]>();
    for (const row of rows.map(of))
      if (row.group) groups.set(row.group, [...new Set([...(groups.get(row.group) ?? []), row.version])]);
    return {
      groups: [...groups].map(([name, versions]) => ({
        name,
        preferredVersion: { groupVersion: `${name}/${versions[0]}` },
        versions: versions.map((one) => ({ groupVersion: `${name}/${one}`, version: one })),
      })),
    };
  }
  const wanted = root === "api" ? { group: "", version: group || "v1" } : { group, version };
  return {
    resources: rows
      .map(of)
      .filter((row) => row.group === wanted.group && row.version === wanted.version)
      .map((row) => ({
        name: row.resource,
        kind: row.kind,
        namespaced: row.namespaced,
        verbs: row.verbs ?? ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
      })),
  };
}

function merge(target: unknown, patch: unknown, strategic: boolean): unknown {
  if (Array.isArray(patch)) return strategic ? mergeList(Array.isArray(target) ? target : [], patch) : deepClone(patch);
  if (typeof patch !== "object" || patch === null) return patch;
  const base = typeof target === "object" && target !== null && !Array.isArray(target) ? target : {};
  const result: Record<string, unknown> = { ...(base as Record<string, unknown>) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (key.startsWith("$deleteFromPrimitiveList/")) {
      const field = key.slice("$deleteFromPrimitiveList/".length);
      result[field] = ((result[field] as unknown[]) ?? []).filter((item) => !(value as unknown[]).includes(item));
    } else result[key] = merge(result[key], value, strategic);
  }
  return result;
}

/** Lists of objects with `type` or `uid` are merged by it (conditions, ownerReferences); others are replaced. */
function mergeList(target: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const items = patch as Record<string, unknown>[];
  const key = ["type", "uid"].find((one) => typeof items[0] === "object" && items[0] !== null && one in items[0]);
  if (!key) return typeof patch[0] === "string" ? [...new Set([...target, ...patch])] : deepClone([...patch]);
  let result = [...(target as Record<string, unknown>[])];
  for (const item of items) {
    const at = result.findIndex((one) => one[key] === item[key]);
    if (item.$patch === "delete") result = result.filter((one) => one[key] !== item[key]);
    else if (at >= 0) result[at] = merge(result[at], item, true) as Record<string, unknown>;
    else result.push(item);
  }
  return result;
}
