import { isPodActive, isPodReady, isPodTerminal, type JobCondition } from "#kinds";
import { conditionOf } from "../runtime/conditions.ts";
import { formatTime, timeOf } from "../runtime/objects.ts";
import { rankForDeletion } from "../runtime/pod-ranking.ts";
import { parseIndexes } from "./indexes.ts";
import {
  backoffLeft,
  finishTime,
  hasTracking,
  indexFailures,
  indexIgnored,
  indexOf,
  isFailed,
  isIndexed,
  isSuspended,
  type J,
  type P,
  replacesFailedOnly,
  uidOf,
} from "./job-pods.ts";
import { matchFailurePolicy, matchSuccessPolicy } from "./policies.ts";

/** Pods created or deleted in one step at most. */
const BURST = 500;

/** Failures since the last success, for the back-off between pods. */
export interface FailureRecord {
  readonly failures: number;
  readonly last: number;
}

export interface JobView {
  readonly job: J;
  readonly pods: readonly P[];
  /** Pods whose finalizer was removed already, though the cache doesn't show it yet. */
  readonly released: ReadonlySet<string>;
  readonly record: FailureRecord;
  readonly now: number;
}

/** What the pods of a Job say, without a decision. */
export interface JobFacts extends JobView {
  readonly active: readonly P[];
  readonly terminating: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Indexes that the status has as succeeded, and those with the pods that are new. */
  readonly countedIndexes: ReadonlySet<number>;
  readonly succeededIndexes: ReadonlySet<number>;
  readonly failedIndexes: ReadonlySet<number> | undefined;
  /** By index, the failed pod that stays until its replacement is there. */
  readonly replaced: ReadonlyMap<number, P>;
  readonly newRecord: FailureRecord;
}

const uncountedOf = (job: J, field: "succeeded" | "failed"): readonly string[] =>
  job.status?.uncountedTerminatedPods?.[field] ?? [];

/** True for an index that the Job has. */
const validIndex = (job: J, pod: P): boolean => {
  const index = indexOf(pod);
  return !isIndexed(job) || (index !== undefined && index < (job.spec.completions ?? 0));
};

export function readFacts(view: JobView): JobFacts {
  const { job, pods } = view;
  const completions = job.spec.completions ?? 0;
  const tracked = pods.filter((pod) => hasTracking(pod) && !view.released.has(uidOf(pod)) && validIndex(job, pod));
  const fresh = (field: "succeeded" | "failed", over: (pod: P) => boolean) => {
    const known = new Set(uncountedOf(job, field));
    return tracked.filter((pod) => over(pod) && !known.has(uidOf(pod)));
  };
  const newSucceeded = fresh("succeeded", (pod) => pod.status?.phase === "Succeeded");
  const newFailed = fresh("failed", (pod) => isFailed(pod, job));
  const counting = newFailed.filter((pod) => matchFailurePolicy(job.spec.podFailurePolicy, pod).counts);
  const active = pods.filter(isPodActive);
  const countedIndexes = isIndexed(job) ? parseIndexes(job.status?.completedIndexes, completions) : new Set<number>();
  const succeededIndexes = new Set(countedIndexes);
  if (isIndexed(job)) {
    for (const pod of pods) {
      if (pod.status?.phase === "Succeeded" && hasTracking(pod) && validIndex(job, pod))
        succeededIndexes.add(indexOf(pod)!);
    }
  }
  const perIndex = isIndexed(job) && job.spec.backoffLimitPerIndex !== undefined;
  const failedIndexes = perIndex ? failedIndexesOf(job, pods, completions) : undefined;
  const succeeded = isIndexed(job)
    ? succeededIndexes.size
    : (job.status?.succeeded ?? 0) + newSucceeded.length + uncountedOf(job, "succeeded").length;
  return {
    ...view,
    active,
    terminating: pods.filter((pod) => pod.metadata.deletionTimestamp && !isPodTerminal(pod)).length,
    succeeded,
    failed: (job.status?.failed ?? 0) + counting.length + uncountedOf(job, "failed").length,
    countedIndexes,
    succeededIndexes,
    failedIndexes,
    replaced: failedIndexes ? replacedPods(job, tracked, active, succeededIndexes, failedIndexes) : new Map(),
    newRecord: nextRecord(view.record, newSucceeded, newFailed),
  };
}

