import { ageColumn, column, nameColumn } from "../columns/column.ts";
import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from "../generated/types.ts";
import type { Column } from "../scheme.ts";

export const horizontalPodAutoscalerColumns: readonly Column[] = [
  nameColumn,
  column<HorizontalPodAutoscaler>("Reference", ({ spec }) => `${spec.scaleTargetRef.kind}/${spec.scaleTargetRef.name}`),
  column<HorizontalPodAutoscaler>("Targets", ({ spec, status }) =>
    targets(spec.metrics ?? [], status?.currentMetrics ?? []),
  ),
  column<HorizontalPodAutoscaler>("MinPods", ({ spec }) => String(spec.minReplicas ?? "<unset>")),
  column<HorizontalPodAutoscaler>("MaxPods", ({ spec }) => spec.maxReplicas),
  column<HorizontalPodAutoscaler>("Replicas", ({ status }) => status?.currentReplicas ?? 0),
  ageColumn,
];

function targets(specs: readonly MetricSpec[], statuses: readonly MetricStatus[]): string {
  if (specs.length === 0) return "<none>";
  const list = specs.map((spec, i) => target(spec, statuses[i]));
  return list.length > 2 ? `${list.slice(0, 2).join(", ")} + ${list.length - 2} more...` : list.join(", ");
}

function target(spec: MetricSpec, status: MetricStatus | undefined): string {
  switch (spec.type) {
    case "External":
      return valueOrAverage(spec.external?.target, status?.external?.current);
    case "Object":
      return valueOrAverage(spec.object?.target, status?.object?.current);
    case "Pods":
      return `${status?.pods?.current.averageValue ?? "<unknown>"}/${spec.pods?.target.averageValue ?? "0"}`;
    case "Resource":
      return `${spec.resource?.name}: ${utilization(spec.resource?.target, status?.resource?.current)}`;
    case "ContainerResource":
      return `${spec.containerResource?.name}: ${utilization(spec.containerResource?.target, status?.containerResource?.current)}`;
    default:
      return "<unknown type>";
  }
}

function valueOrAverage(wanted: MetricTarget | undefined, current: MetricValueStatus | undefined): string {
  if (wanted?.averageValue !== undefined) return `${current?.averageValue ?? "<unknown>"}/${wanted.averageValue} (avg)`;
  return `${current?.value ?? "<unknown>"}/${wanted?.value ?? "0"}`;
}

function utilization(wanted: MetricTarget | undefined, current: MetricValueStatus | undefined): string {
  if (wanted?.averageValue !== undefined) return `${current?.averageValue ?? "<unknown>"}/${wanted.averageValue}`;
  const percent = (value: number | undefined, none: string) => (value === undefined ? none : `${value}%`);
  return `${percent(current?.averageUtilization, "<unknown>")}/${percent(wanted?.averageUtilization, "<auto>")}`;
}
