/** The part that conditions of all workload kinds share. */
export interface ConditionLike {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export function conditionOf<C extends { readonly type: string }>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * The conditions with one set: unchanged when status and reason are as before; moved to the end otherwise, keeping its
 * transition time while the status stays.
 */
export function withCondition<C extends ConditionLike>(conditions: readonly C[] | undefined, condition: C): C[] {
  const list = [...(conditions ?? [])];
  const before = conditionOf(list, condition.type);
  if (before && before.status === condition.status && before.reason === condition.reason) return list;
  const next = { ...condition };
  if (before?.status === condition.status && before.lastTransitionTime)
    next.lastTransitionTime = before.lastTransitionTime;
  return [...list.filter(({ type }) => type !== condition.type), next];
}

export function withoutCondition<C extends { readonly type: string }>(
  conditions: readonly C[] | undefined,
  type: string,
): C[] {
  return (conditions ?? []).filter((condition) => condition.type !== type);
}
