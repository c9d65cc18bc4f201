import { ageColumn, column, formatLabels, nameColumn, selectorCell, templateColumns } from "../columns/column.ts";
import type { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet } from "../generated/types.ts";
import type { Column } from "../scheme.ts";
import { formatSelector } from "../selector.ts";

export const deploymentColumns: readonly Column[] = [
  nameColumn,
  column<Deployment>("Ready", ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}`, {
    description: "Ready pods of wanted pods",
  }),
  column<Deployment>("Up-to-date", ({ status }) => status?.updatedReplicas ?? 0, {
    description: "Pods of the current template",
  }),
  column<Deployment>("Available", ({ status }) => status?.availableReplicas ?? 0, {
    description: "Pods ready for minReadySeconds",
  }),
  ageColumn,
  ...templateColumns<Deployment>(
    ({ spec }) => spec.template.spec.containers,
    ({ spec }) => formatSelector(spec.selector),
  ),
];

export const replicaSetColumns: readonly Column[] = [
  nameColumn,
  column<ReplicaSet>("Desired", ({ spec }) => spec.replicas ?? 0, { type: "integer", description: "Wanted pods" }),
  column<ReplicaSet>("Current", ({ status }) => status?.replicas ?? 0, { type: "integer", description: "Pods" }),
  column<ReplicaSet>("Ready", ({ status }) => status?.readyReplicas ?? 0, {
    type: "integer",
    description: "Ready pods",
  }),
  ageColumn,
  ...templateColumns<ReplicaSet>(
    ({ spec }) => spec.template?.spec.containers,
    ({ spec }) => selectorCell(spec.selector),
  ),
];

export const statefulSetColumns: readonly Column[] = [
  nameColumn,
  column<StatefulSet>("Ready", ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}`, {
    description: "Ready pods of wanted pods",
  }),
  ageColumn,
  ...templateColumns<StatefulSet>(({ spec }) => spec.template.spec.containers),
];

const daemonCount = (
  name: string,
  field:
    | "desiredNumberScheduled"
    | "currentNumberScheduled"
    | "numberReady"
    | "updatedNumberScheduled"
    | "numberAvailable",
): Column => column<DaemonSet>(name, ({ status }) => status?.[field] ?? 0, { type: "integer" });

export const daemonSetColumns: readonly Column[] = [
  nameColumn,
  daemonCount("Desired", "desiredNumberScheduled"),
  daemonCount("Current", "currentNumberScheduled"),
  daemonCount("Ready", "numberReady"),
  daemonCount("Up-to-date", "updatedNumberScheduled"),
  daemonCount("Available", "numberAvailable"),
  column<DaemonSet>("Node Selector", ({ spec }) => formatLabels(spec.template.spec.nodeSelector)),
  ageColumn,
  ...templateColumns<DaemonSet>(
    ({ spec }) => spec.template.spec.containers,
    ({ spec }) => selectorCell(spec.selector),
  ),
];

export const controllerRevisionColumns: readonly Column[] = [
  nameColumn,
  column<ControllerRevision>("Controller", ({ metadata }) => {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller);
    if (!owner) return "<none>";
    const group = owner.apiVersion.includes("/") ? `.${owner.apiVersion.split("/")[0]}` : "";
    return `${owner.kind}${group}`.toLowerCase().concat("/", owner.name);
  }),
  column<ControllerRevision>("Revision", ({ revision }) => revision),
  ageColumn,
];
