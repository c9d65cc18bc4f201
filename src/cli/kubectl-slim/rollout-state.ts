import type { ApiObject } from "#kinds";
import { CommandError } from "./errors.ts";

interface Workload {
  readonly metadata: {
    readonly name: string;
    readonly generation?: number;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly replicas?: number;
    readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: { readonly partition?: number } };
  };
  readonly status?: Readonly<Record<string, number | string | undefined>> & {
    readonly conditions?: readonly { readonly type: string; readonly reason?: string }[];
  };
}

/** How far a rollout is, in kubectl's words. @throws CommandError when it can't succeed any more, or has no rollouts */
export function rolloutState(object: ApiObject, revision = 0): { text: string; done: boolean } {
  const workload = object as unknown as Workload;
  const rule = { Deployment: deployment, DaemonSet: daemonSet, StatefulSet: statefulSet }[object.kind as string];
  if (!rule) throw new CommandError(`no status viewer has been implemented for ${object.kind}${groupOf(object)}`);
  if (object.kind === "Deployment" && revision > 0) {
    const now = Number(workload.metadata.annotations?.["deployment.kubernetes.io/revision"] ?? 0);
    if (now !== revision)
      throw new CommandError(`desired revision (${revision}) is different from the running revision (${now})`);
  }
  return rule(workload);
}

const groupOf = ({ apiVersion }: ApiObject) => (apiVersion.includes("/") ? `.${apiVersion.split("/")[0]}` : "");

const count = ({ status }: Workload, field: string) => Number(status?.[field] ?? 0);
const seen = (workload: Workload) => count(workload, "observedGeneration") >= (workload.metadata.generation ?? 0);
const more = (text: string) => ({ text: `${text}\n`, done: false });
const end = (text: string) => ({ text: `${text}\n`, done: true });

function deployment(workload: Workload) {
  const name = JSON.stringify(workload.metadata.name);
  if (!seen(workload)) return more("Waiting for deployment spec update to be observed...");
  const progressing = workload.status?.conditions?.find(({ type }) => type === "Progressing");
  if (progressing?.reason === "ProgressDeadlineExceeded")
    throw new CommandError(`deployment ${name} exceeded its progress deadline`);
  const wanted = workload.spec.replicas ?? 1;
  const [updated, replicas, available] = ["updatedReplicas", "replicas", "availableReplicas"].map((field) =>
    count(workload, field),
  ) as [number, number, number];
  const waiting = `Waiting for deployment ${name} rollout to finish:`;
  if (updated < wanted) return more(`${waiting} ${updated} out of ${wanted} new replicas have been updated...`);
  if (replicas > updated) return more(`${waiting} ${replicas - updated} old replicas are pending termination...`);
  if (available < updated) return more(`${waiting} ${available} of ${updated} updated replicas are available...`);
  return end(`deployment ${name} successfully rolled out`);
}

function daemonSet(workload: Workload) {
  const name = JSON.stringify(workload.metadata.name);
  if (workload.spec.updateStrategy?.type !== "RollingUpdate")
    throw new CommandError(`rollout status is only available for RollingUpdate strategy type`);
  if (!seen(workload)) return more("Waiting for daemon set spec update to be observed...");
  const [updated, wanted, available] = ["updatedNumberScheduled", "desiredNumberScheduled", "numberAvailable"].map(
    (field) => count(workload, field),
  ) as [number, number, number];
  const waiting = `Waiting for daemon set ${name} rollout to finish:`;
  if (updated < wanted) return more(`${waiting} ${updated} out of ${wanted} new pods have been updated...`);
  if (available < wanted) return more(`${waiting} ${available} of ${wanted} updated pods are available...`);
  return end(`daemon set ${name} successfully rolled out`);
}

function statefulSet(workload: Workload) {
  const { spec, status } = workload;
  if (spec.updateStrategy?.type !== "RollingUpdate")
    throw new CommandError(`rollout status is only available for RollingUpdate strategy type`);
  if (status?.observedGeneration === undefined || !seen(workload))
    return more("Waiting for statefulset spec update to be observed...");
  const wanted = spec.replicas ?? 1;
  if (count(workload, "readyReplicas") < wanted)
    return more(`Waiting for ${wanted - count(workload, "readyReplicas")} pods to be ready...`);
  const partition = spec.updateStrategy.rollingUpdate?.partition;
  const updated = count(workload, "updatedReplicas");
  if (partition !== undefined) {
    if (updated < wanted - partition)
      return more(
        `Waiting for partitioned roll out to finish: ${updated} out of ${wanted - partition} new pods have been updated...`,
      );
    return end(`partitioned roll out complete: ${updated} new pods have been updated...`);
  }
  if (status.updateRevision !== status.currentRevision)
    return more(
      `waiting for statefulset rolling update to complete ${updated} pods at revision ${status.updateRevision}...`,
    );
  return end(
    `statefulset rolling update complete ${count(workload, "currentReplicas")} pods at revision ${status.currentRevision}...`,
  );
}