function failedIndexesOf(job: J, pods: readonly P[], completions: number): Set<number> {
  const result = parseIndexes(job.status?.failedIndexes, completions);
  for (const pod of pods) {
    if (!hasTracking(pod) || !validIndex(job, pod) || !isFailed(pod, job)) continue;
    const { action, counts } = matchFailurePolicy(job.spec.podFailurePolicy, pod);
    if (action === "FailIndex" || (counts && indexFailures(pod) >= (job.spec.backoffLimitPerIndex ?? 0)))
      result.add(indexOf(pod)!);
  }
  return result;
}

function replacedPods(
  job: J,
  tracked: readonly P[],
  active: readonly P[],
  done: ReadonlySet<number>,
  failed: ReadonlySet<number>,
): Map<number, P> {
  const running = new Set(active.map(indexOf));
  const result = new Map<number, P>();
  const total = (pod: P) => indexFailures(pod) + indexIgnored(pod);
  for (const pod of tracked) {
    const index = indexOf(pod)!;
    if (!isFailed(pod, job) || done.has(index) || failed.has(index) || running.has(index)) continue;
    const before = result.get(index);
    if (!before || (total(before) <= total(pod) && finishTime(pod) >= finishTime(before))) result.set(index, pod);
  }
  return result;
}

function nextRecord(record: FailureRecord, succeeded: readonly P[], failed: readonly P[]): FailureRecord {
  if (succeeded.length === 0 && failed.length === 0) return record;
  const times = failed.map(finishTime);
  if (succeeded.length === 0) return { failures: record.failures + failed.length, last: Math.max(...times) };
  const lastSuccess = Math.max(...succeeded.map(finishTime));
  const later = times.filter((time) => time > lastSuccess);
  return { failures: later.length, last: later.length ? Math.max(...later) : 0 };
}

export function makeCondition(
  type: string,
  reason: string,
  message: string,
  now: number,
  status = "True",
): JobCondition {
  const stamp = formatTime(now);
  return { type, status, lastProbeTime: stamp, lastTransitionTime: stamp, reason, message };
}

/**
 * The condition that ends the Job, if it is to end: SuccessCriteriaMet, FailureTarget, or Failed once FailureTarget stands
 * in the status already. Completion by count is left to the step that knows how many pods are active.
 */
export function endCondition(facts: JobFacts): JobCondition | undefined {
  const { job, pods, now } = facts;
  const conditions = job.status?.conditions;
  const met = conditionOf(conditions, "SuccessCriteriaMet");
  if (met?.status === "True") return met as JobCondition;
  const target = conditionOf(conditions, "FailureTarget");
  if (target?.status === "True") return makeCondition("Failed", target.reason ?? "", target.message ?? "", now);
  const fail = (reason: string, message: string) => makeCondition("FailureTarget", reason, message, now);
  if (job.spec.podFailurePolicy) {
    for (const pod of pods) {
      const match = isFailed(pod, job) ? matchFailurePolicy(job.spec.podFailurePolicy, pod) : undefined;
      if (match?.action === "FailJob") return fail("PodFailurePolicy", match.message ?? "");
    }
  }
  if (facts.failed > (job.spec.backoffLimit ?? 6) || tooManyRestarts(job, pods)) {
    return fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
  }
  if (deadlineLeft(facts) === 0) return fail("DeadlineExceeded", "Job was active longer than specified deadline");
  if (facts.failedIndexes) {
    const { size } = facts.failedIndexes;
    if (job.spec.maxFailedIndexes !== undefined && size > job.spec.maxFailedIndexes) {
      return fail("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes");
    }
    if (size > 0 && size + facts.succeededIndexes.size >= (job.spec.completions ?? 0)) {
      return fail("FailedIndexes", "Job has failed indexes");
    }
  }
  if (!isIndexed(job)) return undefined;
  const message = matchSuccessPolicy(job.spec.successPolicy, job.spec.completions ?? 0, facts.succeededIndexes);
  return message === undefined ? undefined : makeCondition("SuccessCriteriaMet", "SuccessPolicy", message, now);
}

