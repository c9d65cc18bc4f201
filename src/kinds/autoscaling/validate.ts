import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscaler,
  HPAScalingRules,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from "../generated/types.ts";
import { compareQuantity } from "../quantity.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, oneOf } from "../validation/field-error.ts";
import { validatePathSegment } from "../validation/references.ts";

export function validateHorizontalPodAutoscaler({ spec }: HorizontalPodAutoscaler): FieldError[] {
  const { minReplicas, maxReplicas = 0, metrics = [], behavior } = spec;
  const errors: FieldError[] = [];
  if (minReplicas !== undefined && minReplicas < 1) {
    errors.push(fieldError.invalid("spec.minReplicas", minReplicas, "must be greater than or equal to 1"));
  }
  const badMax = (text: string) => errors.push(fieldError.invalid("spec.maxReplicas", maxReplicas, text));
  if (maxReplicas === 0) errors.push(fieldError.required("spec.maxReplicas", "must be set and greater than 0"));
  else if (maxReplicas < 0) badMax("must be greater than or equal to 1");
  if (minReplicas !== undefined && maxReplicas < minReplicas) badMax("must be greater than or equal to `minReplicas`");
  errors.push(...validateReference(spec.scaleTargetRef ?? {}, "spec.scaleTargetRef"));
  errors.push(...validateApiVersion(spec.scaleTargetRef ?? {}, "spec.scaleTargetRef.apiVersion"));
  errors.push(...eachItem(metrics, "spec.metrics", validateMetric));
  if (minReplicas === 0 && !metrics.some(({ type }) => type === "Object" || type === "External")) {
    const text = "must specify at least one Object or External metric to support scaling to zero replicas";
    errors.push(fieldError.forbidden("spec.metrics", text));
  }
  return [
    ...errors,
    ...validateRules(behavior?.scaleUp, "spec.behavior.scaleUp"),
    ...validateRules(behavior?.scaleDown, "spec.behavior.scaleDown"),
  ];
}

function validateReference({ kind, name }: Partial<CrossVersionObjectReference>, path: string): FieldError[] {
  return [...validatePathSegment(kind, `${path}.kind`), ...validatePathSegment(name, `${path}.name`)];
}

