import type { JobCondition, JobStatus } from "#kinds";
import { formatIndexes } from "./indexes.ts";
import { hasTracking, indexOf, isFailed, isIndexed, type P, uidOf } from "./job-pods.ts";
import type { JobFacts } from "./plan.ts";
import { matchFailurePolicy } from "./policies.ts";

/** Pods that wait to be counted at most, so that the status stays small. */
const MAX_UNCOUNTED = 500;

export interface TrackingPlan {
  readonly status: JobStatus;
  /** Pods that are accounted for in `status`: once it is written they may lose their finalizer. */
  readonly release: readonly P[];
  /** More pods wait to be counted than one status takes. */
  readonly more: boolean;
  readonly changed: boolean;
}

/**
 * Counts finished pods. A pod is first named in the status, then loses its finalizer, then becomes a number; so that no crash
 * in between counts it twice or not at all. https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-tracking-with-finalizers
 */
export function planTracking(facts: JobFacts, before: JobStatus, end: JobCondition | undefined): TrackingPlan {
  const { job } = facts;
  const tracked = facts.pods.filter((pod) => hasTracking(pod) && !facts.released.has(uidOf(pod)));
  if (isIndexed(job)) tracked.sort((a, b) => (indexOf(a) ?? -1) - (indexOf(b) ?? -1));
  const settled = settle(before, new Set(tracked.map(uidOf)));
  let changed = settled !== before;
  const succeeded = [...(settled.uncountedTerminatedPods?.succeeded ?? [])];
  const failed = [...(settled.uncountedTerminatedPods?.failed ?? [])];
  const known = { succeeded: new Set(succeeded), failed: new Set(failed) };
  const indexes = new Set(facts.countedIndexes);
  let newIndexes = 0;
  const release: P[] = [];
  let more = false;
  for (const pod of tracked) {
    const isOver = isFailed(pod, job);
    if (!mayRelease(facts, pod, isOver, end)) continue;
    release.push(pod);
    const uid = uidOf(pod);
    const index = indexOf(pod);
    const valid = index !== undefined && index < (job.spec.completions ?? 0);
    if (pod.status?.phase === "Succeeded" && !known.failed.has(uid)) {
      if (isIndexed(job)) {
        if (valid && !indexes.has(index)) {
          indexes.add(index);
          newIndexes++;
          changed = true;
        }
      } else if (!known.succeeded.has(uid)) {
        succeeded.push(uid);
        changed = true;
      }
    } else if (
      (isOver || (end && end.type !== "SuccessCriteriaMet")) &&
      !known.failed.has(uid) &&
      (!isIndexed(job) || valid)
    ) {
      if (matchFailurePolicy(job.spec.podFailurePolicy, pod).counts) {
        failed.push(uid);
        changed = true;
      }
    }
    if (newIndexes + succeeded.length + failed.length >= MAX_UNCOUNTED) {
      more = true;
      break;
    }
  }
  let status: JobStatus = { ...settled, uncountedTerminatedPods: uncounted(succeeded, failed) };
  if (isIndexed(job)) status = withIndexes(status, indexes, facts.failedIndexes);
  changed ||= status.completedIndexes !== before.completedIndexes || status.failedIndexes !== before.failedIndexes;
  return { status, release, more, changed };
}

function withIndexes(status: JobStatus, done: ReadonlySet<number>, failed: ReadonlySet<number> | undefined): JobStatus {
  const { completedIndexes: _, succeeded: __, ...rest } = status;
  return {
    ...rest,
    ...(done.size ? { succeeded: done.size, completedIndexes: formatIndexes(done) } : {}),
    ...(failed ? { failedIndexes: formatIndexes(failed) } : {}),
  };
}

function mayRelease(facts: JobFacts, pod: P, isOver: boolean, end: JobCondition | undefined): boolean {
  if (facts.job.metadata.deletionTimestamp || end || pod.status?.phase === "Succeeded") return true;
  if (!isOver) return false;
  const index = indexOf(pod);
  return index === undefined || facts.replaced.get(index) !== pod;
}

const uncounted = (succeeded: string[], failed: string[]): NonNullable<JobStatus["uncountedTerminatedPods"]> => ({
  ...(succeeded.length ? { succeeded } : {}),
  ...(failed.length ? { failed } : {}),
});

/** Turns named pods that have lost their finalizer (are not in `tracked`) into numbers; the same object when there are none. */
export function settle(status: JobStatus, tracked: ReadonlySet<string>): JobStatus {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const left = {
    succeeded: succeeded.filter((uid) => tracked.has(uid)),
    failed: failed.filter((uid) => tracked.has(uid)),
  };
  const done = succeeded.length - left.succeeded.length;
  const lost = failed.length - left.failed.length;
  if (done + lost === 0) return status;
  return {
    ...status,
    uncountedTerminatedPods: uncounted(left.succeeded, left.failed),
    ...(done ? { succeeded: (status.succeeded ?? 0) + done } : {}),
    ...(lost ? { failed: (status.failed ?? 0) + lost } : {}),
  };
}