/** Restarts in place count against the limit too (restartPolicy OnFailure). */
function tooManyRestarts(job: J, pods: readonly P[]): boolean {
  if (job.spec.template.spec.restartPolicy !== "OnFailure") return false;
  let restarts = 0;
  for (const { status } of pods) {
    if (status?.phase !== "Running" && status?.phase !== "Pending") continue;
    for (const one of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])])
      restarts += one.restartCount ?? 0;
  }
  const limit = job.spec.backoffLimit ?? 6;
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

/** Milliseconds until activeDeadlineSeconds are over; undefined without a deadline or while suspended. */
export function deadlineLeft({ job, now }: JobView): number | undefined {
  const { activeDeadlineSeconds } = job.spec;
  if (activeDeadlineSeconds === undefined || isSuspended(job)) return undefined;
  if (!job.status?.startTime) return activeDeadlineSeconds * 1000;
  return Math.max(0, timeOf(job.status.startTime) + activeDeadlineSeconds * 1000 - now);
}

export interface PodChanges {
  readonly remove: readonly P[];
  /** Completion indexes of the pods to create; undefined ones for a Job without indexes. */
  readonly create: readonly (number | undefined)[];
  /** Milliseconds until more pods may be created. */
  readonly wait?: number;
}

/** Which pods a Job that goes on needs fewer or more. */
export function planPods(facts: JobFacts): PodChanges {
  const { job, active } = facts;
  if (isSuspended(job)) return { remove: forRemoval(facts, active.length), create: [] };
  const parallelism = job.spec.parallelism ?? 1;
  let wanted = parallelism;
  if (job.spec.completions !== undefined)
    wanted = Math.max(0, Math.min(parallelism, job.spec.completions - facts.succeeded));
  else if (facts.succeeded > 0) wanted = active.length;
  const remove = forRemoval(facts, Math.max(0, active.length - wanted)).slice(0, BURST);
  if (remove.length > 0) return { remove, create: [] };
  const missing = wanted - active.length - (replacesFailedOnly(job) ? facts.terminating : 0);
  if (missing <= 0) return { remove: [], create: [] };
  if (!facts.failedIndexes) {
    const wait = backoffLeft(facts.newRecord.failures, facts.newRecord.last, facts.now);
    if (wait > 0) return { remove: [], create: [], wait };
  }
  const count = Math.min(missing, BURST);
  if (!isIndexed(job)) return { remove: [], create: new Array(count).fill(undefined) };
  return indexesToCreate(facts, count);
}

function indexesToCreate(facts: JobFacts, count: number): PodChanges {
  const { job, active, pods } = facts;
  const taken = new Set<number | undefined>([
    ...facts.succeededIndexes,
    ...(facts.failedIndexes ?? []),
    ...active.map(indexOf),
  ]);
  if (replacesFailedOnly(job)) {
    for (const pod of pods) if (pod.metadata.deletionTimestamp && !isPodTerminal(pod)) taken.add(indexOf(pod));
  }
  const create: number[] = [];
  let wait: number | undefined;
  let considered = 0;
  for (let index = 0; index < (job.spec.completions ?? 0) && considered < count; index++) {
    if (taken.has(index)) continue;
    considered++;
    const last = facts.replaced.get(index);
    const left = last ? backoffLeft(indexFailures(last) + indexIgnored(last) + 1, finishTime(last), facts.now) : 0;
    if (left === 0) create.push(index);
    else wait = Math.min(wait ?? left, left);
  }
  return { remove: [], create, ...(wait === undefined ? {} : { wait }) };
}

/** Pods with an index that the Job has not, or that another has too, and as many more as it takes. */
function forRemoval({ job, active, now }: JobFacts, atLeast: number): P[] {
  const remove: P[] = [];
  let left = [...active];
  if (isIndexed(job)) {
    const byIndex = new Map<number, P[]>();
    left = [];
    for (const pod of active) {
      if (!validIndex(job, pod)) remove.push(pod);
      else byIndex.set(indexOf(pod)!, [...(byIndex.get(indexOf(pod)!) ?? []), pod]);
    }
    for (const group of byIndex.values()) {
      const ranked = rankForDeletion(group, () => 0, now);
      left.push(ranked.pop()!);
      remove.push(...ranked);
    }
  }
  if (remove.length < atLeast) remove.push(...rankForDeletion(left, () => 0, now).slice(0, atLeast - remove.length));
  return remove;
}

export const readyCount = (pods: readonly P[]): number => pods.filter(isPodReady).length;
