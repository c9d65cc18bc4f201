import { type DeepReadonly, deepEqual } from "#base";
import type { Deployment, PodTemplateSpec, ReplicaSet } from "#kinds";
import { byCreation, scaledValue } from "../runtime/objects.ts";

export type D = DeepReadonly<Deployment>;
export type RS = DeepReadonly<ReplicaSet>;

export const HASH_LABEL = "pod-template-hash";
export const REVISION = "deployment.kubernetes.io/revision";
export const REVISION_HISTORY = "deployment.kubernetes.io/revision-history";
export const DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas";
export const MAX_REPLICAS = "deployment.kubernetes.io/max-replicas";
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const ROLLBACK_TO = "deprecated.deployment.rollback.to";
const NOT_COPIED = [LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO];
/** Length of the list of earlier revisions that a ReplicaSet keeps, characters. */
const MAX_HISTORY = 2000;

/** One ReplicaSet is to have this size. */
export interface Scale {
  readonly rs: RS;
  readonly replicas: number;
}

export const replicasOf = (d: D): number => d.spec.replicas ?? 1;
export const sizeOf = (rs: RS): number => rs.spec.replicas ?? 1;
export const totalSize = (list: readonly RS[]): number => list.reduce((sum, rs) => sum + sizeOf(rs), 0);
export const activeOf = (list: readonly RS[]): RS[] => list.filter((rs) => sizeOf(rs) > 0);
/** A 64-bit number: ReplicaSets that are adopted may have any. 0 for none and for what is no number. */
export function revisionOf(object: { metadata: { annotations?: Readonly<Record<string, string>> } }): bigint {
  const text = object.metadata.annotations?.[REVISION] ?? "";
  return /^-?\d{1,19}$/.test(text) ? BigInt(text) : 0n;
}

/** The revision behind all of these. */
export function nextRevision(old: readonly RS[]): bigint {
  let most = 0n;
  for (const one of old.map(revisionOf)) if (one > most) most = one;
  return most + 1n;
}

const isRolling = (d: D): boolean => (d.spec.strategy?.type ?? "RollingUpdate") === "RollingUpdate";

/** maxSurge and maxUnavailable in pods; not both 0. */
export function limitsOf(d: D): { surge: number; unavailable: number } {
  if (!isRolling(d)) return { surge: 0, unavailable: 0 };
  const { maxSurge = 0, maxUnavailable = 0 } = d.spec.strategy?.rollingUpdate ?? {};
  const surge = scaledValue(maxSurge, replicasOf(d), "up");
  const unavailable = scaledValue(maxUnavailable, replicasOf(d), "down");
  if (surge === 0 && unavailable === 0) return { surge, unavailable: Math.min(1, replicasOf(d)) };
  return { surge, unavailable: Math.min(unavailable, replicasOf(d)) };
}

/** Equal but for the hash label. */
export function sameTemplate(
  a: DeepReadonly<PodTemplateSpec> | undefined,
  b: DeepReadonly<PodTemplateSpec> | undefined,
): boolean {
  return deepEqual(withoutHash(a), withoutHash(b));
}
function withoutHash(template: DeepReadonly<PodTemplateSpec> | undefined): unknown {
  const { [HASH_LABEL]: _, ...labels } = template?.metadata?.labels ?? {};
  return { ...template, metadata: { ...template?.metadata, labels, creationTimestamp: undefined } };
}

/** The ReplicaSet of the present template (the oldest, should there be several) and all others. */
export function divide(d: D, list: readonly RS[]): { current: RS | undefined; old: RS[] } {
  const current = [...list].sort(byCreation).find((rs) => sameTemplate(rs.spec.template, d.spec.template));
  return { current, old: list.filter((rs) => rs !== current) };
}

/** The size of the ReplicaSet of the present template in a rollout. */
export function newSize(d: D, all: readonly RS[], current: number): number {
  if (!isRolling(d)) return replicasOf(d);
  const room = replicasOf(d) + limitsOf(d).surge - totalSize(all);
  if (room <= 0) return current;
  return current + Math.min(room, replicasOf(d) - current);
}

/** The next step of a rolling update for the ReplicaSet of the present template. */
export function planNew(d: D, current: RS, all: readonly RS[]): Scale[] {
  const size = sizeOf(current);
  if (size === replicasOf(d)) return [];
  const replicas = size > replicasOf(d) ? replicasOf(d) : newSize(d, all, size);
  return replicas === size ? [] : [{ rs: current, replicas }];
}

/**
 * The next step of a rolling update for the old ReplicaSets: pods that are not available go first, then as many available
 * ones as maxUnavailable lets go; the oldest ReplicaSet first.
 */
export function planOld(d: D, current: RS, old: readonly RS[]): Scale[] {
  const active = activeOf(old).sort(byCreation);
  const sizes = new Map(active.map((rs) => [rs, sizeOf(rs)]));
  if (active.length === 0) return [];
  const least = replicasOf(d) - limitsOf(d).unavailable;
  const notAvailable = sizeOf(current) - (current.status?.availableReplicas ?? 0);
  let broken = totalSize([...old, current]) - least - notAvailable;
  if (broken <= 0) return [];
  for (const rs of active) {
    if (broken <= 0) break;
    const gone = Math.min(broken, sizeOf(rs) - (rs.status?.availableReplicas ?? 0));
    if (gone <= 0) continue;
    sizes.set(rs, sizeOf(rs) - gone);
    broken -= gone;
  }
  const available = [...active, current].reduce((sum, rs) => sum + (rs.status?.availableReplicas ?? 0), 0);
  let spare = available - least;
  for (const rs of active) {
    if (spare <= 0) break;
    const size = sizes.get(rs)!;
    const gone = Math.min(size, spare);
    sizes.set(rs, size - gone);
    spare -= gone;
  }
  return active.flatMap((rs) => (sizes.get(rs) === sizeOf(rs) ? [] : [{ rs, replicas: sizes.get(rs)! }]));
}

