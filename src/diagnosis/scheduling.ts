import { type NodeSpec, type Pod, untoleratedTaint } from "#kinds";
import {
  aboutOf,
  type Cause,
  conditionLine,
  type Evidence,
  eventLine,
  lastEvent,
  listed,
  relatedOf,
  type ReadonlyPod,
} from "./evidence.ts";

/** Why a pod has no node; undefined when it has one, or when nobody has looked yet. */
export function schedulingCause(evidence: Evidence, pod: ReadonlyPod): Cause | undefined {
  if (pod.spec.nodeName) return undefined;
  const about = aboutOf(pod, "Pod");
  const condition = pod.status?.conditions?.find(({ type, status }) => type === "PodScheduled" && status === "False");
  const event = lastEvent(evidence, about, "FailedScheduling");
  const shown = [...(condition ? [conditionLine(condition)] : []), ...(event ? [eventLine(event)] : [])];
  const who = `pod "${pod.metadata.name}"`;
  if (condition?.reason === "SchedulingGated") {
    const gates = (pod.spec.schedulingGates ?? []).map((gate) => `"${gate.name}"`);
    const sentence = `${who} is held back by the scheduling gate${gates.length > 1 ? "s" : ""} ${listed(gates)}`;
    return { code: "scheduling-gated", sentence, evidence: shown, about, mends: "maybe" };
  }
  const message = condition?.message ?? event?.message;
  if (!message) {
    if (pod.spec.schedulerName && pod.spec.schedulerName !== "default-scheduler")
      return {
        code: "unschedulable",
        sentence: `${who} waits for the scheduler "${pod.spec.schedulerName}", which has not looked at it`,
        evidence: [`spec.schedulerName is ${pod.spec.schedulerName}`],
        about,
        mends: "maybe",
      };
    return undefined;
  }
  return { evidence: shown, about, ...reasonOf(evidence, pod, who, message) };
}

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {k: v}. preemption: …` */
function reasonOf(
  evidence: Evidence,
  pod: ReadonlyPod,
  who: string,
  message: string,
): Pick<Cause, "code" | "sentence" | "mends"> {
  const parts = (/nodes are available: (.*?)\.(?:\s|$)/.exec(message)?.[1] ?? message).split(/, (?=\d)/);
  const no = (code: Cause["code"], sentence: string): Pick<Cause, "code" | "sentence" | "mends"> => ({
    code,
    sentence,
    mends: "maybe",
  });
  const find = (pattern: RegExp) => parts.find((part) => pattern.test(part));
  const claim = /persistentvolumeclaim "([^"]+)" not found/.exec(message);
  if (claim) return no("volume", `${who} needs the PersistentVolumeClaim "${claim[1]}", which does not exist`);
  if (
    /unbound immediate PersistentVolumeClaims|persistentvolumeclaim "[^"]+" (bound to non-existent|is being deleted)/.test(
      message,
    )
  ) {
    const names = claimsOf(pod).filter((one) => phaseOfClaim(evidence, one) !== "Bound");
    return no(
      "claim-pending",
      `${who} waits for the PersistentVolumeClaim ${listed(names.map((n) => `"${n}"`))}, which is not bound`,
    );
  }
  if (find(/didn't have free ports/)) {
    const ports = pod.spec.containers.flatMap((c) => (c.ports ?? []).flatMap((port) => port.hostPort ?? []));
    return no(
      "host-port-conflict",
      `${who} wants the host port ${listed(ports.map(String))}, which another pod holds on every node that it may run on`,
    );
  }
  const insufficient = parts.flatMap((part) => /Insufficient (\S+)/.exec(part)?.[1] ?? []);
  if (insufficient.length > 0) {
    const asks = insufficient.map((resource) => `${resource} (it requests ${requested(pod, resource)})`);
    return no("unschedulable", `no node has enough ${listed(asks)} left for ${who}`);
  }
  if (find(/untolerated taint/)) return taintReason(evidence, pod, who);
  if (find(/didn't match Pod's node affinity|node selector|node\(s\) didn't satisfy plugin/)) {
    const selector = Object.entries(pod.spec.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
    const wanted = selector.length > 0 ? `its node selector ${selector.join(",")}` : "its node affinity";
    return no("unschedulable", `no node fits ${who}: none matches ${wanted}`);
  }
  if (find(/were unschedulable/)) return no("unschedulable", `every node that ${who} could run on is cordoned`);
  if (find(/Too many pods/))
    return no("unschedulable", `every node holds as many pods as it may, so ${who} finds no place`);
  if (/no nodes available/.test(message)) return no("no-nodes", `there is no node on which ${who} could run`);
  return no("unschedulable", `no node takes ${who}: ${parts.join(", ")}`);
}

/** The message does not tell which taint of which node it is: the nodes do. */
function taintReason(evidence: Evidence, pod: ReadonlyPod, who: string): Pick<Cause, "code" | "sentence" | "mends"> {
  const mends = "maybe";
  const found = relatedOf(evidence, "Node").flatMap((node) => {
    const { taints = [] } = (node.spec ?? {}) as Pick<NodeSpec, "taints">;
    const taint = untoleratedTaint(pod as Pod, taints, ["NoSchedule", "NoExecute"]);
    return taint ? [{ node: node.metadata.name, taint }] : [];
  });
  const [first] = found;
  if (!first) return { code: "taint", sentence: `${who} does not tolerate the taints of the nodes`, mends };
  const { key, value, effect } = first.taint;
  const text = `${key}${value ? `=${value}` : ""}:${effect}`;
  if (/^node\.kubernetes\.io\/(not-ready|unreachable)$/.test(key))
    return {
      code: "node-down",
      sentence: `${who} finds no node that is ready: "${first.node}" has the taint ${text}`,
      mends,
    };
  const others = found.length > 1 ? ` and ${found.length - 1} more` : "";
  return {
    code: "taint",
    sentence: `${who} does not tolerate the taint ${text} of the node "${first.node}"${others}`,
    mends,
  };
}

function requested(pod: ReadonlyPod, resource: string): string {
  const amounts = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].flatMap(
    (c) => c.resources?.requests?.[resource] ?? c.resources?.limits?.[resource] ?? [],
  );
  return amounts.length > 0 ? listed(amounts.map(String)) : "none itself";
}

/** Names of the claims that a pod mounts. */
export function claimsOf(pod: ReadonlyPod): string[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    if (volume.persistentVolumeClaim) return [volume.persistentVolumeClaim.claimName];
    return volume.ephemeral ? [`${pod.metadata.name}-${volume.name}`] : [];
  });
}

function phaseOfClaim(evidence: Evidence, name: string): string | undefined {
  const claim = relatedOf(evidence, "PersistentVolumeClaim").find((one) => one.metadata.name === name);
  return (claim?.status as { phase?: string } | undefined)?.phase;
}
