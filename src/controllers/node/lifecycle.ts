import { type DeepReadonly, deepEqual } from "#base";
import { type Lease, type Node, type NodeCondition, type Pod, podCondition, resources, type Taint } from "#kinds";
import { type Controller, type ControllerDeps, createController, type ReconcileResult } from "../runtime/controller.ts";
import { fromCache, ignoreNotFound, timeOf, timestamp, writeStatus } from "../runtime/objects.ts";

type N = DeepReadonly<Node>;

/** A node that was not heard of for this long is not known to be ready, milliseconds (node-monitor-grace-period). */
const GRACE = 50_000;
const LEASES = "kube-node-lease";
const PREFIX = "node.kubernetes.io/";
const WATCHED = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/**
 * Judges nodes by their heartbeats, and taints them by their conditions.
 * https://kubernetes.io/docs/concepts/architecture/nodes/#node-controller
 */
export function createNodeLifecycleController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const nodes = deps.informers.for(resources.nodes);
  const leases = deps.informers.for(resources.leases, { namespace: LEASES });
  const pods = deps.informers.for(resources.pods);
  const recorder = deps.recorder("node-controller");
  pods.addIndex("node", ({ spec }) => (spec.nodeName ? [spec.nodeName] : []));
  /** When a sign of life was seen, by our own clock: nodes' clocks are not trusted. */
  const heard = new Map<string, number>();
  const known = new Set<string>();

  const reference = ({ metadata: { name, uid } }: N) => ({
    kind: "Node",
    name,
    ...(uid ? { uid } : {}),
    apiVersion: "v1",
  });

  async function judge(node: N): Promise<N> {
    const silent = clock.monotonic() - (heard.get(node.metadata.name) ?? clock.monotonic());
    const ready = conditionOf(node, "Ready");
    if (silent < GRACE || ready?.status === "Unknown") return node;
    const stamp = timestamp(clock);
    const conditions = [...(node.status?.conditions ?? [])] as NodeCondition[];
    for (const type of WATCHED) {
      const before = conditions.find((condition) => condition.type === type);
      if (before?.status === "Unknown") continue;
      const next: NodeCondition = before
        ? {
            ...before,
            status: "Unknown",
            reason: "NodeStatusUnknown",
            message: "Kubelet stopped posting node status.",
            lastTransitionTime: stamp,
          }
        : {
            type,
            status: "Unknown",
            reason: "NodeStatusNeverUpdated",
            message: "Kubelet never posted node status.",
            lastHeartbeatTime: node.metadata.creationTimestamp ?? stamp,
            lastTransitionTime: stamp,
          };
      if (before) conditions[conditions.indexOf(before)] = next;
      else conditions.push(next);
    }
    const saved = await writeStatus(client, resources.nodes, node, { ...(node.status as Node["status"]), conditions });
    if (ready?.status === "True") await nodeLost(saved);
    return saved;
  }

  async function nodeLost(node: N): Promise<void> {
    const { name } = node.metadata;
    recorder.event(reference(node), "Normal", "NodeNotReady", `Node ${name} status is now: NodeNotReady`);
    await markPodsNotReady(name);
  }
  async function markPodsNotReady(node: string): Promise<void> {
    for (const pod of pods.byIndex("node", node)) {
      if (podCondition(pod, "Ready")?.status !== "True") continue;
      const condition = { type: "Ready", status: "False", lastTransitionTime: timestamp(clock) };
      const { name, namespace, uid } = pod.metadata;
      const patch = { type: "strategic" as const, body: { metadata: { uid }, status: { conditions: [condition] } } };
      await ignoreNotFound(client.patch(resources.pods, name, patch, { namespace, subresource: "status" }));
      recorder.event(pod as Pod, "Warning", "NodeNotReady", "Node is not ready");
    }
  }

  async function taint(node: N): Promise<void> {
    const wanted = taintsFor(node);
    const current = (node.spec.taints ?? []) as Taint[];
    const managed = ({ key, effect }: Taint) =>
      key.startsWith(PREFIX) && MANAGED.has(`${key.slice(PREFIX.length)}:${effect}`);
    const same = (a: Taint, b: Taint) => a.key === b.key && a.effect === b.effect;
    const kept = current.filter((one) => !managed(one) || wanted.some((other) => same(one, other)));
    const added = wanted.filter((one) => !current.some((other) => same(one, other)));
    const taints = [...kept, ...added.map((one) => ({ ...one, timeAdded: timestamp(clock) }))];
    if (deepEqual(taints, current)) return;
    const body = {
      metadata: { resourceVersion: node.metadata.resourceVersion },
      spec: { taints: taints.length ? taints : null },
    };
    await ignoreNotFound(client.patch(resources.nodes, node.metadata.name, { type: "merge", body }));
  }

  return createController(deps, {
    name: "node-lifecycle",
    watch({ on, enqueue }) {
      const alive = (name: string) => heard.set(name, clock.monotonic());
      on(nodes, {
        add(node) {
          const { name } = node.metadata;
          alive(name);
          if (!known.has(name))
            recorder.event(
              reference(node),
              "Normal",
              "RegisteredNode",
              `Node ${name} event: Registered Node ${name} in Controller`,
            );
          known.add(name);
          enqueue(name);
        },
        update(node, before) {
          const { name } = node.metadata;
          const beat = (one: N) =>
            one.status?.conditions?.map(({ type, lastHeartbeatTime, status }) => [type, lastHeartbeatTime, status]);
          const unknown = conditionOf(node, "Ready")?.status === "Unknown";
          if (!unknown && !deepEqual(beat(node), beat(before))) alive(name);
          if (conditionOf(before, "Ready")?.status === "True" && conditionOf(node, "Ready")?.status === "False") {
            nodeLost(node).catch((error: unknown) =>
              deps.logger.warn("marking pods of a node not ready failed", { node: name, error }),
            );
          }
          enqueue(name);
        },
        delete(node) {
          const { name } = node.metadata;
          heard.delete(name);
          known.delete(name);
          recorder.event(
            reference(node),
            "Normal",
            "RemovingNode",
            `Node ${name} event: Removing Node ${name} from Controller`,
          );
        },
      });
      const renewed = ({ metadata }: DeepReadonly<Lease>) => void alive(metadata.name);
      on(leases, {
        add: renewed,
        update(lease, before) {
          if (timeOf(lease.spec?.renewTime) !== timeOf(before.spec?.renewTime)) renewed(lease);
        },
      });
    },
    async reconcile(name): Promise<ReconcileResult> {
      const node = fromCache(nodes, name);
      if (!node) return;
      await taint(await judge(node));
      const left = GRACE - (clock.monotonic() - (heard.get(name) ?? clock.monotonic()));
      return { requeueAfterMs: left > 0 ? left + 100 : GRACE };
    },
  });
}

