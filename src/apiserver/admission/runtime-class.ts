import { deepClone, deepEqual } from "#base";
import { canonicalQuantity, type Pod, resources, type RuntimeClass, type Toleration } from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin, Reader } from "../ports.ts";
import { isAbout, objectOf, refuse } from "./support.ts";

/**
 * A pod's RuntimeClass is there, and gives it its overhead and where it may run.
 * @see https://kubernetes.io/docs/concepts/containers/runtime-class/
 */
export function createRuntimeClass({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "RuntimeClass",
    handles: (attributes) => attributes.operation === "CREATE" && isAbout(attributes, resources.pods),
    admit(attributes) {
      const pod = objectOf<Pod>(attributes);
      const found = classOf(attributes, pod, reader);
      const overhead = overheadOf(found);
      if (overhead) {
        if (Object.keys(pod.spec.overhead ?? {}).length > 0 && !sameOverhead(pod, overhead))
          throw refuse(attributes, MISMATCH);
        pod.spec.overhead = { ...overhead };
      }
      if (found?.scheduling) applyScheduling(attributes, pod, found.scheduling);
    },
    validate(attributes) {
      const pod = objectOf<Pod>(attributes);
      const overhead = overheadOf(classOf(attributes, pod, reader));
      if (overhead && !sameOverhead(pod, overhead)) throw refuse(attributes, MISMATCH);
      if (!overhead && pod.spec.overhead)
        throw refuse(attributes, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
    },
  };
}

const MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

function classOf(attributes: AdmissionAttributes, pod: Pod, reader: Reader): RuntimeClass | undefined {
  const name = pod.spec.runtimeClassName;
  if (name === undefined) return undefined;
  const found = reader.get(resources.runtimeClasses, undefined, name);
  if (!found) throw refuse(attributes, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
  return found;
}

const overheadOf = (found: RuntimeClass | undefined) => (found?.overhead ? (found.overhead.podFixed ?? {}) : undefined);

function sameOverhead(pod: Pod, overhead: Readonly<Record<string, string>>): boolean {
  const canonical = (list: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(list).map(([name, amount]) => [name, canonicalQuantity(amount)]));
  return deepEqual(canonical(pod.spec.overhead ?? {}), canonical(overhead));
}

function applyScheduling(
  attributes: AdmissionAttributes,
  { spec }: Pod,
  scheduling: NonNullable<RuntimeClass["scheduling"]>,
): void {
  for (const [key, value] of Object.entries(scheduling.nodeSelector ?? {})) {
    const own = spec.nodeSelector?.[key];
    if (own !== undefined && own !== value)
      throw refuse(
        attributes,
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`,
      );
    spec.nodeSelector = { ...spec.nodeSelector, [key]: value };
  }
  const tolerations = mergeTolerations([
    ...(spec.tolerations ?? []),
    ...deepClone<Toleration[]>(scheduling.tolerations ?? []),
  ]);
  if (tolerations.length > 0) spec.tolerations = tolerations;
}

/** Without those that another one takes in. */
function mergeTolerations(all: readonly Toleration[]): Toleration[] {
  const merged: Toleration[] = [];
  all.forEach((one, i) => {
    if (merged.some((other) => takesIn(other, one))) return;
    if (all.slice(i + 1).some((other) => !deepEqual(one, other) && takesIn(other, one))) return;
    merged.push(one);
  });
  return merged;
}

/** Whatever `inner` tolerates, `outer` does too. */
function takesIn(outer: Toleration, inner: Toleration): boolean {
  if (deepEqual(outer, inner)) return true;
  if (inner.key !== outer.key && (outer.key || outer.operator !== "Exists")) return false;
  if (outer.effect && inner.effect !== outer.effect) return false;
  if (outer.effect === "NoExecute" && outer.tolerationSeconds !== undefined) {
    if (inner.tolerationSeconds === undefined || inner.tolerationSeconds > outer.tolerationSeconds) return false;
  }
  if (outer.operator === "Exists") return true;
  return (outer.operator ?? "Equal") === (inner.operator ?? "Equal") && (outer.value ?? "") === (inner.value ?? "");
}
