import { type Clock, deepEqual, type Logger } from "#base";
import { type ApiObject, type CustomResourceDefinition, type KindInfo, type MutableScheme, resources } from "#kinds";
import { isStoreError, type Store } from "#store";
import type { Reader } from "../ports.ts";
import { keyOf, prefixOf } from "../registry/keys.ts";
import { toStored } from "../registry/view.ts";
import { timeOf } from "../verbs/create.ts";
import { planDeletion } from "../verbs/delete.ts";
import { decideNames, isTrueCondition, namedStatus, withCondition } from "./conditions.ts";
import { definitionStrategy } from "./definition/strategy.ts";
import { customKind } from "./kind/custom-kind.ts";
import type { Conversions } from "./conversion.ts";

export const CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";

export interface CustomResourcesDeps {
  readonly store: Store;
  readonly scheme: MutableScheme;
  readonly reader: Reader;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Webhooks that convert between versions. */
  readonly conversions?: Conversions;
}

/** Kinds of the definitions that are stored now and later. */
export interface CustomResources extends Disposable {
  /** Resolves once the writes that follow from the present definitions are done; for tests and an orderly stop. */
  settled(): Promise<void>;
}

interface Registered {
  readonly definition: CustomResourceDefinition;
  readonly kinds: readonly KindInfo[];
  readonly retire: AbortController;
}

const DEFINITIONS = resources.customResourceDefinitions;

/**
 * Serves what CustomResourceDefinitions define: decides their names, keeps their conditions, puts their kinds into the scheme
 * and takes them out, and removes the objects of definitions that go. What is stored at the start is served when this returns.
 */
