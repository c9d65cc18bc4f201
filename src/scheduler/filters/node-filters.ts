import { matchesNodeAffinity, tolerates, untoleratedTaint } from "#kinds";
import type { NodeInfo } from "../node-info.ts";
import type { PodInfo } from "../pod-info.ts";
import { type Refusal, refuse } from "../types.ts";

/** The filters that look at one pod and one node only, in the order of the default profile. */
export const nodeFilters: readonly ((info: PodInfo, node: NodeInfo) => Refusal | undefined)[] = [
  nodeUnschedulable,
  nodeName,
  taints,
  nodeAffinity,
  hostPorts,
  resourcesFit,
];

const UNSCHEDULABLE = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

function nodeUnschedulable({ pod }: PodInfo, { node }: NodeInfo): Refusal | undefined {
  if (!node?.spec.unschedulable) return undefined;
  const tolerated = pod.spec.tolerations?.some((toleration) => tolerates(toleration, UNSCHEDULABLE));
  return tolerated ? undefined : refuse("node(s) were unschedulable", true);
}

function nodeName({ pod }: PodInfo, { name }: NodeInfo): Refusal | undefined {
  if (!pod.spec.nodeName || pod.spec.nodeName === name) return undefined;
  return refuse("node(s) didn't match the requested node name", true);
}

function taints({ pod }: PodInfo, { node }: NodeInfo): Refusal | undefined {
  if (!untoleratedTaint(pod, node?.spec.taints, ["NoSchedule", "NoExecute"])) return undefined;
  return refuse("node(s) had untolerated taint(s)", true);
}

function nodeAffinity({ pod }: PodInfo, { node }: NodeInfo): Refusal | undefined {
  if (!node || matchesNodeAffinity(pod, node)) return undefined;
  return refuse("node(s) didn't match Pod's node affinity/selector", true);
}

function hostPorts(info: PodInfo, node: NodeInfo): Refusal | undefined {
  if (!info.hostPorts.some((port) => node.portTaken(port))) return undefined;
  return refuse("node(s) didn't have free ports for the requested pod ports");
}

const FIRST = ["cpu", "memory", "ephemeral-storage"];

function resourcesFit(info: PodInfo, node: NodeInfo): Refusal | undefined {
  const reasons: string[] = [];
  let unresolvable = false;
  if (node.pods.size + 1 > (node.allocatable.get("pods") ?? 0)) reasons.push("Too many pods");
  const check = (name: string, amount: number) => {
    const capacity = node.allocatable.get(name) ?? 0;
    if (amount === 0 || amount <= capacity - (node.requested.get(name) ?? 0)) return;
    reasons.push(`Insufficient ${name}`);
    if (amount > capacity) unresolvable = true;
  };
  for (const name of FIRST) check(name, info.requests.get(name) ?? 0);
  for (const [name, amount] of info.requests) if (!FIRST.includes(name)) check(name, amount);
  return reasons.length > 0 ? { reasons, unresolvable } : undefined;
}
