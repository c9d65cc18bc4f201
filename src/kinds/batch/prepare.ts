import type { Job } from "../generated/types.ts";

const NAME_LABELS = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/** Gives the pods labels of their job and selects them by its UID, unless the selector is the user's own. */
export function prepareJob(job: Job): void {
  const { spec, metadata } = job;
  if (spec.manualSelector) return;
  spec.template.metadata ??= {};
  const labels: Record<string, string> = { ...spec.template.metadata.labels };
  for (const name of NAME_LABELS) labels[name] ??= metadata.name;
  for (const name of UID_LABELS) labels[name] ??= metadata.uid ?? "";
  const inherited = spec.template.metadata.labels;
  spec.template.metadata.labels = labels;
  // the job's own labels came from the template where it had none, and follow it
  if (sameLabels(metadata.labels, inherited ?? {})) metadata.labels = { ...labels };
  spec.selector ??= {};
  spec.selector.matchLabels = { [UID_LABELS[1]!]: metadata.uid ?? "", ...spec.selector.matchLabels };
}

function sameLabels(a: Readonly<Record<string, string>> | undefined, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a ?? {});
  return names.length === Object.keys(b).length && names.every((name) => a?.[name] === b[name]);
}
