import type { DeepReadonly } from "#base";
import { type Job, type Pod, podCondition } from "#kinds";
import { timeOf } from "../runtime/objects.ts";

export type J = DeepReadonly<Job>;
export type P = DeepReadonly<Pod>;

export const TRACKING = "batch.kubernetes.io/job-tracking";
export const INDEX = "batch.kubernetes.io/job-completion-index";
export const INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count";
export const INDEX_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count";

export const uidOf = ({ metadata }: P): string => metadata.uid ?? "";
export const isIndexed = (job: J): boolean => job.spec.completionMode === "Indexed";
export const isSuspended = (job: J): boolean => job.spec.suspend === true;
export const hasTracking = (pod: P): boolean => pod.metadata.finalizers?.includes(TRACKING) ?? false;
export const isJobFinished = (job: J): boolean =>
  job.status?.conditions?.some(({ type, status }) => (type === "Complete" || type === "Failed") && status === "True") ??
  false;

/** Pods are replaced only once they are over, not already when they are being deleted. */
export const replacesFailedOnly = (job: J): boolean =>
  job.spec.podReplacementPolicy === "Failed" || job.spec.podFailurePolicy !== undefined;

/** Failed, or being deleted without having succeeded where that counts as a failure. */
export function isFailed(pod: P, job: J): boolean {
  if (pod.status?.phase === "Failed") return true;
  if (replacesFailedOnly(job)) return false;
  return pod.metadata.deletionTimestamp !== undefined && pod.status?.phase !== "Succeeded";
}

/** The completion index; undefined for a pod without a usable one. */
export function indexOf(pod: P): number | undefined {
  const text = pod.metadata.annotations?.[INDEX];
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

const countOf = (pod: P, annotation: string): number => Number(pod.metadata.annotations?.[annotation] ?? 0) || 0;
export const indexFailures = (pod: P): number => countOf(pod, INDEX_FAILURES);
export const indexIgnored = (pod: P): number => countOf(pod, INDEX_IGNORED);

/** When a pod was over, milliseconds: by its containers, else its Ready condition, its deletion, its creation. */
export function finishTime(pod: P): number {
  const sidecars = new Set(
    (pod.spec.initContainers ?? []).flatMap(({ name, restartPolicy }) => (restartPolicy === "Always" ? [name] : [])),
  );
  const statuses = [
    ...(pod.status?.containerStatuses ?? []),
    ...(pod.status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)),
  ];
  const times = statuses.map(({ state }) => timeOf(state?.terminated?.finishedAt));
  if (times.length > 0 && times.every((time) => time > 0)) return Math.max(...times);
  const ready = podCondition(pod, "Ready");
  if (ready?.status === "False" && ready.lastTransitionTime) return timeOf(ready.lastTransitionTime);
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, creationTimestamp } = pod.metadata;
  if (deletionTimestamp) return timeOf(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  return timeOf(creationTimestamp);
}

export const FIRST_BACKOFF = 10_000;
export const MAX_BACKOFF = 600_000;

/** Milliseconds until the next pod after that many failures, the last one at `lastFailure`. */
export function backoffLeft(failures: number, lastFailure: number, now: number): number {
  if (failures === 0) return 0;
  const delay = Math.min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** (failures - 1));
  return Math.max(0, lastFailure + delay - now);
}
