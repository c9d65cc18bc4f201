import { deepClone, deepEqual } from "#base";
import { validatePodTemplate } from "../core/pod/validate-template.ts";
import type { CronJob, Job, JobSpec, PodTemplateSpec } from "../generated/types.ts";
import { matchesSelector } from "../selector.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError, immutable, nonNegative, oneOf } from "../validation/field-error.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";
import { validateDomainPrefixedPath } from "../validation/references.ts";
import { isDNS1123Label } from "../validation/names.ts";
import { cronError, isTimeZone } from "./cron-schedule.ts";
import { validatePodFailurePolicy, validateSuccessPolicy } from "./validate-policies.ts";
import { validateJobStatus } from "./validate-status.ts";

const MAX_INDEXED_PARALLELISM = 100_000;
const MAX_FAILED_INDEXES = 100_000;
const MANY_COMPLETIONS = 100_000;
const MANY_COMPLETIONS_LIMIT = 10_000;

export function validateJob(job: Job): FieldError[] {
  const errors = [...validateGeneratedSelector(job), ...validateWholeSpec(job.spec)];
  const { completionMode, completions } = job.spec;
  if (completionMode === "Indexed" && completions && completions > 0) {
    const host = `${job.metadata.name}-${completions - 1}`;
    if (isDNS1123Label(host).length > 0) {
      const text = `will not able to create pod with invalid DNS label: ${host}`;
      errors.push(fieldError.invalid("metadata.name", job.metadata.name, text));
    }
  }
  return errors;
}

function validateGeneratedSelector({ spec, metadata }: Job): FieldError[] {
  if (spec.manualSelector || !spec.selector) return [];
  const expected: Record<string, string> = {
    "controller-uid": metadata.uid ?? "",
    "job-name": metadata.name,
    "batch.kubernetes.io/controller-uid": metadata.uid ?? "",
    "batch.kubernetes.io/job-name": metadata.name,
  };
  const errors: FieldError[] = [];
  const path = "spec.template.metadata.labels";
  const labels = spec.template.metadata?.labels ?? {};
  for (const [key, value] of Object.entries(expected)) {
    if (labels[key] === undefined) errors.push(fieldError.required(`${path}[${key}]`, `must be '${value}'`));
    else if (labels[key] !== value) errors.push(fieldError.invalid(`${path}[${key}]`, labels, `must be '${value}'`));
  }
  if (!matchesSelector(spec.selector, expected)) {
    errors.push(fieldError.invalid("spec.selector", spec.selector, "`selector` not auto-generated"));
  }
  return errors;
}

function validateWholeSpec(spec: JobSpec): FieldError[] {
  const errors = validateJobSpec(spec, "spec");
  if (!spec.selector) return [...errors, fieldError.required("spec.selector")];
  errors.push(...validateLabelSelector(spec.selector, "spec.selector"));
  const labels = spec.template.metadata?.labels;
  if (!matchesSelector(spec.selector, labels)) {
    const text = "`selector` does not match template `labels`";
    errors.push(fieldError.invalid("spec.template.metadata.labels", labels ?? null, text));
  }
  return errors;
}

const COUNTS = [
  "parallelism",
  "completions",
  "activeDeadlineSeconds",
  "backoffLimit",
  "ttlSecondsAfterFinished",
  "backoffLimitPerIndex",
  "maxFailedIndexes",
] as const;

/** What holds for jobs and for the templates of CronJobs. */
function validateJobSpec(spec: JobSpec, path: string): FieldError[] {
  const errors = COUNTS.flatMap((name) => nonNegative(`${path}.${name}`, spec[name]));
  if (spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined) {
    errors.push(fieldError.required(`${path}.backoffLimitPerIndex`, "when maxFailedIndexes is specified"));
  }
  if (spec.managedBy !== undefined) errors.push(...validateManagedBy(spec.managedBy, `${path}.managedBy`));
  if (spec.completionMode !== undefined) {
    errors.push(...oneOf(`${path}.completionMode`, spec.completionMode, ["NonIndexed", "Indexed"]));
  }
  if (spec.completionMode === "Indexed") {
    errors.push(...validateIndexed(spec, path));
  } else if (spec.completionMode === undefined || spec.completionMode === "NonIndexed") {
    for (const name of ["backoffLimitPerIndex", "maxFailedIndexes"] as const) {
      const value = spec[name];
      if (value !== undefined)
        errors.push(fieldError.invalid(`${path}.${name}`, value, "requires indexed completion mode"));
    }
  }
  errors.push(...validatePodFailurePolicy(spec, `${path}.podFailurePolicy`));
  errors.push(...validateSuccessPolicy(spec, `${path}.successPolicy`));
  if (spec.podReplacementPolicy !== undefined) {
    const supported = spec.podFailurePolicy ? ["Failed"] : ["Failed", "TerminatingOrFailed"];
    errors.push(...oneOf(`${path}.podReplacementPolicy`, spec.podReplacementPolicy, supported));
  }
  return [
    ...errors,
    ...validatePodTemplate(spec.template, `${path}.template`),
    ...validateJobRestartPolicy(spec, `${path}.template.spec.restartPolicy`),
  ];
}

