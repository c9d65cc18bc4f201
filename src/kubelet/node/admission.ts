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

/** The node lacks something that a resized pod asks for: for now (`feasible`), or whatever else runs on it. */
export interface Misfit {
  readonly feasible: boolean;
  readonly resource: string;
  readonly message: string;
}

/** Whether the node has what a pod that it runs asks for now. */
export function createFit(deps: Pick<AdmissionDeps, "node" | "pods">): (pod: ReadonlyPod) => Misfit | undefined {
  return (pod) => {
    const node = deps.node();
    if (!node) return undefined;
    const allocatable = node.status?.allocatable ?? {};
    for (const [resource, requested] of podAmounts(pod, "requests")) {
      if (resource !== "cpu" && resource !== "memory") continue;
      const capacity = capacityOf(allocatable, resource);
      if (requested <= capacity) continue;
      const message = `Node didn't have enough capacity: ${resource}, requested: ${requested}, capacity: ${capacity}`;
      return { feasible: false, resource, message };
    }
    const short = lacking(pod, allocatable, activeOthers(deps.pods(), pod));
    return short && { feasible: true, resource: short.resource, message: shortage(short).message };
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
  if (others.length + 1 > most) {
    return shortage({ resource: "pods", requested: 1, used: others.length, capacity: most });
  }
  const short = lacking(pod, allocatable, others);
  if (short) return shortage(short);
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

interface Shortage {
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}

type Quantities = Readonly<Record<string, string>>;

const capacityOf = (allocatable: Quantities, name: string): number =>
  name === "cpu" ? milliValue(allocatable[name]) : wholeValue(allocatable[name]);

/** The first resource that is too short for the pod beside the others. */
function lacking(pod: ReadonlyPod, allocatable: Quantities, others: readonly ReadonlyPod[]): Shortage | undefined {
  const taken = new Map<string, number>();
  for (const other of others) {
    for (const [name, amount] of podAmounts(other, "requests")) taken.set(name, (taken.get(name) ?? 0) + amount);
  }
  for (const [resource, requested] of podAmounts(pod, "requests")) {
    // A resource that the node does not have at all is the cluster's own affair.
    if (requested === 0 || (allocatable[resource] === undefined && resource.includes("/"))) continue;
    const capacity = capacityOf(allocatable, resource);
    const used = taken.get(resource) ?? 0;
    if (requested + used > capacity) return { resource, requested, used, capacity };
  }
  return undefined;
}

const predicate = (name: string, why: string): Refusal => ({
  reason: name,
  message: `Predicate ${name} failed: ${why}`,
});

function shortage({ resource, requested, used, capacity }: Shortage): Refusal {
  return {
    reason: `OutOf${resource}`,
    message: `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
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
