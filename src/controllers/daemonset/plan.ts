import type { DeepReadonly } from "#base";
import {
  type DaemonSet,
  isPodAvailable,
  isPodReady,
  matchesNodeAffinity,
  type Node,
  type Pod,
  type PodSpec,
  type Toleration,
  untoleratedTaint,
} from "#kinds";
import { byCreation, scaledValue } from "../runtime/objects.ts";
import { REVISION_HASH } from "../runtime/history.ts";

export type DS = DeepReadonly<DaemonSet>;
export type P = DeepReadonly<Pod>;
export type N = DeepReadonly<Node>;

const taint = (key: string, effect: string): Toleration => ({
  key: `node.kubernetes.io/${key}`,
  operator: "Exists",
  effect,
});

/** What every daemon pod tolerates. https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations */
export function daemonTolerations(spec: DeepReadonly<PodSpec>): Toleration[] {
  const added = [
    taint("not-ready", "NoExecute"),
    taint("unreachable", "NoExecute"),
    taint("disk-pressure", "NoSchedule"),
    taint("memory-pressure", "NoSchedule"),
    taint("pid-pressure", "NoSchedule"),
    taint("unschedulable", "NoSchedule"),
    ...(spec.hostNetwork ? [taint("network-unavailable", "NoSchedule")] : []),
  ];
  const given = (spec.tolerations ?? []) as Toleration[];
  const missing = added.filter(
    ({ key, effect }) => !given.some((one) => one.key === key && one.effect === effect && one.operator === "Exists"),
  );
  return [...given, ...missing];
}

/** Whether a daemon pod should be started on a node, and whether one that is there may stay. */
export function nodeSuits(ds: DS, node: N): { run: boolean; stay: boolean } {
  const { template } = ds.spec;
  const pod = { spec: { ...template.spec, tolerations: daemonTolerations(template.spec) } };
  if (template.spec.nodeName && template.spec.nodeName !== node.metadata.name) return { run: false, stay: false };
  if (!matchesNodeAffinity(pod as never, node)) return { run: false, stay: false };
  if (!untoleratedTaint(pod as never, node.spec.taints, ["NoSchedule", "NoExecute"])) return { run: true, stay: true };
  return { run: false, stay: !untoleratedTaint(pod as never, node.spec.taints, ["NoExecute"]) };
}

/** The node that a daemon pod is for: where it is, or where its affinity puts it. */
export function nodeOf(pod: P): string | undefined {
  if (pod.spec.nodeName) return pod.spec.nodeName;
  const terms =
    pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  for (const { matchFields = [] } of terms) {
    const field = matchFields.find(({ key, operator }) => key === "metadata.name" && operator === "In");
    if (field?.values?.length === 1) return field.values[0];
  }
  return undefined;
}

export const isUpdated = (pod: P, hash: string): boolean => pod.metadata.labels?.[REVISION_HASH] === hash;

/** Placed pods first, then ready ones, then by age. */
export const byStanding = (a: P, b: P): number =>
  Number(Boolean(b.spec.nodeName)) - Number(Boolean(a.spec.nodeName)) ||
  Number(isPodReady(b)) - Number(isPodReady(a)) ||
  byCreation(a, b);

