import { type LabelSelector, matchesSelector } from "#kinds";
import type { NodeInfo } from "./node-info.ts";
import type { PodInfo } from "./pod-info.ts";
import type { Pod, PodDisruptionBudget, Refusal } from "./types.ts";
import { summarize } from "./messages.ts";

export interface Candidate {
  readonly node: NodeInfo;
  /** From the most to the least important. */
  readonly victims: readonly PodInfo[];
  readonly violations: number;
}

export interface PreemptionInput {
  readonly info: PodInfo;
  readonly nodes: readonly NodeInfo[];
  /** Why each node refused the pod, by its name. */
  readonly refusals: ReadonlyMap<string, Refusal>;
  readonly budgets: readonly PodDisruptionBudget[];
  /** Runs all filters on a node as it is now. Nodes may be changed for a moment before it is called. */
  fits(node: NodeInfo): Refusal | undefined;
}

/**
 * Finds the node where removing pods of lower priority costs least. Nodes are as before when it returns.
 * https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
 */
export function planPreemption(input: PreemptionInput): { candidate: Candidate } | { message: string } {
  const { info, nodes, refusals } = input;
  if (info.pod.spec.preemptionPolicy === "Never") {
    return { message: "preemption: not eligible due to preemptionPolicy=Never." };
  }
  const nominated = info.pod.status?.nominatedNodeName;
  if (nominated && !refusals.get(nominated)?.unresolvable) {
    const node = nodes.find(({ name }) => name === nominated);
    if (
      node &&
      [...node.pods.values()].some((other) => other.priority < info.priority && isBeingPreempted(other.pod))
    ) {
      return { message: "preemption: not eligible due to a terminating pod on the nominated node." };
    }
  }
  const candidates: Candidate[] = [];
  const reasons = new Map<string, Refusal>();
  for (const node of nodes) {
    if (refusals.get(node.name)?.unresolvable !== false) {
      reasons.set(node.name, { reasons: ["Preemption is not helpful for scheduling"], unresolvable: true });
      continue;
    }
    const result = victimsOn(input, node);
    if ("victims" in result) candidates.push(result);
    else reasons.set(node.name, result);
  }
  if (candidates.length === 0) return { message: `preemption: ${summarize(nodes.length, reasons.values())}` };
  return { candidate: pickCandidate(candidates) };
}

function isBeingPreempted({ metadata, status }: Pod): boolean {
  if (!metadata.deletionTimestamp) return false;
  return Boolean(
    status?.conditions?.some(
      ({ type, status: value, reason }) =>
        type === "DisruptionTarget" && value === "True" && reason === "PreemptionByScheduler",
    ),
  );
}

function victimsOn(input: PreemptionInput, node: NodeInfo): Candidate | Refusal {
  const lower = [...node.pods.values()].filter((other) => other.priority < input.info.priority);
  if (lower.length === 0) return { reasons: ["No preemption victims found for incoming pod"], unresolvable: true };
  for (const { uid } of lower) node.remove(uid);
  try {
    const refusal = input.fits(node);
    if (refusal) return refusal;
    const ranked = [...lower].sort(moreImportantFirst);
    const { violating, others } = splitByBudgets(ranked, input.budgets);
    const victims: PodInfo[] = [];
    const reprieve = (other: PodInfo) => {
      node.add(other);
      if (!input.fits(node)) return true;
      node.remove(other.uid);
      victims.push(other);
      return false;
    };
    const violations = violating.filter((other) => !reprieve(other)).length;
    others.forEach(reprieve);
    return { node, victims: victims.sort(moreImportantFirst), violations };
  } finally {
    for (const other of lower) node.add(other);
  }
}

const startOf = ({ pod }: PodInfo): string => pod.status?.startTime ?? pod.metadata.creationTimestamp ?? "";

function moreImportantFirst(a: PodInfo, b: PodInfo): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  return startOf(a) < startOf(b) ? -1 : startOf(a) > startOf(b) ? 1 : 0;
}

/** Pods whose removal would break a budget, and the rest. */
function splitByBudgets(
  ranked: readonly PodInfo[],
  budgets: readonly PodDisruptionBudget[],
): { violating: PodInfo[]; others: PodInfo[] } {
  const left = budgets.map(({ status }) => status?.disruptionsAllowed ?? 0);
  const violating: PodInfo[] = [];
  const others: PodInfo[] = [];
  for (const info of ranked) {
    let breaks = false;
    budgets.forEach(({ metadata, spec, status }, i) => {
      if (metadata.namespace !== info.pod.metadata.namespace) return;
      if (!matchesSelector(spec?.selector as LabelSelector | undefined, info.pod.metadata.labels)) return;
      if (status?.disruptedPods?.[info.pod.metadata.name] !== undefined) return;
      left[i]!--;
      if (left[i]! < 0) breaks = true;
    });
    (breaks ? violating : others).push(info);
  }
  return { violating, others };
}

/** Fewest broken budgets, then least important victims, then fewest, then the youngest. */
export function pickCandidate(candidates: readonly Candidate[]): Candidate {
  const offset = 2 ** 31;
  const scores: ((candidate: Candidate) => number)[] = [
    ({ violations }) => violations,
    ({ victims }) => victims[0]?.priority ?? -offset,
    ({ victims }) => victims.reduce((sum, { priority }) => sum + priority + offset, 0),
    ({ victims }) => victims.length,
    ({ victims }) => -earliestStart(victims),
  ];
  let best = [...candidates];
  for (const score of scores) {
    const least = Math.min(...best.map(score));
    best = best.filter((candidate) => score(candidate) === least);
    if (best.length === 1) break;
  }
  return best[0]!;
}

/** The earliest start among the victims of the highest priority, milliseconds. */
function earliestStart(victims: readonly PodInfo[]): number {
  const top = victims.filter(({ priority }) => priority === victims[0]?.priority);
  return Math.min(...top.map((victim) => Date.parse(startOf(victim)) || 0));
}
