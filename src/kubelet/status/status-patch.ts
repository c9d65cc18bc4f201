import { type DeepReadonly, deepEqual } from "#base";
import type { PodCondition, PodStatus } from "#kinds";
import { KUBELET_CONDITIONS } from "./conditions.ts";

/** Fields of a pod's status that others write. */
const FOREIGN: ReadonlySet<string> = new Set([
  "resourceClaimStatuses",
  "extendedResourceClaimStatus",
  "nodeAllocatableResourceClaimStatuses",
  "nominatedNodeName",
  "conditions",
  "podIPs",
  "hostIPs",
]);

/**
 * A strategic merge patch of `status` that makes `from` into `to` and leaves alone what others own (their conditions,
 * claims). Undefined when nothing differs.
 */
export function statusPatch(
  from: DeepReadonly<PodStatus>,
  to: DeepReadonly<PodStatus>,
): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  const a = from as Readonly<Record<string, unknown>>;
  const b = to as Readonly<Record<string, unknown>>;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (FOREIGN.has(key) || deepEqual(a[key], b[key])) continue;
    patch[key] = b[key] === undefined ? null : isMap(a[key]) && isMap(b[key]) ? mapPatch(a[key], b[key]) : b[key];
  }
  for (const key of ["podIPs", "hostIPs"] as const) {
    if (deepEqual(a[key], b[key])) continue;
    patch[key] = b[key] === undefined ? null : [...(b[key] as unknown[]), { $patch: "replace" }];
  }
  const conditions = conditionsPatch(from.conditions ?? [], to.conditions ?? []);
  if (conditions) Object.assign(patch, conditions);
  return Object.keys(patch).length > 0 ? patch : undefined;
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Maps are merged: what is gone must be named. */
function mapPatch(from: Record<string, unknown>, to: Record<string, unknown>): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (deepEqual(from[key], to[key])) continue;
    const [a, b] = [from[key], to[key]];
    patch[key] = b === undefined ? null : isMap(a) && isMap(b) ? mapPatch(a, b) : b;
  }
  return patch;
}

function conditionsPatch(
  from: readonly DeepReadonly<PodCondition>[],
  to: readonly DeepReadonly<PodCondition>[],
): Record<string, unknown> | undefined {
  const changed: Record<string, unknown>[] = [];
  for (const condition of to) {
    const before = from.find((item) => item.type === condition.type);
    if (!KUBELET_CONDITIONS.has(condition.type) && condition.type !== "DisruptionTarget") continue;
    if (!before) changed.push({ ...condition });
    else {
      const difference = mapPatch(before as Record<string, unknown>, condition as Record<string, unknown>);
      if (Object.keys(difference).length > 0) changed.push({ ...difference, type: condition.type });
    }
  }
  for (const { type } of from) {
    if (KUBELET_CONDITIONS.has(type) && !to.some((item) => item.type === type))
      changed.push({ $patch: "delete", type });
  }
  if (changed.length === 0) return undefined;
  return { "$setElementOrder/conditions": to.map(({ type }) => ({ type })), conditions: changed };
}