export function startCustomResources(deps: CustomResourcesDeps): CustomResources {
  const { scheme, reader, store, clock, logger } = deps;
  const definitionKind = scheme.byResource(DEFINITIONS.group, DEFINITIONS.version, DEFINITIONS.resource)!;
  const kind: KindInfo = { ...definitionKind, strategy: definitionStrategy(definitionKind.strategy) };
  scheme.add(kind);
  const registered = new Map<string, Registered>();
  const chains = new Map<string, Promise<void>>();
  const instances = new Map<string, Disposable>();

  function register(definition: CustomResourceDefinition): void {
    const { name } = definition.metadata;
    const known = registered.get(name);
    if (known && sameServing(known.definition, definition)) return;
    unregister(name);
    if (!isTrueCondition(definition, "Established")) return;
    const retire = new AbortController();
    const convert = deps.conversions?.converterOf(definition);
    const kinds = definition.spec.versions
      .filter(({ served }) => served)
      .map((version) => customKind(definition, version, { retired: retire.signal, ...(convert ? { convert } : {}) }));
    registered.set(name, { definition, kinds, retire });
    for (const one of kinds) scheme.add(one);
  }

  function unregister(name: string): void {
    const known = registered.get(name);
    if (!known) return;
    registered.delete(name);
    for (const one of known.kinds) scheme.remove(one.group, one.version, one.resource);
    known.retire.abort();
  }

  /** Rewrites a definition; a write that came between is followed by a sync of its own. */
  async function write(definition: CustomResourceDefinition, change: Partial<CustomResourceDefinition>): Promise<void> {
    const key = keyOf(kind, undefined, definition.metadata.name);
    const stored = store.latest(key);
    if (!stored || stored.object.metadata.resourceVersion !== definition.metadata.resourceVersion) return;
    const object = { ...definition, ...change } as unknown as ApiObject;
    try {
      if (object.metadata.deletionTimestamp && !object.metadata.finalizers?.length)
        await store.delete(key, stored.revision, toStored(kind, object));
      else await store.update(key, toStored(kind, object), stored.revision);
    } catch (error) {
      if (!isStoreError(error, "conflict") && !isStoreError(error, "not-found") && !isStoreError(error, "closed"))
        throw error;
    }
  }

  async function sync(name: string): Promise<void> {
    const definition = reader.get<CustomResourceDefinition>(DEFINITIONS, undefined, name);
    if (!definition) return;
    if (definition.metadata.deletionTimestamp && definition.metadata.finalizers?.includes(CLEANUP_FINALIZER))
      return cleanUp(definition);
    const others = reader.list<CustomResourceDefinition>(DEFINITIONS).filter((one) => one.metadata.name !== name);
    const status = namedStatus(definition, decideNames(definition, others), timeOf(clock.now()));
    if (status) await write(definition, { status });
  }

  async function cleanUp(definition: CustomResourceDefinition): Promise<void> {
    const [one] = registered.get(definition.metadata.name)?.kinds ?? [];
    const stored = one ?? storageKind(definition);
    const prefix = prefixOf(stored);
    for (const item of store.list(prefix).items) await removeOne(stored, item.key);
    if (store.count(prefix) > 0) {
      // objects with finalizers of their own go later
      instances.get(prefix)?.[Symbol.dispose]();
      instances.set(
        prefix,
        store.watch(prefix, store.revision, () => enqueue(definition.metadata.name)),
      );
      return;
    }
    instances.get(prefix)?.[Symbol.dispose]();
    instances.delete(prefix);
    const now = timeOf(clock.now());
    const condition = {
      type: "Terminating",
      status: "False",
      reason: "InstanceDeletionCompleted",
      message: "removed all instances",
    };
    const finalizers = definition.metadata.finalizers!.filter((name) => name !== CLEANUP_FINALIZER);
    const { finalizers: _gone, ...metadata } = definition.metadata;
    await write(definition, {
      metadata: finalizers.length > 0 ? { ...metadata, finalizers } : metadata,
      status: { ...definition.status!, conditions: withCondition(definition.status?.conditions, condition, now) },
    });
  }

  async function removeOne(stored: KindInfo, key: string): Promise<void> {
    for (;;) {
      const item = store.latest(key);
      if (!item) return;
      const step = planDeletion(stored, item.object as ApiObject, {}, clock.now());
      try {
        if (step.type === "remove") await store.delete(key, item.revision, step.object);
        else if (step.type === "mark") await store.update(key, step.object, item.revision);
        return;
      } catch (error) {
        if (!isStoreError(error, "conflict") && !isStoreError(error, "not-found")) throw error;
      }
    }
  }

  function enqueue(name: string): void {
    const before = chains.get(name) ?? Promise.resolve();
    const next = before
      .then(() => sync(name))
      .catch((error: unknown) => {
        if (!isStoreError(error, "closed"))
          logger.error("a custom resource definition could not be brought up to date", { name, error });
      })
      .finally(() => {
        if (chains.get(name) === next) chains.delete(name);
      });
    chains.set(name, next);
  }

  const subscription = reader.onChange(DEFINITIONS, (object, deleted) => {
    const definition = object as unknown as CustomResourceDefinition;
    const { name } = definition.metadata;
    if (deleted) {
      unregister(name);
      // names that it held are free for others
      for (const other of reader.list<CustomResourceDefinition>(DEFINITIONS))
        if (other.spec.group === definition.spec.group) enqueue(other.metadata.name);
      return;
    }
    register(definition);
    enqueue(name);
  });
  for (const definition of reader.list<CustomResourceDefinition>(DEFINITIONS)) {
    register(definition);
    enqueue(definition.metadata.name);
  }
  return {
    async settled() {
      while (chains.size > 0) await Promise.all(chains.values());
    },
    [Symbol.dispose]() {
      subscription[Symbol.dispose]();
      for (const one of instances.values()) one[Symbol.dispose]();
      for (const name of [...registered.keys()]) unregister(name);
    },
  };
}

/** Whether what a definition serves is the same: its metadata may differ, and what its status says of other things. */
function sameServing(a: CustomResourceDefinition, b: CustomResourceDefinition): boolean {
  return (
    deepEqual(a.spec, b.spec) &&
    deepEqual(a.status?.acceptedNames, b.status?.acceptedNames) &&
    isTrueCondition(a, "Established") === isTrueCondition(b, "Established") &&
    isTrueCondition(a, "Terminating") === isTrueCondition(b, "Terminating")
  );
}

/** Where the objects of a definition that is not served are kept. */
function storageKind(definition: CustomResourceDefinition): KindInfo {
  const version = definition.spec.versions.find(({ storage }) => storage) ?? definition.spec.versions[0]!;
  const { status: _status, ...rest } = definition;
  return customKind(rest as CustomResourceDefinition, version, { retired: new AbortController().signal });
}
