import { type DeepReadonly, deepEqual, messageOf } from "#base";
import { isStatus, type Namespace, type NamespaceCondition, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { type DiscoveredResource, discover } from "../runtime/discovery.ts";
import {
  type AnyObject,
  copyOf,
  fromCache,
  ignoreNotFound,
  keyOf,
  timestamp,
  writeStatus,
} from "../runtime/objects.ts";

/** Between looks at a namespace whose content is going, milliseconds: doubling from the first to the last. */
const FIRST_LOOK = 20;
const LAST_LOOK = 2000;

interface Remaining {
  readonly counts: Map<string, number>;
  readonly finalizers: Map<string, number>;
  readonly errors: string[];
}

/** Empties namespaces that are being deleted, pods first, then lets them go. https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/ */
export function createNamespaceController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const namespaces = deps.informers.for(resources.namespaces);
  const waits = new Map<string, number>();

  async function empty(resource: DiscoveredResource, namespace: string, remaining: Remaining): Promise<number> {
    try {
      return await deleteAll(resource, namespace, remaining);
    } catch (error) {
      if (isStatus(error, "NotFound", "MethodNotAllowed")) return 0;
      remaining.errors.push(messageOf(error));
      return 0;
    }
  }
  async function deleteAll(resource: DiscoveredResource, namespace: string, remaining: Remaining): Promise<number> {
    if (!resource.verbs.includes("list")) return 0;
    const before = (await client.list(resource, { namespace })).items;
    if (before.length === 0) return 0;
    const options = { namespace, propagationPolicy: "Background" as const };
    if (resource.verbs.includes("deletecollection")) await client.deleteCollection(resource, options);
    else for (const { metadata } of before) await ignoreNotFound(client.delete(resource, metadata.name, options));
    const left = (await client.list(resource, { namespace })).items as readonly AnyObject[];
    if (left.length === 0) return 0;
    remaining.counts.set(`${resource.resource}.${resource.group}`, left.length);
    for (const { metadata } of left) {
      for (const finalizer of metadata.finalizers ?? []) {
        remaining.finalizers.set(finalizer, (remaining.finalizers.get(finalizer) ?? 0) + 1);
      }
    }
    return left.length;
  }

  async function emptyAll(
    namespace: string,
  ): Promise<{ remaining: Remaining; failed: Map<string, unknown>; podsFirst: boolean }> {
    const { resources: found, failed } = await discover(client);
    const deletable = found.filter(({ namespaced, verbs }) => namespaced && verbs.includes("delete"));
    const remaining: Remaining = { counts: new Map(), finalizers: new Map(), errors: [] };
    const isPods = ({ group, resource }: DiscoveredResource) => group === "" && resource === "pods";
    for (const pods of deletable.filter(isPods)) {
      if ((await empty(pods, namespace, remaining)) > 0) return { remaining, failed, podsFirst: true };
    }
    await Promise.all(deletable.filter((one) => !isPods(one)).map((one) => empty(one, namespace, remaining)));
    return { remaining, failed, podsFirst: false };
  }

  return createController(deps, {
    name: "namespace",
    concurrency: 10,
    watch({ on, enqueue }) {
      const look = (namespace: DeepReadonly<Namespace>) => {
        if (namespace.metadata.deletionTimestamp) enqueue(keyOf(namespace));
      };
      on(namespaces, { add: look, update: look, delete: ({ metadata }) => void waits.delete(metadata.name) });
    },
    async reconcile(name) {
      const namespace = fromCache(namespaces, name);
      if (!namespace?.metadata.deletionTimestamp) return;
      const finalizers = namespace.spec?.finalizers ?? [];
      if (!finalizers.includes("kubernetes")) return;
      const { remaining, failed, podsFirst } = await emptyAll(name);
      const done = remaining.counts.size === 0 && remaining.errors.length === 0 && failed.size === 0;
      const conditions = conditionsOf(
        namespace,
        podsFirst ? { ...remaining, counts: new Map(), finalizers: new Map() } : remaining,
        failed,
        timestamp(clock),
      );
      let latest = namespace;
      if (!deepEqual(conditions, namespace.status?.conditions ?? [])) {
        latest = await writeStatus(client, resources.namespaces, namespace, { phase: "Terminating", conditions });
      }
      if (!done) {
        const wait = waits.get(name) ?? FIRST_LOOK;
        waits.set(name, Math.min(LAST_LOOK, 2 * wait));
        return { requeueAfterMs: wait };
      }
      const copy = copyOf(resources.namespaces, latest);
      const spec = { ...copy.spec, finalizers: finalizers.filter((one) => one !== "kubernetes") };
      await ignoreNotFound(client.update(resources.namespaces, { ...copy, spec }, { subresource: "finalize" }));
    },
  });
}

const GOOD: Record<string, [reason: string, message: string]> = {
  NamespaceDeletionDiscoveryFailure: ["ResourcesDiscovered", "All resources successfully discovered"],
  NamespaceDeletionGroupVersionParsingFailure: ["ParsedGroupVersions", "All legacy kube types successfully parsed"],
  NamespaceDeletionContentFailure: [
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
  ],
  NamespaceContentRemaining: ["ContentRemoved", "All content successfully removed"],
  NamespaceFinalizersRemaining: ["ContentHasNoFinalizers", "All content-preserving finalizers finished"],
};

function conditionsOf(
  namespace: DeepReadonly<Namespace>,
  { counts, finalizers, errors }: Remaining,
  failed: Map<string, unknown>,
  stamp: string,
): NamespaceCondition[] {
  const list = (entries: Map<string, number>, text: (name: string, count: number) => string) =>
    [...entries]
      .map(([name, count]) => text(name, count))
      .sort()
      .join(", ");
  const bad: Record<string, [reason: string, message: string] | undefined> = {
    NamespaceDeletionDiscoveryFailure: failed.size
      ? [
          "DiscoveryFailed",
          `Discovery failed for some groups, ${failed.size} failing: unable to retrieve the complete list of server APIs: ${[...failed].map(([group, error]) => `${group}: ${messageOf(error)}`).join(", ")}`,
        ]
      : undefined,
    NamespaceDeletionContentFailure: errors.length
      ? [
          "ContentDeletionFailed",
          `Failed to delete all resource types, ${errors.length} remaining: ${[...errors].sort().join(", ")}`,
        ]
      : undefined,
    NamespaceContentRemaining: counts.size
      ? [
          "SomeResourcesRemain",
          `Some resources are remaining: ${list(counts, (name, count) => `${name} has ${count} resource instances`)}`,
        ]
      : undefined,
    NamespaceFinalizersRemaining: finalizers.size
      ? [
          "SomeFinalizersRemain",
          `Some content in the namespace has finalizers remaining: ${list(finalizers, (name, count) => `${name} in ${count} resource instances`)}`,
        ]
      : undefined,
  };
  let conditions = [...(namespace.status?.conditions ?? [])] as NamespaceCondition[];
  for (const [type, good] of Object.entries(GOOD)) {
    const [reason, message] = bad[type] ?? good;
    const next = { type, status: bad[type] ? "True" : "False", lastTransitionTime: stamp, reason, message };
    const at = conditions.findIndex((condition) => condition.type === type);
    if (at < 0) conditions = [...conditions, next];
    else if (
      conditions[at]!.reason !== reason ||
      conditions[at]!.message !== message ||
      conditions[at]!.status !== next.status
    ) {
      conditions = conditions.with(at, next);
    }
  }
  return conditions;
}
