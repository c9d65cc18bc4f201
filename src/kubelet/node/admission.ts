import type { DeepReadonly } from "#base";
import type { Node, NodeSelectorTerm } from "#kinds";
import { podAmounts } from "../container-config/pod-resources.ts";
import { milliValue, wholeValue } from "../container-config/quantity.ts";
import type { ReadonlyPod } from "../ports.ts";
import { isTerminalPhase } from "../status/phase.ts";

export interface Refusal {
  /** `OutOfcpu`, `NodeAffinity`, `NodePorts`, … */
  readonly reason: string;
  readonly message: string;
}

export interface AdmissionDeps {
  node(): DeepReadonly<Node> | undefined;
  /** All pods of the node. */
  pods(): readonly ReadonlyPod[];
  /** Security settings that the node cannot give. */
  refusal(pod: ReadonlyPod): Refusal | undefined;
}

/**
 * Whether the node takes a pod that was bound to it: the scheduler may have been passed over or may have known less.
 *
 * Source: https://kubernetes.io/docs/concepts/scheduling-eviction/scheduling-framework/, KEP-753 for the sums
 */
export function createAdmission(deps: AdmissionDeps): (pod: ReadonlyPod) => Refusal | undefined {
  return (pod) => {
    const node = deps.node();
    if (!node) return undefined;
    return osMismatch(pod, node) ?? deps.refusal(pod) ?? unfit(pod, node, activeOthers(deps.pods(), pod));
  };
}

const activeOthers = (pods: readonly ReadonlyPod[], pod: ReadonlyPod): readonly ReadonlyPod[] =>
  pods.filter((other) => other.metadata?.uid !== pod.metadata?.uid && !isTerminalPhase(other.status?.phase));

function osMismatch(pod: ReadonlyPod, node: DeepReadonly<Node>): Refusal | undefined {
  const os = node.status?.nodeInfo?.operatingSystem ?? "linux";
  if (!pod.spec?.os || pod.spec.os.name === os) return undefined;
  return { reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS" };
}

function unfit(pod: ReadonlyPod, node: DeepReadonly<Node>, others: readonly ReadonlyPod[]): Refusal | undefined {
  const allocatable = node.status?.allocatable ?? {};
  const most = wholeValue(allocatable["pods"] ?? "110");
  if (others.length + 1 > most) return shortage("pods", 1, others.length, most);
  const used = new Map<string, number>();
  for (const other of others) {
    for (const [name, amount] of podAmounts(other, "requests")) used.set(name, (used.get(name) ?? 0) + amount);
  }
  for (const [name, amount] of podAmounts(pod, "requests")) {
    // A resource that the node does not have at all is the cluster's own affair.
    if (amount === 0 || (allocatable[name] === undefined && name.includes("/"))) continue;
    const capacity = name === "cpu" ? milliValue(allocatable[name]) : wholeValue(allocatable[name]);
    const taken = used.get(name) ?? 0;
    if (amount + taken > capacity) return shortage(name, amount, taken, capacity);
  }
  if (!matchesNode(pod, node)) {
    return predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
  }
  if (hostPortTaken(pod, others)) {
    return predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports");
  }
  const taint = untolerated(pod, node);
  if (taint) return predicate("TaintToleration", `node(s) had untolerated taint(s)`);
  return undefined;
}

const predicate = (name: string, why: string): Refusal => ({
  reason: name,
  message: `Predicate ${name} failed: ${why}`,
});

function shortage(name: string, requested: number, used: number, capacity: number): Refusal {
  return {
    reason: `OutOf${name}`,
    message: `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
  };
}

/** `nodeSelector`, and the required node affinity. */
export function matchesNode(pod: ReadonlyPod, node: DeepReadonly<Node>): boolean {
  const labels = node.metadata?.labels ?? {};
  const selector = pod.spec?.nodeSelector ?? {};
  if (Object.entries(selector).some(([key, value]) => labels[key] !== value)) return false;
  const terms = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return !terms || terms.some((term) => matchesTerm(term, labels, node.metadata?.name ?? ""));
}

function matchesTerm(
  term: DeepReadonly<NodeSelectorTerm>,
  labels: Readonly<Record<string, string>>,
  nodeName: string,
): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((rule) => matchesRule(rule, labels[rule.key])) &&
    matchFields.every((rule) => matchesRule(rule, rule.key === "metadata.name" ? nodeName : undefined))
  );
}

function matchesRule(
  { operator, values = [] }: { readonly operator: string; readonly values?: readonly string[] },
  value: string | undefined,
): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return value !== undefined && Number(value) > Number(values[0]);
    case "Lt":
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return false;
  }
}

function hostPortTaken(pod: ReadonlyPod, others: readonly ReadonlyPod[]): boolean {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return false;
  return others.flatMap(hostPorts).some((taken) => wanted.some((port) => clash(port, taken)));
}

interface HostPort {
  readonly port: number;
  readonly protocol: string;
  readonly ip: string;
}

function hostPorts(pod: ReadonlyPod): HostPort[] {
  const sidecars = (pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === "Always");
  return [...(pod.spec?.containers ?? []), ...sidecars].flatMap((container) =>
    (container.ports ?? []).flatMap(({ hostPort, protocol = "TCP", hostIP = "0.0.0.0" }) =>
      hostPort ? [{ port: hostPort, protocol, ip: hostIP || "0.0.0.0" }] : [],
    ),
  );
}

const clash = (a: HostPort, b: HostPort): boolean =>
  a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === "0.0.0.0" || b.ip === "0.0.0.0");

/** A `NoExecute` taint that the pod does not tolerate. */
function untolerated(pod: ReadonlyPod, node: DeepReadonly<Node>): string | undefined {
  const tolerations = pod.spec?.tolerations ?? [];
  return (node.spec?.taints ?? []).find(
    (taint) =>
      taint.effect === "NoExecute" &&
      !tolerations.some(
        (toleration) =>
          (!toleration.effect || toleration.effect === taint.effect) &&
          (!toleration.key || toleration.key === taint.key) &&
          (toleration.operator === "Exists" || (toleration.value ?? "") === (taint.value ?? "")),
      ),
  )?.key;
}
