import { type DeepReadonly, deepEqual } from "#base";
import {
  isPodReady,
  isStatus,
  type JobCondition,
  type JobStatus,
  matchesSelector,
  type Pod,
  type PodTemplateSpec,
  resources,
} from "#kinds";
import { conditionOf } from "../runtime/conditions.ts";
import { type Controller, type ControllerDeps, createController, type ReconcileResult } from "../runtime/controller.ts";
import { createExpectations } from "../runtime/expectations.ts";
import {
  fromCache,
  ignoreNotFound,
  isNamespaceTerminating,
  keyOf,
  timestamp,
  writeStatus,
} from "../runtime/objects.ts";
import { claim, controlledBy, controllerKey, indexByController } from "../runtime/ownership.ts";
import { createPodControl, podFromTemplate, slowStart } from "../runtime/pod-control.ts";
import {
  hasTracking,
  INDEX,
  INDEX_FAILURES,
  INDEX_IGNORED,
  indexFailures,
  indexIgnored,
  isIndexed,
  isJobFinished,
  isSuspended,
  type J,
  type P,
  TRACKING,
  uidOf,
} from "./job-pods.ts";
import {
  deadlineLeft,
  endCondition,
  type FailureRecord,
  type JobFacts,
  makeCondition,
  planPods,
  readFacts,
  readyCount,
} from "./plan.ts";
import { matchFailurePolicy } from "./policies.ts";
import { planTracking, settle } from "./tracking.ts";

const MANAGER = "kubernetes.io/job-controller";
const ORPHAN = "orphan:";
const NO_FAILURES: FailureRecord = { failures: 0, last: 0 };

