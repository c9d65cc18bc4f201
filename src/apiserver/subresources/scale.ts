import { deepClone } from "#base";
import { type ApiObject, formatSelector, invalid, type KindInfo, type LabelSelector } from "#kinds";

interface Scalable extends ApiObject {
  spec?: { replicas?: number; selector?: LabelSelector | Record<string, string> };
  status?: { replicas?: number };
}

/** autoscaling/v1 Scale. */
export interface Scale extends ApiObject {
  spec: { replicas?: number };
  status: { replicas: number; selector?: string };
}

/** Paths of a custom resource's scale; built-in kinds use the usual ones. */
export interface ScalePaths {
  read(object: ApiObject): { spec: number | undefined; status: number; selector: string | undefined };
  write(object: ApiObject, replicas: number): void;
}

export function scaleOf(kind: KindInfo, object: ApiObject): Scale {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const { spec, status, selector } = (kind.scale ?? builtIn).read(object);
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: {
      name,
      ...(namespace ? { namespace } : {}),
      ...(uid ? { uid } : {}),
      ...(resourceVersion ? { resourceVersion } : {}),
      ...(creationTimestamp ? { creationTimestamp } : {}),
    },
    spec: spec ? { replicas: spec } : {},
    status: { replicas: status, ...(selector ? { selector } : {}) },
  };
}

/** The parent with the scale's replicas. @throws StatusError 422 */
export function withScale(kind: KindInfo, current: ApiObject, scale: Scale): ApiObject {
  const replicas = scale.spec?.replicas ?? 0;
  if (!Number.isInteger(replicas) || replicas < 0) {
    throw invalid({ group: "autoscaling", kind: "Scale" }, current.metadata.name, [
      {
        field: "spec.replicas",
        reason: "FieldValueInvalid",
        message: `Invalid value: ${replicas}: must be greater than or equal to 0`,
      },
    ]);
  }
  const object = deepClone<ApiObject>(current);
  (kind.scale ?? builtIn).write(object, replicas);
  return object;
}

const builtIn: ScalePaths = {
  read(object) {
    const { spec, status } = object as Scalable;
    return { spec: spec?.replicas, status: status?.replicas ?? 0, selector: selectorText(spec?.selector) };
  },
  write(object, replicas) {
    const scalable = object as Scalable;
    scalable.spec = { ...scalable.spec, replicas };
  },
};

/** A ReplicationController's selector is a plain map. */
function selectorText(selector: LabelSelector | Record<string, string> | undefined): string | undefined {
  if (!selector) return undefined;
  if ("matchLabels" in selector || "matchExpressions" in selector) return formatSelector(selector as LabelSelector);
  return Object.entries(selector as Record<string, string>)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}