function validateJobRestartPolicy({ template, podFailurePolicy }: JobSpec, path: string): FieldError[] {
  const policy = template.spec.restartPolicy ?? "";
  if (policy === "" || policy === "Always") return [fieldError.required(path, 'valid values: "OnFailure", "Never"')];
  if (policy !== "OnFailure" && policy !== "Never")
    return [fieldError.notSupported(path, policy, ["OnFailure", "Never"])];
  if (!podFailurePolicy || policy === "Never") return [];
  return [fieldError.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')];
}

function validateIndexed(spec: JobSpec, path: string): FieldError[] {
  const { completions, parallelism, maxFailedIndexes: failed } = spec;
  const errors: FieldError[] = [];
  const bad = (name: "parallelism" | "maxFailedIndexes", text: string) =>
    errors.push(fieldError.invalid(`${path}.${name}`, spec[name], text));
  if (completions === undefined)
    errors.push(fieldError.required(`${path}.completions`, "when completion mode is Indexed"));
  if ((parallelism ?? 0) > MAX_INDEXED_PARALLELISM) {
    bad("parallelism", `must be less than or equal to ${MAX_INDEXED_PARALLELISM} when completion mode is Indexed`);
  }
  if (completions !== undefined && (failed ?? 0) > completions) {
    bad("maxFailedIndexes", "must be less than or equal to completions");
  }
  if ((failed ?? 0) > MAX_FAILED_INDEXES)
    bad("maxFailedIndexes", `must be less than or equal to ${MAX_FAILED_INDEXES}`);
  if ((completions ?? 0) <= MANY_COMPLETIONS || spec.backoffLimitPerIndex === undefined) return errors;
  const text = `must be less than or equal to ${MANY_COMPLETIONS_LIMIT} when completions are above ${MANY_COMPLETIONS} and used with backoff limit per index`;
  if (failed === undefined) {
    errors.push(
      fieldError.required(
        `${path}.maxFailedIndexes`,
        `must be specified when completions is above ${MANY_COMPLETIONS}`,
      ),
    );
  }
  if ((parallelism ?? 0) > MANY_COMPLETIONS_LIMIT) bad("parallelism", text);
  if ((failed ?? 0) > MANY_COMPLETIONS_LIMIT) bad("maxFailedIndexes", text);
  return errors;
}

function validateManagedBy(value: string, path: string): FieldError[] {
  const errors = validateDomainPrefixedPath(value, path);
  return value.length > 63 ? [...errors, fieldError.tooLong(path, 63)] : errors;
}

export function validateJobUpdate(job: Job, old: Job, subresource: string): FieldError[] {
  if (subresource === "status") return validateJobStatus(job, old);
  const fixed = ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] as const;
  const same = (name: keyof JobSpec) =>
    immutable(`spec.${name}`, job.spec[name] ?? null, old.spec[name] ?? null, deepEqual);
  return [
    ...validateWholeSpec(job.spec),
    ...validateCompletions(job.spec, old.spec),
    ...same("selector"),
    ...validateTemplateUpdate(job, old),
    ...fixed.flatMap(same),
  ];
}

/** Indexed jobs may grow and shrink, parallelism along with completions (KEP-3715). */
function validateCompletions(spec: JobSpec, old: JobSpec): FieldError[] {
  if (spec.completionMode !== "Indexed") {
    return immutable("spec.completions", spec.completions ?? null, old.completions ?? null, deepEqual);
  }
  if (spec.completions === old.completions || spec.completions === undefined) return [];
  if (spec.completions === spec.parallelism) return [];
  return [
    fieldError.invalid("spec.completions", spec.completions, "can only be modified in tandem with spec.parallelism"),
  ];
}

/** The template is fixed, but for where its pods may run while the job is suspended and has not started (KEP-2926). */
function validateTemplateUpdate(job: Job, old: Job): FieldError[] {
  const before: PodTemplateSpec = deepClone<PodTemplateSpec>(old.spec.template);
  const suspended = old.spec.suspend === true;
  const started = old.status?.startTime !== undefined;
  if (suspended && !started) takeSchedulingDirectives(before, job.spec.template);
  if (suspended) takeResources(before, job.spec.template);
  return immutable("spec.template", job.spec.template, before, deepEqual);
}

