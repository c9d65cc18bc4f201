import { containerCause } from "./container.ts";
import { finalizerCause } from "./deletion.ts";
import {
  aboutOf,
  type Cause,
  conditionLine,
  type Evidence,
  eventLine,
  lastEvent,
  listed,
  oneLine,
  type ReadonlyPod,
  relatedOf,
} from "./evidence.ts";
import { claimsOf, schedulingCause } from "./scheduling.ts";
import { claimCause } from "./storage.ts";

/** Why a pod is not ready. */
export function podCauses(evidence: Evidence, pod: ReadonlyPod): Cause[] {
  if (pod.metadata.deletionTimestamp) return [deletingCause(evidence, pod)];
  const whole = endedCause(evidence, pod);
  if (whole) return [whole];
  const placing = schedulingCause(evidence, pod);
  if (placing) return placing.code === "claim-pending" ? [...claimCauses(evidence, pod), placing] : [placing];
  if (!pod.spec.nodeName) return [];
  const containers = containerCauses(evidence, pod);
  if (containers.length > 0) return containers;
  return [nodeCause(evidence, pod) ?? setUpCause(evidence, pod) ?? gateCause(pod)].filter(
    (cause) => cause !== undefined,
  );
}

function containerCauses(evidence: Evidence, pod: ReadonlyPod): Cause[] {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const init = initContainerStatuses.flatMap((status) => containerCause(evidence, pod, status, true) ?? []);
  // while an init container is in the way, the others have not begun
  if (init.length > 0) return init;
  return containerStatuses.flatMap((status) => containerCause(evidence, pod, status, false) ?? []);
}

/** Pods that ended as a whole: evicted, refused by the node, out of time. */
function endedCause(evidence: Evidence, pod: ReadonlyPod): Cause | undefined {
  const { phase, reason, message = "" } = pod.status ?? {};
  if (phase !== "Failed") return undefined;
  const about = aboutOf(pod, "Pod");
  const who = `pod "${pod.metadata.name}"`;
  const shown = [`the pod is Failed${reason ? ` (${reason})` : ""}${message ? `: ${oneLine(message)}` : ""}`];
  if (!reason) {
    const [first] = containerCauses(evidence, pod);
    return first ?? { code: "pod-failed", sentence: `${who} failed`, evidence: shown, about, mends: "never" };
  }
  const code = reason === "Evicted" || reason === "Preempting" ? "evicted" : "pod-failed";
  const sentences: Readonly<Record<string, string>> = {
    Evicted: `${who} was evicted from its node: ${oneLine(message)}`,
    DeadlineExceeded: `${who} ran longer than its activeDeadlineSeconds of ${pod.spec.activeDeadlineSeconds}`,
  };
  const sentence = sentences[reason] ?? `${who} failed (${reason}): ${oneLine(message)}`;
  return { code, sentence, evidence: shown, about, mends: "never" };
}

function deletingCause(evidence: Evidence, pod: ReadonlyPod): Cause {
  const about = aboutOf(pod, "Pod");
  const held = finalizerCause(pod as never, about);
  if (held) return held;
  return {
    code: "deleting",
    sentence: `pod "${pod.metadata.name}" is being deleted; its containers have until ${pod.metadata.deletionTimestamp} to end`,
    evidence: [`metadata.deletionTimestamp is ${pod.metadata.deletionTimestamp}`, ...killing(evidence, pod)],
    about,
    mends: "maybe",
  };
}

function killing(evidence: Evidence, pod: ReadonlyPod): string[] {
  const event = lastEvent(evidence, aboutOf(pod, "Pod"), "Killing", "FailedKillPod");
  return event ? [eventLine(event)] : [];
}

