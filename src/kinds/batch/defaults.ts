import { setPodSpecDefaults } from "../core/pod/defaults.ts";
import type { CronJob, Job, JobSpec } from "../generated/types.ts";

export function setJobDefaults(job: Job): void {
  const { spec } = job;
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : 2147483647;
  const labels = spec.template.metadata?.labels;
  if (labels && Object.keys(job.metadata.labels ?? {}).length === 0) job.metadata.labels = { ...labels };
  spec.completionMode ??= "NonIndexed";
  spec.suspend ??= false;
  spec.podReplacementPolicy ??= spec.podFailurePolicy ? "Failed" : "TerminatingOrFailed";
  spec.manualSelector ??= false;
  setJobSpecDefaults(spec);
}

/** What holds in the template of a CronJob too. */
function setJobSpecDefaults(spec: JobSpec): void {
  for (const rule of spec.podFailurePolicy?.rules ?? []) {
    for (const pattern of rule.onPodConditions ?? []) pattern.status ||= "True";
  }
  setPodSpecDefaults(spec.template.spec);
}

export function setCronJobDefaults({ spec }: CronJob): void {
  spec.concurrencyPolicy ||= "Allow";
  spec.suspend ??= false;
  spec.successfulJobsHistoryLimit ??= 3;
  spec.failedJobsHistoryLimit ??= 1;
  setJobSpecDefaults(spec.jobTemplate.spec);
}
