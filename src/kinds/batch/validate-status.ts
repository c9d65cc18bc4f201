import type { Job } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError, nonNegative } from "../validation/field-error.ts";

const at = "status.conditions";
const conditionError = (detail: string): FieldError => ({
  field: at,
  reason: "FieldValueInvalid",
  message: `Invalid value: ${detail}`,
});

/** Conditions of a Job that only make sense together, and terminal ones that stay (KEP-3998). */
export function validateJobStatus(job: Job, old: Job): FieldError[] {
  const status = job.status ?? {};
  const has = (of: Job, type: string) =>
    of.status?.conditions?.some((c) => c.type === type && c.status === "True") ?? false;
  const [complete, failed] = [has(job, "Complete"), has(job, "Failed")];
  const [target, met] = [has(job, "FailureTarget"), has(job, "SuccessCriteriaMet")];
  const finished = complete || failed;
  const counters = ["active", "succeeded", "failed", "ready", "terminating"] as const;
  const errors = counters.flatMap((name) => nonNegative(`status.${name}`, status[name]));
  const rules: [boolean, string][] = [
    [complete && failed, "cannot set Complete=True and Failed=true conditions"],
    [complete && target, "cannot set Complete=True and FailureTarget=true conditions"],
    [failed && !target, "cannot set Failed=True condition without the FailureTarget=true condition"],
    [complete && !met, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"],
    [met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"],
    [met && target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
  ];
  for (const [broken, text] of rules) if (broken) errors.push(conditionError(text));
  for (const type of ["Failed", "Complete", "FailureTarget"]) {
    if (has(old, type) && !has(job, type))
      errors.push(conditionError(`cannot disable the terminal ${type}=True condition`));
  }
  return [...errors, ...validateTimes(job, complete, finished)];
}

function validateTimes({ status = {} }: Job, complete: boolean, finished: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const { completionTime, startTime } = status;
  if (completionTime && !complete) {
    const text = "cannot set completionTime when there is no Complete=True condition";
    errors.push(fieldError.invalid("status.completionTime", completionTime, text));
  }
  if (!completionTime && complete) {
    errors.push(fieldError.required("status.completionTime", "completionTime is required for Complete jobs"));
  }
  if (completionTime && startTime && Date.parse(completionTime) < Date.parse(startTime)) {
    errors.push(fieldError.invalid("status.completionTime", completionTime, "must be equal to or after `startTime`"));
  }
  if (finished && (status.active ?? 0) > 0) {
    errors.push(fieldError.invalid("status.active", status.active, "active>0 is invalid for finished job"));
  }
  if (finished && !startTime)
    errors.push(fieldError.required("status.startTime", "startTime is required for finished job"));
  if (finished && (status.terminating ?? 0) > 0) {
    errors.push(
      fieldError.invalid("status.terminating", status.terminating, "terminating>0 is invalid for finished job"),
    );
  }
  if ((status.ready ?? 0) > (status.active ?? 0)) {
    errors.push(fieldError.invalid("status.ready", status.ready, "cannot set more ready pods than active"));
  }
  return errors;
}
