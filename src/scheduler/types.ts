import type { DeepReadonly } from "#base";
import type * as kinds from "#kinds";

export type Pod = DeepReadonly<kinds.Pod>;
export type Node = DeepReadonly<kinds.Node>;
export type Container = DeepReadonly<kinds.Container>;
export type Taint = DeepReadonly<kinds.Taint>;
export type Toleration = DeepReadonly<kinds.Toleration>;
export type PodAffinityTerm = DeepReadonly<kinds.PodAffinityTerm>;
export type LabelSelector = DeepReadonly<kinds.LabelSelector>;
export type TopologySpreadConstraint = DeepReadonly<kinds.TopologySpreadConstraint>;
export type NodeSelector = DeepReadonly<kinds.NodeSelector>;
export type NodeSelectorTerm = DeepReadonly<kinds.NodeSelectorTerm>;
export type PersistentVolume = DeepReadonly<kinds.PersistentVolume>;
export type PersistentVolumeClaim = DeepReadonly<kinds.PersistentVolumeClaim>;
export type StorageClass = DeepReadonly<kinds.StorageClass>;
export type PodDisruptionBudget = DeepReadonly<kinds.PodDisruptionBudget>;

/** Why a node can't take a pod. `unresolvable`: removing pods from it would not help. */
export interface Refusal {
  readonly reasons: readonly string[];
  readonly unresolvable: boolean;
}

export const refuse = (reason: string, unresolvable = false): Refusal => ({ reasons: [reason], unresolvable });

/** `namespace/name` */
export const keyOf = (object: { metadata: { namespace?: string; name: string } }): string =>
  object.metadata.namespace ? `${object.metadata.namespace}/${object.metadata.name}` : object.metadata.name;
