import {
  type CronJob,
  type DaemonSet,
  type Deployment,
  controllerOf,
  formatSelector,
  humanDuration,
  type Job,
  type LabelSelector,
  type Pod,
  type ReplicaSet,
  type StatefulSet,
} from "#kinds";
import { writePodTemplate } from "./pod-template.ts";
import { annotationLines, type DescribeWriter, longTime, pairsLines } from "./writer.ts";

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
}

const selectorText = (selector: LabelSelector | undefined) =>
  selector ? formatSelector(selector) || "<none>" : "<unset>";

function writeConditions(writer: DescribeWriter, conditions: readonly Condition[] | undefined): void {
  if (!conditions?.length) return;
  writer.line(0, "Conditions:");
  writer.line(1, "Type\tStatus\tReason");
  writer.line(1, "----\t------\t------");
  for (const { type, status, reason = "" } of conditions) writer.line(1, `${type} \t${status}\t${reason}`);
}

export interface Around {
  /** Pods that the selector takes. */
  readonly pods: readonly Pod[];
  readonly replicaSets: readonly ReplicaSet[];
}

export function describeDeployment(
  writer: DescribeWriter,
  { metadata, spec, status = {} }: Deployment,
  { replicaSets }: Around,
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.line(0, `CreationTimestamp:\t${longTime(metadata.creationTimestamp)}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, `Selector:\t${selectorText(spec?.selector)}`);
  writer.line(
    0,
    `Replicas:\t${spec?.replicas ?? 1} desired | ${status.updatedReplicas ?? 0} updated | ${status.replicas ?? 0} total | ${status.availableReplicas ?? 0} available | ${status.unavailableReplicas ?? 0} unavailable`,
  );
  writer.line(0, `StrategyType:\t${spec?.strategy?.type}`);
  writer.line(0, `MinReadySeconds:\t${spec?.minReadySeconds ?? 0}`);
  const rolling = spec?.strategy?.rollingUpdate;
  if (rolling)
    writer.line(0, `RollingUpdateStrategy:\t${rolling.maxUnavailable} max unavailable, ${rolling.maxSurge} max surge`);
  writer.line(0, "Pod Template:");
  writePodTemplate(writer, spec?.template);
  writeConditions(writer, status.conditions);
  const own = replicaSets.filter((set) => controllerOf(set as never)?.uid === metadata.uid);
  const revision = metadata.annotations?.["deployment.kubernetes.io/revision"];
  const current = own.find((set) => set.metadata.annotations?.["deployment.kubernetes.io/revision"] === revision);
  const text = (sets: readonly ReplicaSet[]) =>
    sets.length === 0
      ? "<none>"
      : sets
          .map(
            (set) => `${set.metadata.name} (${set.status?.replicas ?? 0}/${set.spec?.replicas ?? 0} replicas created)`,
          )
          .join(", ");
  writer.line(0, `OldReplicaSets:\t${text(own.filter((set) => set !== current))}`);
  writer.line(0, `NewReplicaSet:\t${text(current ? [current] : [])}`);
}

function podsStatus(pods: readonly Pod[]): string {
  const count = (phase: string) => pods.filter(({ status }) => status?.phase === phase).length;
  return `${count("Running")} Running / ${count("Pending")} Waiting / ${count("Succeeded")} Succeeded / ${count("Failed")} Failed`;
}

const owned = (pods: readonly Pod[], uid: string | undefined) =>
  pods.filter((pod) => controllerOf(pod as never)?.uid === uid);

export function describeReplicaSet(writer: DescribeWriter, set: ReplicaSet, { pods }: Around): void {
  const { metadata, spec, status = {} as NonNullable<ReplicaSet["status"]> } = set;
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.line(0, `Selector:\t${selectorText(spec?.selector)}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  const owner = controllerOf(set as never);
  if (owner) writer.line(0, `Controlled By:\t${owner.kind}/${owner.name}`);
  writer.line(0, `Replicas:\t${status.replicas ?? 0} current / ${spec?.replicas ?? 1} desired`);
  writer.line(0, `Pods Status:\t${podsStatus(owned(pods, metadata.uid))}`);
  writer.line(0, "Pod Template:");
  writePodTemplate(writer, spec?.template);
  writeConditions(writer, status.conditions);
}

export function describeStatefulSet(
  writer: DescribeWriter,
  { metadata, spec, status = {} as NonNullable<StatefulSet["status"]> }: StatefulSet,
  { pods }: Around,
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.line(0, `CreationTimestamp:\t${longTime(metadata.creationTimestamp)}`);
  writer.line(0, `Selector:\t${selectorText(spec?.selector)}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, `Replicas:\t${spec?.replicas ?? 1} desired | ${status.replicas ?? 0} total`);
  writer.line(0, `Update Strategy:\t${spec?.updateStrategy?.type}`);
  const rolling = spec?.updateStrategy?.rollingUpdate;
  if (rolling) {
    if (rolling.partition !== undefined) writer.line(1, `Partition:\t${rolling.partition}`);
    if (rolling.maxUnavailable !== undefined) writer.line(1, `MaxUnavailable:\t${rolling.maxUnavailable}`);
  }
  writer.line(0, `Pods Status:\t${podsStatus(owned(pods, metadata.uid))}`);
  writer.line(0, "Pod Template:");
  writePodTemplate(writer, spec?.template);
  const claims = spec?.volumeClaimTemplates ?? [];
  if (claims.length === 0) {
    writer.line(0, "Volume Claims:\t<none>");
    return;
  }
  writer.line(0, "Volume Claims:");
  for (const claim of claims) {
    writer.line(1, `Name:\t${claim.metadata?.name}`);
    writer.line(1, `StorageClass:\t${claim.spec?.storageClassName ?? ""}`);
    writer.add(pairsLines("Labels", claim.metadata?.labels, { indent: "  " }));
    writer.add(annotationLines(claim.metadata?.annotations, "  "));
    writer.line(1, `Capacity:\t${claim.spec?.resources?.requests?.storage ?? "<default>"}`);
    writer.line(1, `Access Modes:\t[${(claim.spec?.accessModes ?? []).join(" ")}]`);
  }
}

export function describeDaemonSet(
  writer: DescribeWriter,
  { metadata, spec, status }: DaemonSet,
  { pods }: Around,
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.line(0, `Selector:\t${selectorText(spec?.selector)}`);
  writer.add(
    pairsLines("Node-Selector", spec?.template.spec?.nodeSelector).replaceAll("Node-Selector:", "Node-Selector:"),
  );
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, `Desired Number of Nodes Scheduled: ${status?.desiredNumberScheduled ?? 0}`);
  writer.line(0, `Current Number of Nodes Scheduled: ${status?.currentNumberScheduled ?? 0}`);
  writer.line(0, `Number of Nodes Scheduled with Up-to-date Pods: ${status?.updatedNumberScheduled ?? 0}`);
  writer.line(0, `Number of Nodes Scheduled with Available Pods: ${status?.numberAvailable ?? 0}`);
  writer.line(0, `Number of Nodes Misscheduled: ${status?.numberMisscheduled ?? 0}`);
  writer.line(0, `Pods Status:\t${podsStatus(owned(pods, metadata.uid))}`);
  writer.line(0, "Pod Template:");
  writePodTemplate(writer, spec?.template);
}

export function describeJob(writer: DescribeWriter, job: Job): void {
  const { metadata, spec, status = {} } = job;
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  if (spec?.selector) writer.line(0, `Selector:\t${selectorText(spec.selector)}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  const owner = controllerOf(job as never);
  if (owner) writer.line(0, `Controlled By:\t${owner.kind}/${owner.name}`);
  writer.line(0, `Parallelism:\t${spec?.parallelism ?? "<unset>"}`);
  writer.line(0, `Completions:\t${spec?.completions ?? "<unset>"}`);
  if (spec?.completionMode) writer.line(0, `Completion Mode:\t${spec.completionMode}`);
  if (spec?.suspend !== undefined) writer.line(0, `Suspend:\t${spec.suspend}`);
  if (spec?.backoffLimit !== undefined) writer.line(0, `Backoff Limit:\t${spec.backoffLimit}`);
  if (spec?.ttlSecondsAfterFinished !== undefined)
    writer.line(0, `TTL Seconds After Finished:\t${spec.ttlSecondsAfterFinished}`);
  if (status.startTime) writer.line(0, `Start Time:\t${longTime(status.startTime)}`);
  if (status.completionTime) writer.line(0, `Completed At:\t${longTime(status.completionTime)}`);
  if (status.startTime && status.completionTime)
    writer.line(0, `Duration:\t${humanDuration(Date.parse(status.completionTime) - Date.parse(status.startTime))}`);
  if (spec?.activeDeadlineSeconds !== undefined)
    writer.line(0, `Active Deadline Seconds:\t${spec.activeDeadlineSeconds}s`);
  const ready = status.ready === undefined ? "" : ` (${status.ready} Ready)`;
  writer.line(
    0,
    `Pods Statuses:\t${status.active ?? 0} Active${ready} / ${status.succeeded ?? 0} Succeeded / ${status.failed ?? 0} Failed`,
  );
  if (spec?.completionMode === "Indexed") writer.line(0, `Completed Indexes:\t${status.completedIndexes || "<none>"}`);
  writer.line(0, "Pod Template:");
  writePodTemplate(writer, spec?.template);
}

export function describeCronJob(writer: DescribeWriter, { metadata, spec, status = {} }: CronJob): void {
  const limit = (value: number | undefined) => (value === undefined ? "<unset>" : String(value));
  const template = spec?.jobTemplate.spec;
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, `Schedule:\t${spec?.schedule}`);
  writer.line(0, `Concurrency Policy:\t${spec?.concurrencyPolicy}`);
  writer.line(0, `Suspend:\t${spec?.suspend ? "True" : "False"}`);
  writer.line(0, `Successful Job History Limit:\t${limit(spec?.successfulJobsHistoryLimit)}`);
  writer.line(0, `Failed Job History Limit:\t${limit(spec?.failedJobsHistoryLimit)}`);
  writer.line(
    0,
    `Starting Deadline Seconds:\t${spec?.startingDeadlineSeconds === undefined ? "<unset>" : `${spec.startingDeadlineSeconds}s`}`,
  );
  writer.line(0, `Selector:\t${template?.selector ? selectorText(template.selector) : "<unset>"}`);
  writer.line(0, `Parallelism:\t${template?.parallelism ?? "<unset>"}`);
  writer.line(0, `Completions:\t${template?.completions ?? "<unset>"}`);
  if (template?.activeDeadlineSeconds !== undefined)
    writer.line(0, `Active Deadline Seconds:\t${template.activeDeadlineSeconds}s`);
  writer.line(0, "Pod Template:");
  writePodTemplate(writer, template?.template);
  writer.line(0, `Last Schedule Time:\t${status.lastScheduleTime ? longTime(status.lastScheduleTime) : "<unset>"}`);
  writer.line(
    0,
    `Active Jobs:\t${status.active?.length ? status.active.map(({ name }) => name).join(", ") : "<none>"}`,
  );
}
