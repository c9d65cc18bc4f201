import type { DeploymentCondition, DeploymentStatus } from "#kinds";
import { conditionOf, withCondition, withoutCondition } from "../runtime/conditions.ts";
import { formatTime, timeOf } from "../runtime/objects.ts";
import { type D, limitsOf, type RS, replicasOf, totalSize } from "./plan.ts";

/** A deadline of this many seconds means none. */
const NO_DEADLINE = 2 ** 31 - 1;

export const hasDeadline = (d: D): boolean =>
  d.spec.progressDeadlineSeconds !== undefined && d.spec.progressDeadlineSeconds !== NO_DEADLINE;

export function makeCondition(
  type: string,
  status: string,
  reason: string,
  message: string,
  now: number,
): DeploymentCondition {
  const stamp = formatTime(now);
  return { type, status, lastUpdateTime: stamp, lastTransitionTime: stamp, reason, message };
}

export const conditionsOf = (status: D["status"]): DeploymentCondition[] =>
  [...(status?.conditions ?? [])] as DeploymentCondition[];

const sum = (list: readonly RS[], count: (rs: RS) => number | undefined): number =>
  list.reduce((total, rs) => total + (count(rs) ?? 0), 0);

/** Counts and the Available condition. */
export function baseStatus(d: D, all: readonly RS[], current: RS | undefined, now: number): DeploymentStatus {
  const available = sum(all, (rs) => rs.status?.availableReplicas);
  const counts = {
    replicas: sum(all, (rs) => rs.status?.replicas),
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: sum(all, (rs) => rs.status?.readyReplicas),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, totalSize(all) - available),
  };
  const enough = available >= replicasOf(d) - limitsOf(d).unavailable;
  const condition = enough
    ? makeCondition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    : makeCondition(
        "Available",
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
        now,
      );
  const terminating = all.every((rs) => rs.status?.terminatingReplicas !== undefined)
    ? { terminatingReplicas: sum(all, (rs) => rs.status?.terminatingReplicas) }
    : {};
  return {
    ...(d.metadata.generation ? { observedGeneration: d.metadata.generation } : {}),
    ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    ...terminating,
    ...(d.status?.collisionCount === undefined ? {} : { collisionCount: d.status.collisionCount }),
    conditions: withCondition(conditionsOf(d.status), condition),
  };
}

/** All pods are of the present template and available, and none of another is left. */
export function isComplete(d: D, status: D["status"]): boolean {
  const wanted = replicasOf(d);
  return (
    (status?.updatedReplicas ?? 0) === wanted &&
    (status?.replicas ?? 0) === wanted &&
    (status?.availableReplicas ?? 0) === wanted &&
    (status?.observedGeneration ?? 0) >= (d.metadata.generation ?? 0)
  );
}

function hasProgressed(before: D["status"], now: DeploymentStatus): boolean {
  const old = (status: D["status"]) => (status?.replicas ?? 0) - (status?.updatedReplicas ?? 0);
  const grew = (field: "updatedReplicas" | "readyReplicas" | "availableReplicas") =>
    (now[field] ?? 0) > (before?.[field] ?? 0);
  return grew("updatedReplicas") || old(now) < old(before) || grew("readyReplicas") || grew("availableReplicas");
}

/** The status during a rollout: counts, Available, Progressing and ReplicaFailure. */
export function rolloutStatus(d: D, all: readonly RS[], current: RS | undefined, now: number): DeploymentStatus {
  const status = baseStatus(d, all, current, now);
  let conditions = status.conditions ?? [];
  const before = conditionOf(conditionsOf(d.status), "Progressing");
  if (!hasDeadline(d)) conditions = withoutCondition(conditions, "Progressing");
  const over = (status.replicas ?? 0) === (status.updatedReplicas ?? 0) && before?.reason === "NewReplicaSetAvailable";
  if (hasDeadline(d) && !over) {
    const what = current ? `ReplicaSet "${current.metadata.name}"` : `Deployment "${d.metadata.name}"`;
    if (isComplete(d, status)) {
      const message = `${what} has successfully progressed.`;
      conditions = withCondition(
        conditions,
        makeCondition("Progressing", "True", "NewReplicaSetAvailable", message, now),
      );
    } else if (hasProgressed(d.status, status)) {
      const next = makeCondition("Progressing", "True", "ReplicaSetUpdated", `${what} is progressing.`, now);
      if (before?.status === "True" && before.lastTransitionTime) next.lastTransitionTime = before.lastTransitionTime;
      conditions = [...withoutCondition(conditions, "Progressing"), next];
    } else if (before && hasTimedOut(d, before, now)) {
      const message = `${what} has timed out progressing.`;
      conditions = withCondition(
        conditions,
        makeCondition("Progressing", "False", "ProgressDeadlineExceeded", message, now),
      );
    }
  }
  const failure = replicaFailure(all, current);
  conditions = failure
    ? withCondition(conditions, { ...failure, lastUpdateTime: failure.lastTransitionTime ?? formatTime(now) })
    : withoutCondition(conditions, "ReplicaFailure");
  return { ...status, conditions };
}

function hasTimedOut(d: D, progressing: DeploymentCondition, now: number): boolean {
  if (progressing.reason === "NewReplicaSetAvailable") return false;
  if (progressing.reason === "ProgressDeadlineExceeded") return true;
  return timeOf(progressing.lastUpdateTime) + (d.spec.progressDeadlineSeconds ?? 0) * 1000 < now;
}

function replicaFailure(all: readonly RS[], current: RS | undefined): DeploymentCondition | undefined {
  for (const rs of current ? [current, ...all] : all) {
    const failure = conditionOf(rs.status?.conditions, "ReplicaFailure");
    if (failure) return failure as DeploymentCondition;
  }
  return undefined;
}

/** Milliseconds until the rollout has to be looked at for its deadline; undefined when there is nothing to wait for. */
export function deadlineIn(d: D, status: DeploymentStatus, now: number): number | undefined {
  const progressing = conditionOf(status.conditions, "Progressing");
  if (!hasDeadline(d) || !progressing) return undefined;
  if (isComplete(d, status) || progressing.reason === "ProgressDeadlineExceeded") return undefined;
  const left = timeOf(progressing.lastUpdateTime) + (d.spec.progressDeadlineSeconds ?? 0) * 1000 - now;
  return Math.max(0, left) + 1000;
}