const conditionOf = (node: N, type: string) => node.status?.conditions?.find((condition) => condition.type === type);

const MANAGED = new Set([
  ...[
    "not-ready",
    "unreachable",
    "memory-pressure",
    "disk-pressure",
    "pid-pressure",
    "network-unavailable",
    "unschedulable",
  ].map((key) => `${key}:NoSchedule`),
  "not-ready:NoExecute",
  "unreachable:NoExecute",
]);

const PRESSURES: Record<string, string> = {
  MemoryPressure: "memory-pressure",
  DiskPressure: "disk-pressure",
  PIDPressure: "pid-pressure",
  NetworkUnavailable: "network-unavailable",
};

/** The taints that a node's conditions call for. https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-nodes-by-condition */
export function taintsFor(node: N): Taint[] {
  const ready = conditionOf(node, "Ready")?.status;
  const keys = Object.entries(PRESSURES).flatMap(([type, key]) =>
    conditionOf(node, type)?.status === "True" ? [key] : [],
  );
  const lost = ready === "False" ? "not-ready" : ready === "Unknown" ? "unreachable" : undefined;
  if (lost) keys.unshift(lost);
  if (node.spec.unschedulable) keys.push("unschedulable");
  const taints = keys.map((key) => ({ key: PREFIX + key, effect: "NoSchedule" }));
  return lost ? [...taints, { key: PREFIX + lost, effect: "NoExecute" }] : taints;
}