function nodeCause(evidence: Evidence, pod: ReadonlyPod): Cause | undefined {
  const node = relatedOf(evidence, "Node").find((one) => one.metadata.name === pod.spec.nodeName);
  const conditions = (
    node?.status as { conditions?: { type: string; status: string; reason?: string; message?: string }[] } | undefined
  )?.conditions;
  const ready = conditions?.find(({ type }) => type === "Ready");
  if (!ready || ready.status === "True") return undefined;
  return {
    code: "node-down",
    sentence: `the node "${pod.spec.nodeName}" of pod "${pod.metadata.name}" is not ready: ${ready.message ?? ready.reason ?? "it gives no sign"}`,
    evidence: [conditionLine(ready)],
    about: { kind: "Node", name: pod.spec.nodeName ?? "" },
    mends: "maybe",
  };
}

/** What comes before the containers: volumes and the sandbox. */
function setUpCause(evidence: Evidence, pod: ReadonlyPod): Cause | undefined {
  const about = aboutOf(pod, "Pod");
  const begun = (pod.status?.containerStatuses ?? []).some(({ state }) => state?.running || state?.terminated);
  if (begun) return undefined;
  const who = `pod "${pod.metadata.name}"`;
  const mount = lastEvent(evidence, about, "FailedMount", "FailedAttachVolume", "FailedMapVolume");
  if (mount) return mountCause(pod, mount.message ?? "", eventLine(mount));
  const sandbox = lastEvent(evidence, about, "FailedCreatePodSandBox", "FailedPodSandBoxStatus", "NetworkNotReady");
  if (!sandbox) return undefined;
  const why = oneLine(sandbox.message ?? "").replace(/^Failed to create pod sandbox:\s*/, "");
  const sentence = `the sandbox of ${who} can't be made: ${why}`;
  return { code: "sandbox", sentence, evidence: [eventLine(sandbox)], about, mends: "maybe" };
}

function mountCause(pod: ReadonlyPod, message: string, shown: string): Cause {
  const about = aboutOf(pod, "Pod");
  const who = `pod "${pod.metadata.name}"`;
  const volume = /for volume "([^"]+)"/.exec(message)?.[1];
  const named = volume ? `the volume "${volume}" of ${who}` : `a volume of ${who}`;
  const missing = /\b(configmap|secret) "([^"]+)" not found/i.exec(message);
  if (missing) {
    const kind = missing[1]!.toLowerCase() === "secret" ? "Secret" : "ConfigMap";
    const sentence = `${named} needs the ${kind} "${missing[2]}", which does not exist`;
    return { code: "config-missing", sentence, evidence: [shown], about, mends: "never" };
  }
  const key = /references non-existent (?:config|secret) key: (\S+)/.exec(message);
  if (key) {
    const sentence = `${named} needs the key "${key[1]}", which its ConfigMap or Secret does not have`;
    return { code: "config-missing", sentence, evidence: [shown], about, mends: "never" };
  }
  const why = oneLine(message).replace(/^MountVolume\.\S+ failed for volume "[^"]*"\s*:\s*/, "");
  return { code: "volume", sentence: `${named} can't be mounted: ${why}`, evidence: [shown], about, mends: "maybe" };
}

/** All containers are ready; what is missing comes from somebody else. */
function gateCause(pod: ReadonlyPod): Cause | undefined {
  const conditions = pod.status?.conditions ?? [];
  const open = (pod.spec.readinessGates ?? [])
    .map((gate) => gate.conditionType)
    .filter((type) => conditions.find((one) => one.type === type)?.status !== "True");
  if (open.length === 0) return undefined;
  const shown = open.map((type) => {
    const condition = conditions.find((one) => one.type === type);
    return condition ? conditionLine(condition) : `condition ${type} is not set`;
  });
  return {
    code: "readiness-gate",
    sentence: `the containers of pod "${pod.metadata.name}" are ready, but its readiness gate ${listed(open.map((t) => `"${t}"`))} is not True: whoever sets this condition has not`,
    evidence: shown,
    about: aboutOf(pod, "Pod"),
    mends: "maybe",
  };
}

function claimCauses(evidence: Evidence, pod: ReadonlyPod): Cause[] {
  return claimsOf(pod).flatMap((name) => {
    const claim = relatedOf(evidence, "PersistentVolumeClaim").find((one) => one.metadata.name === name);
    return (claim && claimCause(evidence, claim)) ?? [];
  });
}