/** Runs pods until enough have succeeded. https://kubernetes.io/docs/concepts/workloads/controllers/job/ */
export function createJobController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const jobs = deps.informers.for(resources.jobs);
  const pods = deps.informers.for(resources.pods);
  const recorder = deps.recorder("job-controller");
  const control = createPodControl({ client, recorder });
  const expectations = createExpectations(clock);
  const records = new Map<string, FailureRecord>();
  /** Pods that have lost their finalizer by our hand and are in the cache with it still. */
  const released = new Set<string>();
  /** Jobs that we have written as finished, until the cache says so too. */
  const finished = new Set<string>();
  indexByController(pods);

  async function release(pod: P): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    const body = { metadata: { uid, "$deleteFromPrimitiveList/finalizers": [TRACKING] } };
    try {
      await client.patch(resources.pods, name, { type: "strategic", body }, { namespace });
    } catch (error) {
      if (!isStatus(error, "NotFound", "Conflict")) throw error;
    }
    if (fromCache(pods, keyOf(pod))?.metadata.uid === uid) released.add(uidOf(pod));
  }

  async function createPods(
    key: string,
    facts: JobFacts,
    create: readonly (number | undefined)[],
  ): Promise<{ made: number; error: unknown }> {
    const { job } = facts;
    expectations.expectCreations(key, create.length);
    let tried = 0;
    const { successes, error } = await slowStart(create.length, async (i) => {
      tried++;
      try {
        await control.create(podOf(facts, create[i]), job);
      } catch (failure) {
        expectations.creationObserved(key);
        if (!isNamespaceTerminating(failure)) throw failure;
      }
    });
    for (let i = tried; i < create.length; i++) expectations.creationObserved(key);
    return { made: successes, error };
  }
  /** Deletes pods; those that don't count as failures lose their finalizer first. */
  async function deletePods(
    key: string,
    job: J,
    list: readonly P[],
    uncounted: boolean,
  ): Promise<{ gone: readonly P[]; error: unknown }> {
    if (uncounted) expectations.expectDeletions(key, list.map(uidOf));
    const gone: P[] = [];
    const results = await Promise.allSettled(
      list.map(async (pod) => {
        try {
          if (uncounted && hasTracking(pod)) await release(pod);
          await control.delete(pod, job);
          gone.push(pod);
        } catch (error) {
          expectations.deletionObserved(key, uidOf(pod));
          throw error;
        }
      }),
    );
    return { gone, error: results.find((result) => result.status === "rejected")?.reason };
  }

  interface Step {
    active: number;
    ready: number;
    terminating: number;
    end: JobCondition | undefined;
    conditions: JobCondition[];
    startTime: string | undefined;
    wait: number | undefined;
    error: unknown;
  }

  /** Ends the Job by deleting what runs, or brings its pods to the number that it needs. */
  async function step(key: string, facts: JobFacts, satisfied: boolean): Promise<Step> {
    const { job } = facts;
    const result: Step = {
      active: facts.active.length,
      ready: readyCount(facts.active),
      terminating: facts.terminating,
      end: endCondition(facts),
      conditions: [...(job.status?.conditions ?? [])] as JobCondition[],
      startTime: job.status?.startTime ?? (isSuspended(job) ? undefined : timestamp(clock)),
      wait: deadlineLeft(facts),
      error: undefined,
    };
    const removed = (gone: readonly P[]) => {
      result.active -= gone.length;
      result.terminating += gone.filter(({ spec }) => spec.nodeName).length;
      result.ready -= gone.filter(isPodReady).length;
    };
    if (result.end) {
      const { gone, error } = await deletePods(key, job, facts.active, false);
      if (gone.length !== facts.active.length || !satisfied) result.end = undefined;
      removed(gone);
      result.error = error;
      return result;
    }
    const mayManage = satisfied && !job.metadata.deletionTimestamp;
    if (mayManage) {
      const plan = planPods(facts);
      if (plan.remove.length) {
        const { gone, error } = await deletePods(key, job, plan.remove, true);
        removed(gone);
        result.error = error;
      } else if (plan.create.length) {
        const { made, error } = await createPods(key, facts, plan.create);
        result.active += made;
        result.error = error;
      }
      if (plan.wait !== undefined) result.wait = Math.min(plan.wait, result.wait ?? plan.wait);
    }
    const { completions } = job.spec;
    const complete = completions === undefined ? facts.succeeded > 0 : facts.succeeded >= completions;
    if (complete && result.active === 0) {
      result.end = makeCondition(
        "SuccessCriteriaMet",
        "CompletionsReached",
        "Reached expected number of succeeded pods",
        facts.now,
      );
    } else if (mayManage) suspendOrResume(job, result, facts.now);
    return result;
  }

  function suspendOrResume(job: J, result: Step, now: number): void {
    const before = conditionOf(result.conditions, "Suspended");
    const wanted = isSuspended(job) ? "True" : "False";
    if ((before?.status ?? "False") === wanted) return;
    const [reason, message] = isSuspended(job) ? ["JobSuspended", "Job suspended"] : ["JobResumed", "Job resumed"];
    const next = makeCondition("Suspended", reason!, message!, now, wanted);
    result.conditions = before
      ? result.conditions.map((one) => (one === before ? next : one))
      : [...result.conditions, next];
    recorder.event(job, "Normal", isSuspended(job) ? "Suspended" : "Resumed", message!);
    result.startTime = isSuspended(job) ? undefined : timestamp(clock);
  }

  /** Writes the status, lets counted pods go, and writes it again where that makes numbers of them or ends the Job. */
  async function track(key: string, facts: JobFacts, done: Step): Promise<void> {
    const { job, now } = facts;
    const { completedIndexes: _, startTime: __, active: ___, ...old } = (job.status ?? {}) as JobStatus;
    const { completedIndexes } = job.status ?? {};
    const base: JobStatus = {
      ...old,
      ...(completedIndexes === undefined ? {} : { completedIndexes }),
      conditions: done.conditions,
      ...(done.startTime ? { startTime: done.startTime } : {}),
      ...(done.active ? { active: done.active } : {}),
      ready: done.ready,
      terminating: done.terminating,
      uncountedTerminatedPods: old.uncountedTerminatedPods ?? {},
    };
    const plan = planTracking(facts, base, done.end);
    let { status } = plan;
    let final = done.end;
    if (final?.type === "FailureTarget" || final?.type === "SuccessCriteriaMet") {
      if (!conditionOf(status.conditions, final.type))
        status = { ...status, conditions: [...(status.conditions ?? []), final] };
      const type = final.type === "FailureTarget" ? "Failed" : "Complete";
      final = makeCondition(type, final.reason ?? "", final.message ?? "", now);
    }
    let latest = job;
    if (!deepEqual(tidy(status), tidy(job.status as JobStatus))) {
      latest = await writeStatus(client, resources.jobs, job, tidy(status));
    }
    if (facts.newRecord.failures) records.set(key, facts.newRecord);
    else records.delete(key);
    const results = await Promise.allSettled(plan.release.map(release));
    const failure = results.find((result) => result.status === "rejected");
    const failedToLoseIt = new Set(plan.release.filter((_, i) => results[i]?.status === "rejected"));
    const held = facts.pods.filter(
      (pod) =>
        hasTracking(pod) && !released.has(uidOf(pod)) && (!plan.release.includes(pod) || failedToLoseIt.has(pod)),
    );
    const settled = settle(status, new Set(held.map(uidOf)));
    const { succeeded = [], failed = [] } = settled.uncountedTerminatedPods ?? {};
    const over =
      final !== undefined && !plan.more && !failure && succeeded.length + failed.length === 0 && done.terminating === 0;
    const next = over ? ended(settled, final!) : settled;
    if (!deepEqual(tidy(next), tidy(latest.status as JobStatus))) {
      latest = await writeStatus(client, resources.jobs, latest, tidy(next));
    }
    if (over) announce(key, latest, final!);
    if (failure) throw failure.reason;
  }

  function announce(key: string, job: J, final: JobCondition): void {
    finished.add(job.metadata.uid ?? "");
    records.delete(key);
    if (final.type === "Failed") {
      recorder.event(job, "Warning", final.reason ?? "", final.message ?? "");
      return;
    }
    if (job.spec.completions !== undefined && (job.status?.succeeded ?? 0) > job.spec.completions) {
      const message = "Too many succeeded pods running after completion count reached";
      recorder.event(job, "Warning", "TooManySucceededPods", message);
    }
    recorder.event(job, "Normal", "Completed", "Job completed");
  }

  /** A pod whose Job is gone or over must not be held by its finalizer. */
  async function releaseOrphan(key: string): Promise<void> {
    const pod = fromCache(pods, key);
    if (!pod || !hasTracking(pod)) return;
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller);
    if (owner?.kind === "Job") {
      const job = await ignoreNotFound(client.get(resources.jobs, owner.name, { namespace: pod.metadata.namespace }));
      if (job && job.metadata.uid === owner.uid && !isJobFinished(job)) return;
    }
    await release(pod);
  }

  return createController(deps, {
    name: "job",
    watch({ on, enqueue }) {
      const ownerOf = (pod: P) => controllerKey(pod, resources.jobs as never);
      const orphaned = (pod: P) => hasTracking(pod) && enqueue(ORPHAN + keyOf(pod));
      const changed = (pod: P) => {
        const key = ownerOf(pod);
        if (!key) {
          if (pod.metadata.ownerReferences?.some(({ controller }) => controller)) return;
          if (hasTracking(pod)) orphaned(pod);
          for (const job of jobs.list(pod.metadata.namespace)) {
            if (matchesSelector(job.spec.selector, pod.metadata.labels)) enqueue(keyOf(job));
          }
          return;
        }
        const job = fromCache(jobs, key);
        if (hasTracking(pod) && (!job || isJobFinished(job))) orphaned(pod);
        if (pod.metadata.deletionTimestamp) expectations.deletionObserved(key, uidOf(pod));
        enqueue(key);
      };
      on(jobs, {
        add: (job) => enqueue(keyOf(job)),
        update(job, previous) {
          if (job.metadata.uid !== previous.metadata.uid) expectations.forget(keyOf(previous));
          enqueue(keyOf(job));
        },
        delete(job) {
          expectations.forget(keyOf(job));
          finished.delete(job.metadata.uid ?? "");
          for (const pod of controlledBy(pods, job.metadata.uid)) orphaned(pod);
          enqueue(keyOf(job));
        },
      });
      on(pods, {
        add(pod) {
          const key = ownerOf(pod);
          if (key && !pod.metadata.deletionTimestamp) expectations.creationObserved(key);
          changed(pod);
        },
        update(pod, previous) {
          if (!hasTracking(pod)) released.delete(uidOf(pod));
          const before = ownerOf(previous);
          if (before && before !== ownerOf(pod)) enqueue(before);
          changed(pod);
        },
        delete(pod) {
          released.delete(uidOf(pod));
          const key = ownerOf(pod);
          if (!key) return;
          expectations.deletionObserved(key, uidOf(pod));
          enqueue(key);
        },
      });
    },
    async reconcile(key): Promise<ReconcileResult> {
      if (key.startsWith(ORPHAN)) return releaseOrphan(key.slice(ORPHAN.length));
      const job = fromCache(jobs, key);
      if (!job) {
        records.delete(key);
        return expectations.forget(key);
      }
      if (job.spec.managedBy && job.spec.managedBy !== MANAGER) return;
      if (isJobFinished(job)) return void finished.delete(job.metadata.uid ?? "");
      if (finished.has(job.metadata.uid ?? "")) return;
      const satisfied = expectations.satisfied(key);
      const claimed = await claim(client, {
        informer: pods,
        resource: resources.pods,
        owner: job,
        ownerResource: resources.jobs,
        matches: (pod: DeepReadonly<Pod>) => matchesSelector(job.spec.selector, pod.metadata.labels),
        adoptWith: { finalizers: [TRACKING] },
      });
      const facts = readFacts({
        job,
        pods: claimed,
        released,
        record: records.get(key) ?? NO_FAILURES,
        now: clock.now(),
      });
      const done = await step(key, facts, satisfied);
      await track(key, facts, done);
      if (done.error !== undefined) throw done.error;
      return { requeueAfterMs: done.wait };
    },
  });
}

