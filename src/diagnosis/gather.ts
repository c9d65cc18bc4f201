import type { DeepReadonly } from "#base";
import type { Client, PodStreams } from "#client";
import { type ApiObject, isStatus, type Resource, resources } from "#kinds";
import type { Evidence, ReadonlyEvent, ReadonlyObject, ReadonlyPod } from "./evidence.ts";

export interface GatherDeps {
  readonly client: Client;
  /** Absent: no log lines are shown. */
  readonly streams?: PodStreams;
}

export interface GatherOptions {
  readonly signal?: AbortSignal;
}

/** Lines of a failed container's log that are shown. */
const LOG_LINES = 5;

/** Everything around an object that can tell why it is not ready. What may not be read, or is not there, is left out. */
export async function gatherEvidence(
  { client, streams }: GatherDeps,
  object: ReadonlyObject,
  options: GatherOptions = {},
): Promise<Evidence> {
  const { namespace } = object.metadata;
  const { signal } = options;
  const list = <T>(resource: Resource<T>) =>
    listed(client, resource, resource.namespaced ? namespace : undefined, signal);
  const wanted = KINDS_AROUND[object.kind] ?? [];
  const inNamespace = namespace !== undefined;
  const [pods, events, nodes, ...others] = await Promise.all([
    inNamespace && usesPods(object) ? list(resources.pods) : [],
    list(resources.events),
    usesPods(object) ? list(resources.nodes) : [],
    ...wanted.map((resource) => list(resource as Resource)),
  ]);
  const around = others.flatMap((items, i) => items.map((item) => named(item as ReadonlyObject, wanted[i]!)));
  const owned = ownedBy(object, around);
  const own = podsOf(object, owned, pods as readonly ReadonlyPod[]);
  const support = around.filter((item) => !["ReplicaSet", "Job", "EndpointSlice"].includes(item.kind));
  const slices = around.filter(
    (item) =>
      item.kind === "EndpointSlice" && item.metadata.labels?.["kubernetes.io/service-name"] === object.metadata.name,
  );
  const related = [
    ...owned,
    ...support,
    ...slices,
    ...nodes.map((node) => named(node as unknown as ReadonlyObject, resources.nodes)),
  ];
  const names = new Set([
    object.metadata.name,
    ...own.map((pod) => pod.metadata.name),
    ...related.map((item) => item.metadata.name),
  ]);
  return {
    object,
    related,
    pods: own,
    events: (events as readonly ReadonlyEvent[])
      .filter((event) => names.has(event.involvedObject.name ?? ""))
      .sort(byTime),
    logs: await logsOf(streams, own, signal),
  };
}

const KINDS_AROUND = {
  Pod: [resources.persistentVolumeClaims, resources.storageClasses],
  Deployment: [resources.replicaSets, resources.persistentVolumeClaims, resources.storageClasses],
  ReplicaSet: [resources.persistentVolumeClaims, resources.storageClasses],
  ReplicationController: [resources.persistentVolumeClaims, resources.storageClasses],
  StatefulSet: [resources.persistentVolumeClaims, resources.storageClasses],
  DaemonSet: [resources.persistentVolumeClaims, resources.storageClasses],
  Job: [resources.persistentVolumeClaims, resources.storageClasses],
  CronJob: [resources.jobs],
  Service: [resources.endpointSlices],
  Ingress: [resources.services],
  PersistentVolumeClaim: [resources.storageClasses],
} as unknown as Readonly<Record<string, readonly Resource[]>>;

const usesPods = (object: ReadonlyObject) => object.kind in KINDS_AROUND && object.kind !== "Ingress";

async function listed<T>(
  client: Client,
  resource: Resource<T>,
  namespace: string | undefined,
  signal: AbortSignal | undefined,
): Promise<readonly DeepReadonly<T>[]> {
  try {
    return (await client.list(resource, { namespace, ...(signal ? { signal } : {}) })).items;
  } catch (error) {
    if (isStatus(error, "Forbidden", "NotFound")) return [];
    throw error;
  }
}

/** Items of a list do not name their kind. */
function named(item: ReadonlyObject, resource: Pick<Resource, "kind" | "group" | "version">): ReadonlyObject {
  return item.kind ? item : { ...item, kind: resource.kind };
}

const isOwned = (item: { metadata: DeepReadonly<ApiObject["metadata"]> }, uids: ReadonlySet<string>) =>
  (item.metadata.ownerReferences ?? []).some((owner) => uids.has(owner.uid));

function ownedBy(object: ReadonlyObject, around: readonly ReadonlyObject[]): ReadonlyObject[] {
  const uids = new Set([object.metadata.uid ?? ""]);
  const mine = around.filter((item) => ["ReplicaSet", "Job"].includes(item.kind) && isOwned(item, uids));
  if (object.kind !== "Deployment") return mine;
  // the pods of the newest template are the ones that count; the old ones are on their way out
  const revision = (item: ReadonlyObject) =>
    Number(item.metadata.annotations?.["deployment.kubernetes.io/revision"] ?? 0);
  const newest = Math.max(0, ...mine.map(revision));
  return mine.filter((item) => revision(item) === newest);
}

function podsOf(object: ReadonlyObject, owned: readonly ReadonlyObject[], pods: readonly ReadonlyPod[]): ReadonlyPod[] {
  if (object.kind === "Pod") return [object as unknown as ReadonlyPod];
  // a service looks at all pods: those that nearly fit are worth telling
  if (object.kind === "Service") return [...pods];
  if (object.kind === "PersistentVolumeClaim") return [];
  const uids = new Set([object.metadata.uid ?? "", ...owned.map((item) => item.metadata.uid ?? "")]);
  return pods.filter((pod) => isOwned(pod as never, uids));
}

const byTime = (a: ReadonlyEvent, b: ReadonlyEvent) => timeOf(a).localeCompare(timeOf(b));
const timeOf = (event: ReadonlyEvent) =>
  String(
    event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "",
  );

/** Last lines of every container that has failed. */
async function logsOf(
  streams: PodStreams | undefined,
  pods: readonly ReadonlyPod[],
  signal: AbortSignal | undefined,
): Promise<Map<string, readonly string[]>> {
  const logs = new Map<string, readonly string[]>();
  if (!streams) return logs;
  const failed = pods.flatMap((pod) =>
    [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])].flatMap((status) => {
      const now = status.state?.terminated;
      const before = status.lastState?.terminated;
      if (now && now.exitCode !== 0) return [{ pod, name: status.name, previous: false }];
      return before ? [{ pod, name: status.name, previous: true }] : [];
    }),
  );
  await Promise.all(
    failed.slice(0, 10).map(async ({ pod, name, previous }) => {
      try {
        const stream = await streams.logs(pod.metadata.namespace ?? "", pod.metadata.name, {
          container: name,
          previous,
          tailLines: LOG_LINES,
          ...(signal ? { signal } : {}),
        });
        const lines = (await stream.toArray()).join("").split("\n").filter(Boolean);
        logs.set(`${pod.metadata.name}/${name}`, lines);
      } catch (error) {
        // a container that never ran, or whose log is gone, has nothing to say
        if (!isStatus(error, "BadRequest", "NotFound", "InternalError", "Forbidden")) throw error;
      }
    }),
  );
  return logs;
}
