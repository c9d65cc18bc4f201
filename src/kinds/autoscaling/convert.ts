import { deepClone } from "#base";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerV1,
  MetricSpec,
  MetricStatus,
} from "../generated/types.ts";

const METRICS = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions";

const isCpu = (metric: MetricSpec | MetricStatus): boolean =>
  metric.type === "Resource" && metric.resource?.name === "cpu";

/** v2 objects as v1 shows them: what v1 has no field for goes into annotations, as JSON. */
export function toV1(object: HorizontalPodAutoscaler): HorizontalPodAutoscalerV1 {
  const { metadata, spec, status } = deepClone<HorizontalPodAutoscaler>(object);
  const annotations: Record<string, string> = { ...metadata.annotations };
  const cpu = (spec.metrics ?? []).findIndex((m) => isCpu(m) && m.resource?.target.averageUtilization !== undefined);
  const others = (spec.metrics ?? []).filter((_, i) => i !== cpu);
  if (others.length > 0) annotations[METRICS] = JSON.stringify(others);
  if (spec.behavior) annotations[BEHAVIOR] = JSON.stringify(spec.behavior);
  const currentCpu = (status?.currentMetrics ?? []).find(
    (m) => isCpu(m) && m.resource?.current.averageUtilization !== undefined,
  );
  const otherCurrent = (status?.currentMetrics ?? []).filter((metric) => metric !== currentCpu);
  if (otherCurrent.length > 0) annotations[CURRENT] = JSON.stringify(otherCurrent);
  if ((status?.conditions ?? []).length > 0) annotations[CONDITIONS] = JSON.stringify(status?.conditions);
  if (Object.keys(annotations).length > 0) metadata.annotations = annotations;
  const target = spec.metrics?.[cpu]?.resource?.target.averageUtilization;
  const current = currentCpu?.resource?.current.averageUtilization;
  return {
    apiVersion: "autoscaling/v1",
    kind: "HorizontalPodAutoscaler",
    metadata,
    spec: {
      scaleTargetRef: spec.scaleTargetRef,
      ...(spec.minReplicas === undefined ? {} : { minReplicas: spec.minReplicas }),
      maxReplicas: spec.maxReplicas,
      ...(target === undefined ? {} : { targetCPUUtilizationPercentage: target }),
    },
    status: {
      ...(status?.observedGeneration === undefined ? {} : { observedGeneration: status.observedGeneration }),
      ...(status?.lastScaleTime === undefined ? {} : { lastScaleTime: status.lastScaleTime }),
      currentReplicas: status?.currentReplicas ?? 0,
      desiredReplicas: status?.desiredReplicas ?? 0,
      ...(current === undefined ? {} : { currentCPUUtilizationPercentage: current }),
    },
  };
}

/** The way back: annotations become fields again. */
export function fromV1(object: HorizontalPodAutoscalerV1): HorizontalPodAutoscaler {
  const { metadata, spec, status } = deepClone<HorizontalPodAutoscalerV1>(object);
  const take = <T>(name: string): T | undefined => {
    const text = metadata.annotations?.[name];
    if (text === undefined) return undefined;
    delete metadata.annotations![name];
    return parse<T>(text);
  };
  const metrics: MetricSpec[] = [];
  if (spec.targetCPUUtilizationPercentage !== undefined) {
    const target = { type: "Utilization", averageUtilization: spec.targetCPUUtilizationPercentage };
    metrics.push({ type: "Resource", resource: { name: "cpu", target } });
  }
  metrics.push(...(take<MetricSpec[]>(METRICS) ?? []));
  const behavior = take<NonNullable<HorizontalPodAutoscaler["spec"]["behavior"]>>(BEHAVIOR);
  const currentMetrics: MetricStatus[] = [];
  if (status?.currentCPUUtilizationPercentage !== undefined) {
    const current = { averageUtilization: status.currentCPUUtilizationPercentage };
    currentMetrics.push({ type: "Resource", resource: { name: "cpu", current } });
  }
  currentMetrics.push(...(take<MetricStatus[]>(CURRENT) ?? []));
  const conditions = take<NonNullable<NonNullable<HorizontalPodAutoscaler["status"]>["conditions"]>>(CONDITIONS);
  if (metadata.annotations && Object.keys(metadata.annotations).length === 0) delete metadata.annotations;
  const { currentCPUUtilizationPercentage: _, ...restOfStatus } = status ?? { currentReplicas: 0, desiredReplicas: 0 };
  const { targetCPUUtilizationPercentage: __, ...restOfSpec } = spec;
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata,
    spec: { ...restOfSpec, ...(metrics.length > 0 ? { metrics } : {}), ...(behavior ? { behavior } : {}) },
    status: {
      ...restOfStatus,
      currentMetrics: currentMetrics.length > 0 ? currentMetrics : (null as unknown as MetricStatus[]),
      ...(conditions ? { conditions } : {}),
    },
  };
}

/** Undefined for text that isn't JSON: a broken annotation is dropped. */
function parse<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}