function ended(status: JobStatus, final: JobCondition): JobStatus {
  const conditions = [...(status.conditions ?? []).filter(({ type }) => type !== final.type), final];
  const completionTime = final.type === "Complete" ? { completionTime: final.lastTransitionTime! } : {};
  return { ...status, conditions, ...completionTime };
}

/** Without what is empty, as it is stored. */
function tidy(status: JobStatus | undefined): JobStatus {
  const { conditions, completedIndexes, ...rest } = status ?? {};
  return {
    ...rest,
    ...(conditions?.length ? { conditions } : {}),
    ...(completedIndexes ? { completedIndexes } : {}),
  };
}

function podOf(facts: JobFacts, index: number | undefined): Pod {
  const { job } = facts;
  const template = job.spec.template as DeepReadonly<PodTemplateSpec>;
  const pod = podFromTemplate(template, job, resources.jobs);
  pod.metadata.finalizers = [...new Set([...(pod.metadata.finalizers ?? []), TRACKING])];
  if (index === undefined || !isIndexed(job)) return pod;
  const annotations: Record<string, string> = { ...pod.metadata.annotations, [INDEX]: String(index) };
  if (facts.failedIndexes) {
    const before = facts.replaced.get(index);
    const counts = before ? matchFailurePolicy(job.spec.podFailurePolicy, before).counts : false;
    const failures = before ? indexFailures(before) + (counts ? 1 : 0) : 0;
    const ignored = before ? indexIgnored(before) + (counts ? 0 : 1) : 0;
    annotations[INDEX_FAILURES] = String(failures);
    if (ignored > 0) annotations[INDEX_IGNORED] = String(ignored);
  }
  const withIndex = <C extends { env?: NonNullable<Pod["spec"]["containers"][number]["env"]> }>(container: C): C => {
    if (container.env?.some(({ name }) => name === "JOB_COMPLETION_INDEX")) return container;
    const variable = {
      name: "JOB_COMPLETION_INDEX",
      valueFrom: { fieldRef: { fieldPath: `metadata.labels['${INDEX}']` } },
    };
    return { ...container, env: [...(container.env ?? []), variable] };
  };
  const suffix = `-${index}-`;
  const { initContainers, containers } = pod.spec;
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      generateName: `${job.metadata.name.slice(0, 58 - suffix.length)}${suffix}`,
      labels: { ...pod.metadata.labels, [INDEX]: String(index) },
      annotations,
    },
    spec: {
      ...pod.spec,
      hostname: `${job.metadata.name}-${index}`,
      containers: containers.map(withIndex),
      ...(initContainers ? { initContainers: initContainers.map(withIndex) } : {}),
    },
  };
}
