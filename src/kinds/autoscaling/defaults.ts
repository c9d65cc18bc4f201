import type { HorizontalPodAutoscaler, HPAScalingRules } from "../generated/types.ts";

/** https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#default-behavior */
export function setHorizontalPodAutoscalerDefaults({ spec }: HorizontalPodAutoscaler): void {
  spec.minReplicas ??= 1;
  if ((spec.metrics ?? []).length === 0) {
    spec.metrics = [
      { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } },
    ];
  }
  if (!spec.behavior) return;
  const percent = { type: "Percent", value: 100, periodSeconds: 15 };
  const up: HPAScalingRules = {
    stabilizationWindowSeconds: 0,
    selectPolicy: "Max",
    policies: [{ type: "Pods", value: 4, periodSeconds: 15 }, percent],
  };
  const down: HPAScalingRules = { selectPolicy: "Max", policies: [{ ...percent }] };
  spec.behavior.scaleUp = { ...up, ...spec.behavior.scaleUp };
  spec.behavior.scaleDown = { ...down, ...spec.behavior.scaleDown };
}
