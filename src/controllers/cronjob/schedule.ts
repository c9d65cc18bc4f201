import { Cron } from "croner";
import type { DeepReadonly } from "#base";
import type { CronJob } from "#kinds";
import { timeOf } from "../runtime/objects.ts";

/** A parsed schedule: the first time after another, milliseconds; undefined when there is none. */
export interface Schedule {
  next(after: number): number | undefined;
}

const EVERY = /^@every\s+(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;

/** Cron syntax with five fields, `@hourly` and the like, `@every 1h30m`. @throws Error for what is none of these */
export function parseSchedule(text: string, timeZone: string): Schedule {
  const every = EVERY.exec(text.trim());
  if (every) {
    const [hours = 0, minutes = 0, seconds = 0] = every.slice(1).map((part) => Number(part ?? 0));
    const step = Math.max(1, hours * 3600 + minutes * 60 + seconds) * 1000;
    return { next: (after) => after - (after % 1000) + step };
  }
  const cron = new Cron(text.trim(), {
    paused: true,
    timezone: timeZone,
    mode: text.trim().startsWith("@") ? "auto" : "5-part",
  });
  return { next: (after) => cron.nextRun(new Date(after))?.getTime() };
}

/** True for a time zone that the tz database knows. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

const MANY = 100;

/**
 * The last time that was due and has not been started, and whether too many were missed to be only late.
 * https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-delay
 */
export function lastDue(
  job: DeepReadonly<CronJob>,
  schedule: Schedule,
  now: number,
): { at: number | undefined; many: boolean } {
  let from = timeOf(job.status?.lastScheduleTime) || timeOf(job.metadata.creationTimestamp);
  const { startingDeadlineSeconds } = job.spec;
  if (startingDeadlineSeconds !== undefined) from = Math.max(from, now - startingDeadlineSeconds * 1000);
  let last: number | undefined;
  let missed = 0;
  for (let at = schedule.next(from); at !== undefined && at <= now; at = schedule.next(at)) {
    last = at;
    missed++;
    if (missed <= MANY + 1) continue;
    // Far behind: go on from near the present instead of counting through the years.
    const step = at - (schedule.next(from) ?? at);
    const near = Math.max(at, now - Math.max(step, 60_000) * 2);
    if (near > at) at = near;
  }
  return { at: last, many: missed > MANY };
}