/** True when `spec.replicas` was changed since the ReplicaSets were sized last. */
export function isScalingEvent(d: D, all: readonly RS[]): boolean {
  return activeOf(all).some((rs) => {
    const desired = rs.metadata.annotations?.[DESIRED_REPLICAS];
    return desired !== undefined && Number(desired) !== replicasOf(d);
  });
}

/**
 * Sizes after `spec.replicas` has changed or while paused: in the middle of a rollout every ReplicaSet takes its share, so
 * that scaling does not hasten the rollout. https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#proportional-scaling
 */
export function planScaling(d: D, current: RS | undefined, old: readonly RS[]): Scale[] {
  const only = activeOrLatest(current, old);
  if (only) return sizeOf(only) === replicasOf(d) ? [] : [{ rs: only, replicas: replicasOf(d) }];
  if (isSaturated(d, current)) return activeOf(old).map((rs) => ({ rs, replicas: 0 }));
  if (!isRolling(d)) return [];
  const active = activeOf(current ? [...old, current] : old);
  const allowed = replicasOf(d) > 0 ? replicasOf(d) + limitsOf(d).surge : 0;
  const change = allowed - totalSize(active);
  active.sort((a, b) => sizeOf(b) - sizeOf(a) || (change > 0 ? byCreation(b, a) : byCreation(a, b)));
  let added = 0;
  const plan = active.map((rs) => {
    const share = change === 0 ? 0 : proportion(d, rs, change, added);
    added += share;
    return { rs, replicas: sizeOf(rs) + share };
  });
  if (plan[0] && change !== 0) plan[0].replicas = Math.max(0, plan[0].replicas + change - added);
  return plan;
}

/** The one ReplicaSet that scaling concerns; undefined when several are active. */
function activeOrLatest(current: RS | undefined, old: readonly RS[]): RS | undefined {
  const active = activeOf(current ? [...old, current] : old);
  if (active.length > 1) return undefined;
  return active[0] ?? current ?? [...old].sort(byCreation).at(-1);
}

function isSaturated(d: D, current: RS | undefined): boolean {
  const desired = current?.metadata.annotations?.[DESIRED_REPLICAS];
  if (!current || desired === undefined || Number(desired) !== replicasOf(d)) return false;
  return sizeOf(current) === replicasOf(d) && current.status?.availableReplicas === replicasOf(d);
}

function proportion(d: D, rs: RS, change: number, added: number): number {
  if (change === added) return 0;
  const fraction = fractionOf(d, rs);
  return change > 0 ? Math.min(fraction, change - added) : Math.max(fraction, change - added);
}

function fractionOf(d: D, rs: RS): number {
  if (replicasOf(d) === 0) return -sizeOf(rs);
  const before = Number(rs.metadata.annotations?.[MAX_REPLICAS]) || d.status?.replicas || 0;
  if (before === 0) return 0;
  return Math.round((sizeOf(rs) * (replicasOf(d) + limitsOf(d).surge)) / before) - sizeOf(rs);
}

/** Annotations that a ReplicaSet has of its Deployment's size. */
export function sizeAnnotations(d: D): Record<string, string> {
  return {
    [DESIRED_REPLICAS]: String(replicasOf(d)),
    [MAX_REPLICAS]: String(replicasOf(d) + limitsOf(d).surge),
  };
}

/** The annotations of the ReplicaSet of the present template: the Deployment's, and the revision, never lowered. */
export function rsAnnotations(d: D, current: RS | undefined, newRevision: bigint): Record<string, string> {
  const result: Record<string, string> = { ...current?.metadata.annotations };
  for (const [key, value] of Object.entries(d.metadata.annotations ?? {})) {
    if (!NOT_COPIED.includes(key)) result[key] = value;
  }
  const before = current && result[REVISION];
  const beforeNumber = current ? revisionOf(current) : 0n;
  if (beforeNumber < newRevision) {
    result[REVISION] = String(newRevision);
    if (before !== undefined) result[REVISION_HISTORY] = historyWith(result[REVISION_HISTORY], before);
  }
  return current ? result : { ...result, ...sizeAnnotations(d) };
}

function historyWith(history: string | undefined, revision: string): string {
  if (!history) return revision;
  const list = [...history.split(","), revision];
  while (list.join(",").length > MAX_HISTORY) list.shift();
  return list.join(",");
}

/** Old ReplicaSets beyond revisionHistoryLimit that are safe to delete, oldest revision first. */
export function planCleanup(d: D, old: readonly RS[]): RS[] {
  const limit = d.spec.revisionHistoryLimit;
  if (limit === undefined || limit === 2 ** 31 - 1) return [];
  const cleanable = old.filter(({ metadata }) => !metadata.deletionTimestamp);
  const excess = cleanable.length - limit;
  if (excess <= 0) return [];
  return cleanable
    .sort((a, b) => Number(revisionOf(a) - revisionOf(b)) || byCreation(a, b))
    .slice(0, excess)
    .filter(
      (rs) =>
        (rs.status?.replicas ?? 0) === 0 &&
        sizeOf(rs) === 0 &&
        (rs.metadata.generation ?? 0) <= (rs.status?.observedGeneration ?? 0),
    );
}
