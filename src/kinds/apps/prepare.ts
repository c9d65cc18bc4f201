import { deepClone, deepEqual } from "#base";
import type { DaemonSet, Deployment, StatefulSet } from "../generated/types.ts";

const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

/** Changed annotations count: they are copied to the ReplicaSets. Status updates keep the labels. */
export function prepareDeploymentUpdate(deployment: Deployment, old: Deployment, subresource: string): void {
  if (subresource === "status") {
    if (old.metadata.labels) deployment.metadata.labels = deepClone(old.metadata.labels);
    else delete deployment.metadata.labels;
    return;
  }
  if (!deepEqual(deployment.metadata.annotations ?? {}, old.metadata.annotations ?? {})) {
    deployment.metadata.generation = (old.metadata.generation ?? 0) + 1;
  }
}

export function prepareDaemonSet(set: DaemonSet): void {
  set.metadata.annotations = { ...set.metadata.annotations, [TEMPLATE_GENERATION]: "1" };
}

/** Counts the changes of the template, for clients of the days before ControllerRevisions. */
export function prepareDaemonSetUpdate(set: DaemonSet, old: DaemonSet, subresource: string): void {
  const before = Number(old.metadata.annotations?.[TEMPLATE_GENERATION] ?? 0);
  const changed = subresource !== "status" && !deepEqual(set.spec.template, old.spec.template);
  set.metadata.annotations = {
    ...set.metadata.annotations,
    [TEMPLATE_GENERATION]: String(changed ? before + 1 : before),
  };
}

/** `maxUnavailable` needs the feature MaxUnavailableStatefulSet, which is off by default in v1.36. */
export function dropStatefulSetFields(set: StatefulSet): void {
  delete set.spec.updateStrategy?.rollingUpdate?.maxUnavailable;
}
