import type { DeepReadonly } from "#base";
import type { ContainerStatus, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, SuccessPolicy } from "#kinds";
import { parseIndexes } from "./indexes.ts";
import type { P } from "./job-pods.ts";

export interface FailureMatch {
  readonly action: "FailJob" | "FailIndex" | "Ignore" | "Count" | undefined;
  /** Whether the failure counts towards the back-off limit. */
  readonly counts: boolean;
  /** Why the Job fails, for FailJob. */
  readonly message?: string;
}

/** The first rule that a failed pod meets. https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy */
export function matchFailurePolicy(policy: DeepReadonly<PodFailurePolicy> | undefined, pod: P): FailureMatch {
  for (const [index, rule] of (policy?.rules ?? []).entries()) {
    const why = rule.onExitCodes ? exitCodeText(pod, rule.onExitCodes) : conditionText(pod, rule.onPodConditions);
    if (why === undefined) continue;
    const action = rule.action as FailureMatch["action"];
    if (action === "FailJob")
      return { action, counts: true, message: `${why} matching ${action} rule at index ${index}` };
    return { action, counts: action !== "Ignore" };
  }
  return { action: undefined, counts: true };
}

function exitCodeText(pod: P, wanted: DeepReadonly<PodFailurePolicyOnExitCodesRequirement>): string | undefined {
  const matches = ({ name, state }: DeepReadonly<ContainerStatus>) => {
    const code = state?.terminated?.exitCode;
    if (code === undefined || code === 0 || (wanted.containerName && wanted.containerName !== name)) return false;
    return wanted.operator === "In"
      ? wanted.values?.includes(code)
      : wanted.operator === "NotIn" && !wanted.values?.includes(code);
  };
  const found = pod.status?.containerStatuses?.find(matches) ?? pod.status?.initContainerStatuses?.find(matches);
  if (!found) return undefined;
  const { namespace, name } = pod.metadata;
  return `Container ${found.name} for pod ${namespace}/${name} failed with exit code ${found.state?.terminated?.exitCode}`;
}

function conditionText(
  pod: P,
  patterns: readonly { readonly type?: string; readonly status?: string }[] | undefined,
): string | undefined {
  const found = pod.status?.conditions?.find(({ type, status }) =>
    patterns?.some((pattern) => pattern.type === type && (pattern.status ?? "True") === status),
  );
  return found && `Pod ${pod.metadata.namespace}/${pod.metadata.name} has condition ${found.type}`;
}

/** Why an Indexed Job has succeeded early; undefined while it has not. */
export function matchSuccessPolicy(
  policy: DeepReadonly<SuccessPolicy> | undefined,
  completions: number,
  succeeded: ReadonlySet<number>,
): string | undefined {
  if (!policy || succeeded.size === 0) return undefined;
  const at = policy.rules.findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && succeeded.size >= succeededCount;
    const required = parseIndexes(succeededIndexes, completions);
    if (required.size === 0) return false;
    const met = [...required].filter((index) => succeeded.has(index)).length;
    return met === required.size || (succeededCount !== undefined && met >= succeededCount);
  });
  return at < 0 ? undefined : `Matched rules at index ${at}`;
}