function validateApiVersion(
  { apiVersion = "", kind }: Partial<CrossVersionObjectReference>,
  path: string,
): FieldError[] {
  const parts = apiVersion.split("/");
  if (parts.length > 2) return [fieldError.invalid(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  if (parts.length === 2 || (apiVersion === "v1" && kind === "ReplicationController")) return [];
  return [fieldError.invalid(path, apiVersion, "apiVersion must specify API group")];
}

const SOURCES = ["object", "external", "pods", "resource", "containerResource"] as const;
const METRIC_TYPES = ["ContainerResource", "External", "Object", "Pods", "Resource"];

function validateMetric(metric: MetricSpec, path: string): FieldError[] {
  const { type = "" } = metric;
  const errors: FieldError[] = [];
  if (!type) errors.push(fieldError.required(`${path}.type`, "must specify a metric source type"));
  // two rules of the API server find the same fault: it is one sentence, and two causes
  errors.push(...oneOf(`${path}.type`, type, METRIC_TYPES), ...oneOf(`${path}.type`, type, METRIC_TYPES));
  const present = SOURCES.filter((source) => metric[source]);
  if (present[0]) errors.push(...validateSource(metric, present[0], `${path}.${present[0]}`));
  const expected = METRIC_TYPES.includes(type) ? `${type[0]!.toLowerCase()}${type.slice(1)}` : undefined;
  if (expected && !present.some((source) => source === expected)) {
    const text = "must populate information for the given metric source";
    errors.push(fieldError.required(`${path}.${expected}`, text));
  }
  if (present.length === 1) return errors;
  const others = present.filter((source) => source !== expected);
  const text = "must populate the given metric source only";
  return [...errors, ...others.map((source) => fieldError.forbidden(`${path}.${source}`, text))];
}

function validateSource(metric: MetricSpec, source: (typeof SOURCES)[number], path: string): FieldError[] {
  switch (source) {
    case "object":
      return validateObjectSource(metric.object!, path);
    case "external":
      return validateExternalSource(metric.external!, path);
    case "pods": {
      const { metric: identifier, target } = metric.pods!;
      const errors = [...validateIdentifier(identifier, `${path}.metric`), ...validateTarget(target, `${path}.target`)];
      if (target?.averageValue !== undefined) return errors;
      const text = "must specify a positive target averageValue";
      return [...errors, fieldError.required(`${path}.target.averageValue`, text)];
    }
    case "resource":
      return validateResourceSource(metric.resource!, [], path);
    case "containerResource": {
      const { container } = metric.containerResource!;
      const noContainer = container ? [] : [fieldError.required(`${path}.container`, "must specify a container")];
      return validateResourceSource(metric.containerResource!, noContainer, path);
    }
  }
}

function validateObjectSource(source: NonNullable<MetricSpec["object"]>, path: string): FieldError[] {
  const { describedObject, metric, target } = source;
  const errors = [
    ...validateReference(describedObject ?? {}, `${path}.describedObject`),
    ...validateIdentifier(metric, `${path}.metric`),
    ...validateTarget(target, `${path}.target`),
  ];
  if (target?.value !== undefined || target?.averageValue !== undefined) return errors;
  const text = "must set either a target value or averageValue";
  return [...errors, fieldError.required(`${path}.target.averageValue`, text)];
}

function validateExternalSource({ metric, target }: NonNullable<MetricSpec["external"]>, path: string): FieldError[] {
  const errors = [...validateIdentifier(metric, `${path}.metric`), ...validateTarget(target, `${path}.target`)];
  if (target?.value === undefined && target?.averageValue === undefined) {
    const text = "must set either a target value for metric or a per-pod target";
    errors.push(fieldError.required(`${path}.target.averageValue`, text));
  }
  if (target?.value !== undefined && target?.averageValue !== undefined) {
    const text = "may not set both a target value for metric and a per-pod target";
    errors.push(fieldError.forbidden(`${path}.target.value`, text));
  }
  return errors;
}

function validateResourceSource(
  { name, target }: NonNullable<MetricSpec["resource"]>,
  between: FieldError[],
  path: string,
): FieldError[] {
  const errors = name ? [] : [fieldError.required(`${path}.name`, "must specify a resource name")];
  errors.push(...between, ...validateTarget(target, `${path}.target`));
  const { averageUtilization: utilization, averageValue } = target ?? {};
  if (utilization === undefined && averageValue === undefined) {
    const text = "must set either a target raw value or a target utilization";
    errors.push(fieldError.required(`${path}.target.averageUtilization`, text));
  }
  if (utilization !== undefined && averageValue !== undefined) {
    const text = "may not set both a target raw value and a target utilization";
    errors.push(fieldError.forbidden(`${path}.target.averageValue`, text));
  }
  return errors;
}

function validateIdentifier(metric: MetricIdentifier | undefined, path: string): FieldError[] {
  return validatePathSegment(metric?.name, `${path}.name`, "must specify a metric name");
}

function validateTarget(target: Partial<MetricTarget> = {}, path: string): FieldError[] {
  const { type = "", averageUtilization: utilization } = target;
  const errors: FieldError[] = [];
  if (!type) errors.push(fieldError.required(`${path}.type`, "must specify a metric target type"));
  if (!["Utilization", "Value", "AverageValue"].includes(type)) {
    errors.push(fieldError.invalid(`${path}.type`, type, "must be either Utilization, Value, or AverageValue"));
  }
  for (const name of ["value", "averageValue"] as const) {
    const amount = target[name];
    if (amount === undefined || compareQuantity(amount, "0") > 0) continue;
    errors.push(fieldError.invalid(`${path}.${name}`, amount, "must be positive"));
  }
  if (utilization === undefined || utilization >= 1) return errors;
  return [...errors, fieldError.invalid(`${path}.averageUtilization`, utilization, "must be greater than 0")];
}

const MAX_WINDOW_SECONDS = 3600;
const MAX_PERIOD_SECONDS = 1800;

function validateRules(rules: HPAScalingRules | undefined, path: string): FieldError[] {
  if (!rules) return [];
  const { stabilizationWindowSeconds: seconds, selectPolicy, policies, tolerance } = rules;
  const errors: FieldError[] = [];
  const at = `${path}.stabilizationWindowSeconds`;
  if ((seconds ?? 0) < 0) errors.push(fieldError.invalid(at, seconds, "must be greater than or equal to zero"));
  if ((seconds ?? 0) > MAX_WINDOW_SECONDS) {
    errors.push(fieldError.invalid(at, seconds, `must be less than or equal to ${MAX_WINDOW_SECONDS}`));
  }
  if (selectPolicy !== undefined) {
    errors.push(...oneOf(`${path}.selectPolicy`, selectPolicy, ["Disabled", "Max", "Min"]));
  }
  if ((policies ?? []).length === 0) {
    errors.push(fieldError.required(`${path}.policies`, "must specify at least one Policy"));
  }
  errors.push(
    ...eachItem(policies, `${path}.policies`, ({ type, value = 0, periodSeconds = 0 }, item) => {
      const found = oneOf(`${item}.type`, type, ["Percent", "Pods"]);
      if (value <= 0) found.push(fieldError.invalid(`${item}.value`, value, "must be greater than zero"));
      const period = `${item}.periodSeconds`;
      if (periodSeconds <= 0) found.push(fieldError.invalid(period, periodSeconds, "must be greater than zero"));
      if (periodSeconds <= MAX_PERIOD_SECONDS) return found;
      const text = `must be less than or equal to ${MAX_PERIOD_SECONDS}`;
      return [...found, fieldError.invalid(period, periodSeconds, text)];
    }),
  );
  if (tolerance !== undefined && compareQuantity(tolerance, "0") < 0) {
    errors.push(fieldError.invalid(`${path}.tolerance`, tolerance, "must be greater than or equal to 0"));
  }
  return errors;
}