function takeSchedulingDirectives(before: PodTemplateSpec, now: PodTemplateSpec): void {
  const take = <T extends object, K extends keyof T>(to: T, from: T, name: K) => {
    if (from[name] === undefined) delete to[name];
    else to[name] = from[name];
  };
  for (const name of ["nodeSelector", "tolerations", "schedulingGates"] as const) take(before.spec, now.spec, name);
  before.metadata ??= {};
  for (const name of ["annotations", "labels"] as const) take(before.metadata, now.metadata ?? {}, name);
  if (!before.spec.affinity && !now.spec.affinity) return;
  before.spec.affinity ??= {};
  take(before.spec.affinity, now.spec.affinity ?? {}, "nodeAffinity");
  if (Object.keys(before.spec.affinity).length === 0 && !now.spec.affinity) delete before.spec.affinity;
}

function takeResources(before: PodTemplateSpec, now: PodTemplateSpec): void {
  for (const list of ["containers", "initContainers"] as const) {
    for (const [i, container] of (before.spec[list] ?? []).entries()) {
      const other = now.spec[list]?.[i];
      if (other?.name === container.name && other.resources) container.resources = other.resources;
    }
  }
}

/** A CronJob's name leaves room for the time that its jobs' names end with. */
const MAX_CRON_NAME = 52;

export function validateCronJob(cronJob: CronJob): FieldError[] {
  const errors = validateCronSpec(cronJob, undefined);
  if (cronJob.metadata.name.length > MAX_CRON_NAME) {
    errors.push(
      fieldError.invalid("metadata.name", cronJob.metadata.name, `must be no more than ${MAX_CRON_NAME} characters`),
    );
  }
  return errors;
}

export function validateCronJobUpdate(cronJob: CronJob, old: CronJob, subresource: string): FieldError[] {
  return subresource === "status" ? [] : validateCronSpec(cronJob, old);
}

function validateCronSpec({ spec }: CronJob, old: CronJob | undefined): FieldError[] {
  const template = spec.jobTemplate.spec;
  const path = "spec.jobTemplate.spec";
  const errors = [
    ...validateSchedule(spec, old?.spec.schedule.includes("TZ") ?? false),
    ...nonNegative("spec.startingDeadlineSeconds", spec.startingDeadlineSeconds),
    ...(old && old.spec.timeZone === spec.timeZone ? [] : validateTimeZone(spec.timeZone)),
    ...oneOf("spec.concurrencyPolicy", spec.concurrencyPolicy, ["Allow", "Forbid", "Replace"]),
    ...validateJobSpec(template, path),
  ];
  if (template.selector) {
    errors.push(fieldError.invalid(`${path}.selector`, template.selector, "`selector` will be auto-generated"));
  }
  if (template.manualSelector) errors.push(fieldError.notSupported(`${path}.manualSelector`, true, ["nil", "false"]));
  return [
    ...errors,
    ...nonNegative("spec.successfulJobsHistoryLimit", spec.successfulJobsHistoryLimit),
    ...nonNegative("spec.failedJobsHistoryLimit", spec.failedJobsHistoryLimit),
  ];
}

function validateSchedule({ schedule, timeZone }: CronJob["spec"], zoneAllowed: boolean): FieldError[] {
  if (!schedule) return [fieldError.required("spec.schedule")];
  const error = cronError(schedule);
  const errors = error ? [fieldError.invalid("spec.schedule", schedule, error)] : [];
  if (!schedule.includes("TZ")) return errors;
  if (!zoneAllowed) {
    const text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
    errors.push(fieldError.invalid("spec.schedule", schedule, text));
  } else if (timeZone !== undefined) {
    const text = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
    errors.push(fieldError.invalid("spec.schedule", schedule, text));
  }
  return errors;
}

function validateTimeZone(zone: string | undefined): FieldError[] {
  if (zone === undefined) return [];
  const path = "spec.timeZone";
  if (!zone) return [fieldError.invalid(path, zone, "timeZone must be nil or non-empty string")];
  const strange = zone
    .split("/")
    .some((part) => part === "." || part === ".." || !/^[A-Za-z._][A-Za-z0-9._+-]*$/.test(part));
  if (strange) return [fieldError.invalid(path, zone, `unknown time zone ${zone}`)];
  if (zone.toLowerCase() === "local") {
    const text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
    return [fieldError.invalid(path, zone, text)];
  }
  return isTimeZone(zone) ? [] : [fieldError.invalid(path, zone, `unknown time zone ${zone}`)];
}
