import type { DeepReadonly } from "#base";
import type { ContainerStatus, PodCondition } from "#kinds";
import { isSidecar } from "../pods/restart-policy.ts";
import type { ReadonlyPod } from "../ports.ts";
import { isTerminalPhase, type Phase } from "./phase.ts";

type Condition = Omit<PodCondition, "lastTransitionTime">;
type Status = DeepReadonly<ContainerStatus>;

/** Conditions that the kubelet alone writes. */
export const KUBELET_CONDITIONS: ReadonlySet<string> = new Set([
  "PodScheduled",
  "Ready",
  "Initialized",
  "ContainersReady",
  "PodReadyToStartContainers",
  "PodResizePending",
  "PodResizeInProgress",
  "AllContainersRestarting",
]);

const list = (names: readonly string[]) => `[${names.join(" ")}]`;

/** `ContainersReady`: every main container and sidecar is ready. */
export function containersReady(pod: ReadonlyPod, statuses: readonly Status[], phase: Phase): Condition {
  const type = "ContainersReady";
  const unknown: string[] = [];
  const unready: string[] = [];
  const counted = [...(pod.spec?.initContainers ?? []).filter(isSidecar), ...(pod.spec?.containers ?? [])];
  for (const { name } of counted) {
    const status = statuses.find((item) => item.name === name);
    if (!status) unknown.push(name);
    else if (!status.ready) unready.push(name);
  }
  if (phase === "Succeeded" && unknown.length === 0) return { type, status: "False", reason: "PodCompleted" };
  if (phase === "Failed") return { type, status: "False", reason: "PodFailed" };
  const message = [
    ...(unknown.length > 0 ? [`containers with unknown status: ${list(unknown)}`] : []),
    ...(unready.length > 0 ? [`containers with unready status: ${list(unready)}`] : []),
  ].join(", ");
  return message ? { type, status: "False", reason: "ContainersNotReady", message } : { type, status: "True" };
}

/** `Ready`: the containers are, and every readiness gate. */
export function podReady(
  pod: ReadonlyPod,
  conditions: readonly DeepReadonly<Condition>[],
  statuses: readonly Status[],
  phase: Phase,
): Condition {
  const containers = containersReady(pod, statuses, phase);
  if (containers.status !== "True") return { ...containers, type: "Ready" };
  const missing = (pod.spec?.readinessGates ?? []).flatMap(({ conditionType }) => {
    const condition = conditions.find((item) => item.type === conditionType);
    if (!condition) return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
    if (condition.status === "True") return [];
    return [`the status of pod readiness gate "${conditionType}" is not "True", but ${condition.status}`];
  });
  if (missing.length === 0) return { type: "Ready", status: "True" };
  return { type: "Ready", status: "False", reason: "ReadinessGatesNotReady", message: missing.join(", ") };
}

/** `Initialized`: init containers are done and sidecars started, or a main container has started. */
export function podInitialized(
  pod: ReadonlyPod,
  statuses: readonly Status[],
  phase: Phase,
  wasInitialized: boolean,
): Condition {
  const type = "Initialized";
  const unknown: string[] = [];
  const incomplete: string[] = [];
  for (const container of pod.spec?.initContainers ?? []) {
    const status = statuses.find((item) => item.name === container.name);
    if (!status) unknown.push(container.name);
    else if (!(isSidecar(container) ? status.started : status.ready)) incomplete.push(container.name);
  }
  if (phase === "Succeeded" && unknown.length === 0) return { type, status: "True", reason: "PodCompleted" };
  const started = (pod.spec?.containers ?? []).some((container) => {
    const status = statuses.find((item) => item.name === container.name);
    return status?.state?.running || status?.state?.terminated;
  });
  const message = [
    ...(unknown.length > 0 ? [`containers with unknown status: ${list(unknown)}`] : []),
    ...(incomplete.length > 0 ? [`containers with incomplete status: ${list(incomplete)}`] : []),
  ].join(", ");
  if (started || !message || wasInitialized) return { type, status: "True" };
  return { type, status: "False", reason: "ContainersNotInitialized", message };
}

/** `AllContainersRestarting`. KEP-5532 */
export function allRestarting(phase: Phase, restarting: boolean): Condition {
  const type = "AllContainersRestarting";
  if (isTerminalPhase(phase))
    return { type, status: "False", reason: phase === "Succeeded" ? "PodCompleted" : "PodFailed" };
  if (!restarting) return { type, status: "False" };
  const message = "container exited with restart policy rule";
  return { type, status: "True", reason: "RestartAllContainersStarted", message };
}