/** maxSurge and maxUnavailable in nodes; not both 0. */
export function limitsOf(ds: DS, nodes: number): { surge: number; unavailable: number } {
  const { maxSurge, maxUnavailable } = ds.spec.updateStrategy?.rollingUpdate ?? {};
  const surge = scaledValue(maxSurge, nodes, "up");
  const unavailable = scaledValue(maxUnavailable ?? (surge ? 0 : 1), nodes, "up");
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

export interface DaemonPlan {
  readonly create: string[];
  readonly remove: P[];
}
export interface DaemonView {
  readonly ds: DS;
  readonly nodes: readonly N[];
  readonly pods: ReadonlyMap<string, readonly P[]>;
  readonly hash: string;
  readonly now: number;
  /** False while a failed pod of this node must be left alone. */
  mayReplaceFailed(node: string, pod: P): boolean;
}

/** One pod on every node that should have one, none elsewhere; over and surplus pods go. */
export function planNodes(view: DaemonView): DaemonPlan {
  const { ds, pods } = view;
  const plan: DaemonPlan = { create: [], remove: [] };
  const known = new Set(view.nodes.map(({ metadata }) => metadata.name));
  for (const node of view.nodes) {
    const { name } = node.metadata;
    const { run, stay } = nodeSuits(ds, node);
    const here = (pods.get(name) ?? []).filter(({ metadata }) => !metadata.deletionTimestamp);
    if (!stay) plan.remove.push(...here);
    else if (run && !pods.has(name)) plan.create.push(name);
    else planNode(view, name, here, run, plan);
  }
  for (const [name, list] of pods) {
    if (known.has(name)) continue;
    // Placed pods of a node that is gone are pod GC's; those that wait for it would wait for ever.
    plan.remove.push(...list.filter(({ spec, metadata }) => !spec.nodeName && !metadata.deletionTimestamp));
  }
  return plan;
}

function planNode(
  { ds, hash, now, mayReplaceFailed }: DaemonView,
  name: string,
  here: readonly P[],
  run: boolean,
  plan: DaemonPlan,
): void {
  const running: P[] = [];
  for (const pod of here) {
    if (pod.status?.phase === "Succeeded" || (pod.status?.phase === "Failed" && mayReplaceFailed(name, pod)))
      plan.remove.push(pod);
    else if (pod.status?.phase !== "Failed") running.push(pod);
  }
  running.sort(byStanding);
  if (limitsOf(ds, 1).surge === 0) {
    plan.remove.push(...running.slice(1));
    return;
  }
  if (running.length === 0 && run && here.length === 0) plan.create.push(name);
  const [fresh, ...moreFresh] = running.filter((pod) => isUpdated(pod, hash));
  const [old, ...moreOld] = running.filter((pod) => !isUpdated(pod, hash));
  plan.remove.push(...moreFresh, ...moreOld);
  const minReady = ds.spec.minReadySeconds ?? 0;
  if (fresh && old && (!isPodReady(old) || isPodAvailable(fresh, minReady, now))) plan.remove.push(old);
}

/** The next step of a rolling update. */
export function planUpdate({ ds, nodes, pods, hash, now }: DaemonView): DaemonPlan {
  const suited = new Map(nodes.map((node) => [node.metadata.name, nodeSuits(ds, node).run]));
  const desired = [...suited.values()].filter(Boolean).length;
  const { surge, unavailable } = limitsOf(ds, desired);
  const available = (pod: P) => isPodAvailable(pod, ds.spec.minReadySeconds ?? 0, now);
  const names = new Set([...pods.keys(), ...[...suited].flatMap(([name, run]) => (run ? [name] : []))]);
  const remove: P[] = [];
  const candidates: { name: string; pod: P }[] = [];
  const create: string[] = [];
  let busy = 0;
  for (const name of names) {
    const live = (pods.get(name) ?? []).filter(({ metadata }) => !metadata.deletionTimestamp);
    const fresh = live.filter((pod) => isUpdated(pod, hash));
    const old = live.filter((pod) => !isUpdated(pod, hash));
    if (fresh.length > 1 || old.length > 1) {
      busy++;
    } else if (surge === 0) {
      if (!old[0] || fresh[0]) busy += fresh[0] && !old[0] && available(fresh[0]) ? 0 : 1;
      else if (!available(old[0])) {
        remove.push(old[0]);
        busy++;
      } else candidates.push({ name, pod: old[0] });
    } else if (old[0] && fresh[0]) {
      if (available(fresh[0])) remove.push(old[0]);
      else busy++;
    } else if (old[0] && !suited.get(name)) {
      if (!available(old[0])) remove.push(old[0]);
    } else if (old[0]) {
      if (available(old[0])) candidates.push({ name, pod: old[0] });
      else create.push(name);
    }
  }
  const room = Math.max(0, (surge || unavailable) - busy);
  for (const { name, pod } of candidates.slice(0, room)) {
    if (surge === 0) remove.push(pod);
    else create.push(name);
  }
  return { create, remove };
}
