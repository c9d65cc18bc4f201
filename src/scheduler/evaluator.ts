import type { Random } from "#base";
import type { ClusterState } from "./cluster-state.ts";
import { type NamespaceLabels, prepareInterPodAffinity } from "./filters/inter-pod-affinity.ts";
import { nodeFilters } from "./filters/node-filters.ts";
import { prepareTopologySpread } from "./filters/topology-spread.ts";
import { summarize } from "./messages.ts";
import type { NodeInfo } from "./node-info.ts";
import type { PodInfo } from "./pod-info.ts";
import { type Candidate, planPreemption } from "./preemption.ts";
import type { WakeEvent } from "./queue.ts";
import { bestNodes } from "./scores.ts";
import type { PodDisruptionBudget, Refusal } from "./types.ts";
import type { PodVolumes, Volumes } from "./volumes.ts";

export interface EvaluatorDeps {
  state: ClusterState;
  random: Random;
  volumes: Volumes;
  namespaceLabels: NamespaceLabels;
  budgets(): readonly PodDisruptionBudget[];
}

export interface Refused {
  /** As in the PodScheduled condition and the FailedScheduling event. */
  readonly message: string;
  readonly waitsFor: ReadonlySet<WakeEvent>;
  /** Pods to be removed to make room, where that helps. */
  readonly preempt?: Candidate;
}

export type Decision = { readonly node: NodeInfo; readonly volumes: PodVolumes | undefined } | Refused;

export interface Evaluator {
  /** Chooses a node for a pod, from the state of this moment; writes nothing. */
  decide(info: PodInfo): Decision;
  /** Ends the keeping of room for a pod that is gone. */
  forget(uid: string): void;
}

const NONE: ReadonlySet<WakeEvent> = new Set();
/** From the post-filter of dynamic resource allocation, which comes before preemption. */
const NO_CLAIMS = "no new claims to deallocate";

export function createEvaluator(deps: EvaluatorDeps): Evaluator {
  const { state } = deps;
  /** Pods that wait on a node for their victims to go: uid -> the node where room is kept. */
  const nominated = new Map<string, { node: string; info: PodInfo }>();

  function filtersFor(info: PodInfo, volumes: PodVolumes | undefined): (node: NodeInfo) => Refusal | undefined {
    const spread = prepareTopologySpread(info, state);
    const affinity = prepareInterPodAffinity(info, state, deps.namespaceLabels);
    return (node) => {
      for (const filter of nodeFilters) {
        const refusal = filter(info, node);
        if (refusal) return refusal;
      }
      return volumes?.filter(node) ?? spread(node) ?? affinity(node);
    };
  }

  /** Filters with the room counted that nominated pods of no lower priority keep, and without it. */
  function withNominated(
    info: PodInfo,
    node: NodeInfo,
    run: (node: NodeInfo) => Refusal | undefined,
  ): Refusal | undefined {
    const kept = [...nominated.values()].filter(
      (other) =>
        other.node === node.name &&
        other.info.uid !== info.uid &&
        other.info.priority >= info.priority &&
        !node.pods.has(other.info.uid),
    );
    for (const other of kept) node.add(other.info);
    const refusal = run(node);
    for (const other of kept) node.remove(other.info.uid);
    return refusal;
  }

  return {
    forget: (uid) => void nominated.delete(uid),
    decide(info) {
      const nodes = state.ready();
      const already = nominated.get(info.uid);
      if (nodes.length === 0) return { message: "no nodes available to schedule pods", waitsFor: new Set(["node"]) };
      const prepared = deps.volumes.prepare(info.pod);
      if (prepared && "refusal" in prepared) {
        return {
          message: `0/${nodes.length} nodes are available: ${prepared.refusal}. not found`,
          waitsFor: new Set(["volume"]),
        };
      }
      const volumes = prepared?.volumes;
      const run = filtersFor(info, volumes);
      const check = (node: NodeInfo) => (nominated.size ? withNominated(info, node, run) : run(node));
      const refusals = new Map<string, Refusal>();
      const feasible: NodeInfo[] = [];
      for (const node of nodes) {
        const refusal = check(node);
        if (refusal) refusals.set(node.name, refusal);
        else feasible.push(node);
      }
      if (feasible.length > 0) {
        nominated.delete(info.uid);
        const preferred = already && feasible.find(({ name }) => name === already.node);
        const best = preferred ? [preferred] : bestNodes(info, feasible, deps);
        return { node: best[Math.floor(deps.random.next() * best.length)]!, volumes };
      }
      const fits = (node: NodeInfo) => withNominated(info, node, filtersFor(info, volumes));
      const plan = planPreemption({ info, nodes, refusals, budgets: deps.budgets(), fits });
      const summary = summarize(nodes.length, refusals.values());
      if ("message" in plan) return { message: `${summary} ${NO_CLAIMS}, ${plan.message}`, waitsFor: NONE };
      nominated.set(info.uid, { node: plan.candidate.node.name, info });
      return { message: summary, waitsFor: NONE, preempt: plan.candidate };
    },
  };
}
