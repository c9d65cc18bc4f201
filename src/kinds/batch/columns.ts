import { ageColumn, column, nameColumn, selectorCell, since, templateColumns } from "../columns/column.ts";
import { humanDuration } from "../columns/human-duration.ts";
import type { CronJob, Job } from "../generated/types.ts";
import type { Column } from "../scheme.ts";

export const jobColumns: readonly Column[] = [
  nameColumn,
  column<Job>("Status", jobStatus),
  column<Job>("Completions", completions, { description: "Succeeded pods of wanted completions" }),
  column<Job>("Duration", duration, { description: "Time that it took, or takes so far" }),
  ageColumn,
  ...templateColumns<Job>(
    ({ spec }) => spec.template.spec.containers,
    ({ spec }) => selectorCell(spec.selector),
  ),
];

function jobStatus(job: Job): string {
  const has = (type: string) => job.status?.conditions?.some((c) => c.type === type && c.status === "True") ?? false;
  if (has("Complete")) return "Complete";
  if (has("Failed")) return "Failed";
  if (job.metadata.deletionTimestamp) return "Terminating";
  return ["Suspended", "FailureTarget", "SuccessCriteriaMet"].find(has) ?? "Running";
}

function completions({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const parallelism = spec.parallelism ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function duration({ status }: Job, now: number): string {
  if (!status?.startTime) return "";
  const end = status.completionTime ? Date.parse(status.completionTime) : now;
  return humanDuration(end - Date.parse(status.startTime));
}

export const cronJobColumns: readonly Column[] = [
  nameColumn,
  column<CronJob>("Schedule", ({ spec }) => spec.schedule, { description: "Schedule in cron's format" }),
  column<CronJob>("Timezone", ({ spec }) => spec.timeZone ?? "<none>"),
  column<CronJob>("Suspend", ({ spec }) => (spec.suspend === undefined ? "<unset>" : spec.suspend ? "True" : "False"), {
    type: "boolean",
  }),
  column<CronJob>("Active", ({ status }) => (status?.active ?? []).length, {
    type: "integer",
    description: "Running jobs",
  }),
  column<CronJob>("Last Schedule", ({ status }, now) =>
    status?.lastScheduleTime ? since(status.lastScheduleTime, now) : "<none>",
  ),
  ageColumn,
  ...templateColumns<CronJob>(
    ({ spec }) => spec.jobTemplate.spec.template.spec.containers,
    ({ spec }) => selectorCell(spec.jobTemplate.spec.selector),
  ),
];
