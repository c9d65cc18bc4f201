import { createInformer, type Informer } from "#client";
import { type ApiObject, isStatus, type OwnerReferenceLike, type Resource, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { type DiscoveredResource, discover } from "../runtime/discovery.ts";
import { type AnyObject, ignoreNotFound } from "../runtime/objects.ts";
import { createGraph, FOREGROUND, type Node, ORPHAN } from "./graph.ts";

/** Not watched: objects that nobody owns and that come in great numbers, or that are only views of others. */
const IGNORED = ["/events", "events.k8s.io/events", "/componentstatuses", "/bindings"];
const CONCURRENCY = 20;
/** Between a change of the kinds that are served and a new discovery, milliseconds. */
const DISCOVERY_DELAY = 50;

/**
 * Deletes what has no owner left, and carries out foreground and orphaning deletions, for every kind that discovery shows.
 * https://kubernetes.io/docs/concepts/architecture/garbage-collection/
 */
export function createGarbageCollector(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const recorder = deps.recorder("garbage-collector-controller");
  const graph = createGraph((dependent, reference) => reportForeign(dependent, reference));
  const watched = new Map<string, { informer: Informer<ApiObject> & { stop?(): void }; version: string }>();
  const byKind = new Map<string, DiscoveredResource>();
  const stopping = new AbortController();
  let enqueue: (key: string) => void = () => {};

  function reportForeign(dependent: Node, { apiVersion, kind, name, uid }: OwnerReferenceLike): void {
    const identity = `[${apiVersion}/${kind}, namespace: ${dependent.namespace ?? ""}, name: ${name}, uid: ${uid}]`;
    const target = { ...identityOf(dependent), uid: dependent.uid };
    const message = `ownerRef ${identity} does not exist in namespace "${dependent.namespace ?? ""}"`;
    recorder.event(target, "Warning", "OwnerRefInvalidNamespace", message);
  }

  async function rediscover(): Promise<void> {
    const { resources: found, failed } = await discover(client);
    if (failed.size) deps.logger.warn("some API groups can't be asked for their kinds", { groups: [...failed.keys()] });
    const present = new Set<string>();
    for (const one of found) {
      byKind.set(`${one.group}/${one.kind}`, one);
      const key = `${one.group}/${one.resource}`;
      if (IGNORED.includes(key) || !["delete", "list", "watch"].every((verb) => one.verbs.includes(verb))) continue;
      present.add(key);
      const known = watched.get(key);
      if (known && known.version === one.version) continue;
      known?.informer.stop?.();
      watched.set(key, { informer: informerFor(deps, one), version: one.version });
      if (started) attach(one, watched.get(key)!.informer);
    }
    const groupFailed = (key: string) =>
      [...failed.keys()].some((version) => version.startsWith(`${key.split("/")[0]}/`));
    for (const [key, { informer }] of [...watched]) {
      if (present.has(key) || groupFailed(key)) continue;
      informer.stop?.();
      watched.delete(key);
      for (const object of informer.list()) lookAt(graph.remove(object.metadata.uid ?? ""));
    }
  }
  let started = false;
  const lookAt = (uids: readonly string[]) => {
    for (const uid of uids) enqueue(uid);
  };
  const handlers = (resource: Resource) => ({
    add: (object: AnyObject) => lookAt(graph.put(object, resource)),
    update(object: AnyObject, previous: AnyObject) {
      const { uid } = previous.metadata;
      if (uid && uid !== object.metadata.uid) lookAt(graph.remove(uid));
      if (relevant(object) !== relevant(previous)) lookAt(graph.put(object, resource));
    },
    delete: (object: AnyObject) => lookAt(graph.remove(object.metadata.uid ?? "")),
  });
  const attach = (resource: Resource, informer: Informer<ApiObject>) => void informer.onChange(handlers(resource));

  let timer: { clear(): void } | undefined;
  const kindsChanged = () => {
    timer?.clear();
    timer = clock.setTimer(() => {
      rediscover().catch((error: unknown) => {
        if (!stopping.signal.aborted) deps.logger.warn("asking for the kinds served failed", { error });
      });
    }, DISCOVERY_DELAY);
  };

  const inner = createController(deps, {
    name: "garbage-collector",
    concurrency: CONCURRENCY,
    watch(sources) {
      enqueue = sources.enqueue;
      for (const { informer } of watched.values()) {
        sources.on(informer, handlers(informer.resource));
      }
      started = true;
      for (const resource of [resources.customResourceDefinitions, resources.apiServices]) {
        const informer = deps.informers.for(resource as unknown as Resource);
        sources.on(informer, { add: kindsChanged, update: kindsChanged, delete: kindsChanged });
      }
    },
    async reconcile(uid) {
      const node = graph.get(uid);
      if (!node) return;
      if (!node.observed) return checkVirtual(node);
      if (node.orphaning) return orphan(node);
      await attemptToDelete(node);
    },
  });

  /** An owner that only references know: is it there? */
  async function checkVirtual(node: Node): Promise<void> {
    const resource = resourceOf(node.apiVersion, node.kind);
    if (!resource) return;
    const live = await read(resource, node);
    if (live?.metadata.uid === node.uid) return;
    if (!graph.get(node.uid)?.observed) lookAt(graph.remove(node.uid));
  }

  const resourceOf = (apiVersion: string, kind: string) =>
    byKind.get(`${apiVersion.includes("/") ? apiVersion.split("/")[0] : ""}/${kind}`);
  const read = (resource: Resource, { name, namespace }: { name: string; namespace: string | undefined }) =>
    ignoreNotFound(client.get(resource, name, resource.namespaced ? { namespace } : {}));

  async function orphan(node: Node): Promise<void> {
    for (const dependent of [...node.dependents]) await removeOwners(dependent, new Set([node.uid]));
    await removeFinalizer(node, ORPHAN);
  }

  async function attemptToDelete(node: Node): Promise<void> {
    if (node.beingDeleted && !node.deletingDependents) return;
    const latest = await read(node.resource!, node);
    if (!latest || latest.metadata.uid !== node.uid) return lookAt(graph.remove(node.uid));
    if (node.deletingDependents) return finishForeground(node);
    const references = latest.metadata.ownerReferences ?? [];
    if (references.length === 0) return;
    const { solid, dangling, waiting } = await classify(node, references);
    if (solid.length > 0) {
      if (dangling.length + waiting.length > 0) {
        await removeOwners(node, new Set([...dangling, ...waiting].map((reference) => reference.uid)));
      }
      return;
    }
    if (waiting.length > 0 && node.dependents.size > 0) {
      if ([...node.dependents].some((dependent) => dependent.deletingDependents)) await unblock(node);
      return remove(node, "Foreground");
    }
    const { finalizers = [] } = latest.metadata;
    const policy = finalizers.includes(ORPHAN)
      ? "Orphan"
      : finalizers.includes(FOREGROUND)
        ? "Foreground"
        : "Background";
    await remove(node, policy);
  }

  function finishForeground(node: Node): Promise<void> | undefined {
    const blocking = [...node.dependents].filter((dependent) =>
      dependent.owners.some((reference) => reference.uid === node.uid && reference.blockOwnerDeletion),
    );
    if (blocking.length === 0) return removeFinalizer(node, FOREGROUND);
    for (const dependent of blocking) if (!dependent.deletingDependents) enqueue(dependent.uid);
    return undefined;
  }

  async function classify(
    node: Node,
    references: readonly OwnerReferenceLike[],
  ): Promise<Record<"solid" | "dangling" | "waiting", OwnerReferenceLike[]>> {
    const result = { solid: [], dangling: [], waiting: [] } as Record<
      "solid" | "dangling" | "waiting",
      OwnerReferenceLike[]
    >;
    for (const reference of references) result[await standing(node, reference)].push(reference);
    return result;
  }
  async function standing(node: Node, reference: OwnerReferenceLike): Promise<"solid" | "dangling" | "waiting"> {
    const owner = graph.get(reference.uid);
    const reachable = !owner?.namespace || owner.namespace === node.namespace;
    if (owner?.observed && reachable) return owner.deletingDependents ? "waiting" : "solid";
    if (graph.isGone(reference.uid)) return "dangling";
    const resource = resourceOf(reference.apiVersion, reference.kind);
    if (!resource) throw new Error(`no matches for kind "${reference.kind}" in version "${reference.apiVersion}"`);
    // A cluster-scoped object can't have an owner in a namespace: nothing can be said about that owner, so it stays.
    if (resource.namespaced && !node.namespace) return "solid";
    const live = await read(resource, { name: reference.name, namespace: node.namespace });
    if (live?.metadata.uid !== reference.uid) {
      if (!owner?.observed) graph.markGone(reference.uid);
      return "dangling";
    }
    const { deletionTimestamp, finalizers = [] } = live.metadata;
    return deletionTimestamp && finalizers.includes(FOREGROUND) ? "waiting" : "solid";
  }

  async function remove(node: Node, propagationPolicy: "Foreground" | "Background" | "Orphan"): Promise<void> {
    const { namespace, name, uid } = node;
    try {
      await client.delete(node.resource!, name, { namespace, propagationPolicy, preconditions: { uid } });
    } catch (error) {
      if (isStatus(error, "NotFound")) return lookAt(graph.remove(uid));
      throw error;
    }
  }

  /** Changes metadata of the object as it is now; does nothing when it is gone. */
  async function edit(node: Node, change: (latest: AnyObject) => Record<string, unknown> | undefined): Promise<void> {
    const latest = await read(node.resource!, node);
    if (!latest || latest.metadata.uid !== node.uid) return;
    const metadata = change(latest);
    if (!metadata) return;
    const body = { metadata: { resourceVersion: latest.metadata.resourceVersion, ...metadata } };
    await ignoreNotFound(
      client.patch(node.resource!, node.name, { type: "merge", body }, { namespace: node.namespace }),
    );
  }
  const removeOwners = (node: Node, uids: ReadonlySet<string>) =>
    edit(node, ({ metadata: { ownerReferences = [] } }) => {
      const kept = ownerReferences.filter((reference) => !uids.has(reference.uid));
      if (kept.length === ownerReferences.length) return undefined;
      return { ownerReferences: kept.length ? kept : null };
    });
  const unblock = (node: Node) =>
    edit(node, ({ metadata: { ownerReferences = [] } }) => ({
      ownerReferences: ownerReferences.map((reference) => ({ ...reference, blockOwnerDeletion: false })),
    }));
  const removeFinalizer = (node: Node, finalizer: string) =>
    edit(node, ({ metadata: { finalizers = [] } }) => {
      const kept = finalizers.filter((one) => one !== finalizer);
      return kept.length === finalizers.length ? undefined : { finalizers: kept.length ? kept : null };
    });

  return {
    name: inner.name,
    get idle() {
      return inner.idle;
    },
    async start() {
      await rediscover();
      await inner.start();
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      timer?.clear();
      for (const { informer } of watched.values()) informer.stop?.();
      await inner[Symbol.asyncDispose]();
    },
  };
}

/** Built-in kinds have the shared informers; what comes and goes has one that can be stopped. */
function informerFor(deps: ControllerDeps, resource: DiscoveredResource): Informer<ApiObject> & { stop?(): void } {
  const builtIn = Object.values(resources).find(
    ({ group, version, resource: name }) =>
      group === resource.group && version === resource.version && name === resource.resource,
  );
  if (builtIn) return deps.informers.for(builtIn as unknown as Resource);
  const informer = createInformer(deps, resource as Resource);
  informer.start();
  return informer;
}

/** What of an object the graph depends on. */
const relevant = ({ metadata }: AnyObject): string =>
  metadata.ownerReferences || metadata.deletionTimestamp || metadata.finalizers
    ? JSON.stringify([metadata.ownerReferences, metadata.deletionTimestamp, metadata.finalizers])
    : "";

function identityOf({ apiVersion, kind, namespace, name }: Node): {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
} {
  return { apiVersion, kind, ...(namespace ? { namespace } : {}), name };
}
