import { type DeepReadonly, deepEqual, messageOf } from "#base";
import {
  controllerReference,
  type CronJob,
  type CronJobStatus,
  isStatus,
  type Job,
  type ObjectReference,
  resources,
} from "#kinds";
import { isJobFinished } from "../job/job-pods.ts";
import { type Controller, type ControllerDeps, createController, type ReconcileResult } from "../runtime/controller.ts";
import {
  formatTime,
  fromCache,
  ignoreNotFound,
  isNamespaceTerminating,
  keyOf,
  timeOf,
  writeStatus,
} from "../runtime/objects.ts";
import { controlledBy, controllerKey, indexByController } from "../runtime/ownership.ts";
import { isTimeZone, lastDue, parseSchedule, type Schedule } from "./schedule.ts";

type C = DeepReadonly<CronJob>;
type J = DeepReadonly<Job>;

/** After a due time, so that the clock has surely passed it, milliseconds. */
const SLACK = 100;

interface Progress {
  active: ObjectReference[];
  lastScheduleTime: string | undefined;
  lastSuccessfulTime: string | undefined;
}

/** Starts Jobs on a schedule. https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ */
export function createCronJobController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const cronJobs = deps.informers.for(resources.cronJobs);
  const jobs = deps.informers.for(resources.jobs);
  const recorder = deps.recorder("cronjob-controller");
  indexByController(jobs);

  async function remove(cronJob: C, job: { name: string; namespace?: string | undefined }): Promise<void> {
    try {
      await ignoreNotFound(
        client.delete(resources.jobs, job.name, { namespace: job.namespace, propagationPolicy: "Background" }),
      );
    } catch (error) {
      recorder.event(cronJob, "Warning", "FailedDelete", `Deleted job: ${messageOf(error)}`);
      throw error;
    }
    recorder.event(cronJob, "Normal", "SuccessfulDelete", `Deleted job ${job.name}`);
  }

  /** Keeps the newest finished Jobs, as many as the limits say. */
  async function trim(cronJob: C, owned: readonly J[]): Promise<void> {
    const { successfulJobsHistoryLimit = 3, failedJobsHistoryLimit = 1 } = cronJob.spec;
    const ended = (type: string) =>
      owned.filter((job) => job.status?.conditions?.some((one) => one.type === type && one.status === "True"));
    const byStart = (a: J, b: J) =>
      timeOf(a.status?.startTime) - timeOf(b.status?.startTime) || (a.metadata.name < b.metadata.name ? -1 : 1);
    const excess = (list: J[], limit: number) => list.sort(byStart).slice(0, Math.max(0, list.length - limit));
    for (const job of [
      ...excess(ended("Complete"), successfulJobsHistoryLimit),
      ...excess(ended("Failed"), failedJobsHistoryLimit),
    ]) {
      if (!job.metadata.deletionTimestamp) await remove(cronJob, job.metadata);
    }
  }

  /** Compares the list of active Jobs with the Jobs that there are. */
  async function review(cronJob: C, owned: readonly J[], progress: Progress): Promise<void> {
    const isActive = (job: J) => progress.active.some(({ uid }) => uid === job.metadata.uid);
    for (const job of owned) {
      const { name } = job.metadata;
      if (!isJobFinished(job)) {
        if (isActive(job)) continue;
        recorder.event(
          cronJob,
          "Warning",
          "UnexpectedJob",
          `Saw a job that the controller did not create or forgot: ${name}`,
        );
        continue;
      }
      const end = job.status?.conditions?.find(
        ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
      );
      if (isActive(job)) {
        progress.active = progress.active.filter(({ uid }) => uid !== job.metadata.uid);
        recorder.event(cronJob, "Normal", "SawCompletedJob", `Saw completed job: ${name}, condition: ${end?.type}`);
      }
      const completed = end?.type === "Complete" ? job.status?.completionTime : undefined;
      if (completed && timeOf(completed) > timeOf(progress.lastSuccessfulTime)) progress.lastSuccessfulTime = completed;
    }
    for (const reference of progress.active) {
      if (owned.some(({ metadata }) => metadata.uid === reference.uid)) continue;
      const found = await ignoreNotFound(
        client.get(resources.jobs, reference.name ?? "", { namespace: reference.namespace }),
      );
      if (found) continue;
      recorder.event(cronJob, "Normal", "MissingJob", `Active job went missing: ${reference.name}`);
      progress.active = progress.active.filter((one) => one !== reference);
    }
  }

  function scheduleOf(cronJob: C): Schedule | undefined {
    const { timeZone, suspend, schedule } = cronJob.spec;
    if (timeZone !== undefined && !isTimeZone(timeZone)) {
      recorder.event(
        cronJob,
        "Warning",
        "UnknownTimeZone",
        `invalid timeZone: "${timeZone}": unknown time zone ${timeZone}`,
      );
      return undefined;
    }
    if (suspend) return undefined;
    try {
      return parseSchedule(schedule, timeZone ?? "UTC");
    } catch (error) {
      recorder.event(
        cronJob,
        "Warning",
        "UnparseableSchedule",
        `unparseable schedule: "${schedule}" : ${messageOf(error)}`,
      );
      return undefined;
    }
  }

  /** Starts the Job that is due, if one is. */
  async function start(cronJob: C, schedule: Schedule, progress: Progress): Promise<void> {
    const now = clock.now();
    const { at, many } = lastDue(cronJob, schedule, now);
    if (many) {
      const message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
      recorder.event(cronJob, "Warning", "TooManyMissedTimes", message);
    }
    if (at === undefined) return;
    const { startingDeadlineSeconds, concurrencyPolicy } = cronJob.spec;
    if (startingDeadlineSeconds !== undefined && at + startingDeadlineSeconds * 1000 < now) {
      recorder.event(cronJob, "Warning", "MissSchedule", `Missed scheduled time to start a job: ${rfc1123(at)}`);
      return;
    }
    const job = jobOf(cronJob, at);
    const done =
      progress.active.some(({ name }) => name === job.metadata.name) || timeOf(progress.lastScheduleTime) === at;
    if (done) return;
    if (concurrencyPolicy === "Forbid" && progress.active.length > 0) {
      const message = "Not starting job because prior execution is running and concurrency policy is Forbid";
      recorder.event(cronJob, "Normal", "JobAlreadyActive", message);
      return;
    }
    if (concurrencyPolicy === "Replace") {
      for (const { name = "", namespace } of progress.active) await remove(cronJob, { name, namespace });
      progress.active = [];
    }
    await create(cronJob, job, at, progress);
  }
  async function create(cronJob: C, job: Job, at: number, progress: Progress): Promise<void> {
    let made: J;
    try {
      made = await client.create(resources.jobs, job);
      recorder.event(cronJob, "Normal", "SuccessfulCreate", `Created job ${made.metadata.name}`);
    } catch (error) {
      if (isNamespaceTerminating(error)) return;
      if (!isStatus(error, "AlreadyExists")) {
        recorder.event(cronJob, "Warning", "FailedCreate", `Error creating job: ${messageOf(error)}`);
        throw error;
      }
      made = await client.get(resources.jobs, job.metadata.name, { namespace: job.metadata.namespace });
      if (!made.metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === cronJob.metadata.uid))
        return;
    }
    const { name, namespace = "", uid = "", resourceVersion = "" } = made.metadata;
    progress.active = [
      ...progress.active,
      { kind: "Job", namespace, name, uid, apiVersion: "batch/v1", resourceVersion },
    ];
    progress.lastScheduleTime = formatTime(at);
  }

  return createController(deps, {
    name: "cronjob",
    watch({ on, enqueue }) {
      const ownerOf = (job: J) => controllerKey(job, resources.cronJobs as never);
      const changed = (job: J) => void (ownerOf(job) && enqueue(ownerOf(job)!));
      on(cronJobs, { add: (one) => enqueue(keyOf(one)), update: (one) => enqueue(keyOf(one)) });
      on(jobs, { add: changed, update: changed, delete: changed });
    },
    async reconcile(key): Promise<ReconcileResult> {
      const cronJob = fromCache(cronJobs, key);
      if (!cronJob) return;
      const owned = controlledBy(jobs, cronJob.metadata.uid);
      const before: CronJobStatus = (cronJob.status as CronJobStatus | undefined) ?? {};
      const progress: Progress = {
        active: [...(before.active ?? [])],
        lastScheduleTime: before.lastScheduleTime,
        lastSuccessfulTime: before.lastSuccessfulTime,
      };
      await review(cronJob, owned, progress);
      const schedule = cronJob.metadata.deletionTimestamp ? undefined : scheduleOf(cronJob);
      if (schedule) await start(cronJob, schedule, progress);
      const status: CronJobStatus = {
        ...(progress.active.length ? { active: progress.active } : {}),
        ...(progress.lastScheduleTime ? { lastScheduleTime: progress.lastScheduleTime } : {}),
        ...(progress.lastSuccessfulTime ? { lastSuccessfulTime: progress.lastSuccessfulTime } : {}),
      };
      if (!deepEqual(status, before)) await writeStatus(client, resources.cronJobs, cronJob, status);
      await trim(cronJob, owned);
      const next = schedule?.next(clock.now());
      return { requeueAfterMs: next === undefined ? undefined : next - clock.now() + SLACK };
    },
  });
}

function jobOf(cronJob: C, at: number): Job {
  const { metadata, spec } = cronJob.spec.jobTemplate as CronJob["spec"]["jobTemplate"];
  const { name, namespace } = cronJob.metadata;
  const timestamp = inZone(at, cronJob.spec.timeZone);
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: `${name}-${Math.floor(at / 60_000)}`,
      ...(namespace ? { namespace } : {}),
      labels: { ...metadata?.labels },
      annotations: { ...metadata?.annotations, "batch.kubernetes.io/cronjob-scheduled-timestamp": timestamp },
      ownerReferences: [controllerReference(cronJob, resources.cronJobs)],
    },
    spec: spec ?? { template: { spec: { containers: [] } } },
  };
}

/** RFC 3339 with the offset of the zone. */
function inZone(at: number, timeZone: string | undefined): string {
  if (!timeZone || timeZone === "UTC" || timeZone === "Etc/UTC") return formatTime(at);
  const zoned = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone);
  return zoned.toString({ timeZoneName: "never", smallestUnit: "second" }).replace(/\+00:00$/, "Z");
}

/** `Mon, 02 Jan 2006 15:04:05 +0000` */
const rfc1123 = (at: number): string => new Date(at).toUTCString().replace("GMT", "+0000");
