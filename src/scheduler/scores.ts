import { matchesTerm, tolerates } from "#kinds";
import type { ClusterState } from "./cluster-state.ts";
import { type NamespaceLabels, termMatches } from "./filters/inter-pod-affinity.ts";
import { countSpread } from "./filters/topology-spread.ts";
import type { NodeInfo } from "./node-info.ts";
import type { PodInfo } from "./pod-info.ts";

/** Each score is 0 to 100 a node; the sum is weighted as in the default profile of kube-scheduler. */
type Score = (info: PodInfo, nodes: readonly NodeInfo[], cluster: Cluster) => number[];

interface Cluster {
  readonly state: ClusterState;
  readonly namespaceLabels: NamespaceLabels;
}

const SCORES: readonly { weight: number; score: Score }[] = [
  { weight: 3, score: taintPreference },
  { weight: 2, score: nodePreference },
  { weight: 1, score: leastAllocated },
  { weight: 1, score: balancedAllocation },
  { weight: 2, score: spread },
  { weight: 2, score: podPreference },
  { weight: 1, score: imageLocality },
];

/** The nodes with the highest score. `nodes` is not empty. */
export function bestNodes(info: PodInfo, nodes: readonly NodeInfo[], cluster: Cluster): NodeInfo[] {
  if (nodes.length === 1) return [...nodes];
  const totals = new Array<number>(nodes.length).fill(0);
  for (const { weight, score } of SCORES) {
    const values = score(info, nodes, cluster);
    for (let i = 0; i < totals.length; i++) totals[i]! += weight * Math.floor(values[i]!);
  }
  const best = Math.max(...totals);
  return nodes.filter((_, i) => totals[i] === best);
}

/** Scales to 0..100 by the largest; `reverse`: the largest is the worst. */
function normalize(values: readonly number[], reverse = false): number[] {
  const most = Math.max(...values);
  if (most === 0) return values.map(() => (reverse ? 100 : 0));
  return values.map((value) => (reverse ? 100 - (100 * value) / most : (100 * value) / most));
}

function taintPreference({ pod }: PodInfo, nodes: readonly NodeInfo[]): number[] {
  const intolerable = nodes.map(
    ({ node }) =>
      (node?.spec.taints ?? []).filter(
        (taint) => taint.effect === "PreferNoSchedule" && !pod.spec.tolerations?.some((one) => tolerates(one, taint)),
      ).length,
  );
  return normalize(intolerable, true);
}

function nodePreference({ pod }: PodInfo, nodes: readonly NodeInfo[]): number[] {
  const terms = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  if (terms.length === 0) return nodes.map(() => 0);
  return normalize(
    nodes.map(({ node }) =>
      terms.reduce((sum, { weight, preference }) => sum + (node && matchesTerm(preference, node) ? weight : 0), 0),
    ),
  );
}

/** Fractions of cpu and memory that would be asked for, with the incoming pod. */
function fractions(info: PodInfo, node: NodeInfo): number[] {
  const of = (name: string, used: number) => {
    const capacity = node.allocatable.get(name) ?? 0;
    return capacity > 0 ? [Math.min(1, used / capacity)] : [];
  };
  return [
    ...of("cpu", node.nonZero.cpu + info.nonZero.cpu),
    ...of("memory", node.nonZero.memory + info.nonZero.memory),
  ];
}

function leastAllocated(info: PodInfo, nodes: readonly NodeInfo[]): number[] {
  return nodes.map((node) => {
    const used = fractions(info, node);
    return used.length ? used.reduce((sum, one) => sum + Math.floor(100 * (1 - one)), 0) / used.length : 0;
  });
}

function balancedAllocation(info: PodInfo, nodes: readonly NodeInfo[]): number[] {
  return nodes.map((node) => {
    const [cpu, memory] = fractions(info, node);
    return cpu === undefined || memory === undefined ? 100 : 100 * (1 - Math.abs(cpu - memory) / 2);
  });
}

/** Soft constraints; without any, the pods of one controller spread over nodes. */
function spread(info: PodInfo, nodes: readonly NodeInfo[]): number[] {
  const given = info.pod.spec.topologySpreadConstraints ?? [];
  const soft = given.filter(({ whenUnsatisfiable }) => whenUnsatisfiable === "ScheduleAnyway");
  if (given.length === 0) {
    return normalize(
      nodes.map((node) => (info.owner ? (node.owners.get(info.owner) ?? 0) : 0)),
      true,
    );
  }
  const sums = nodes.map(() => 0);
  for (const { constraint, byValue } of countSpread(info.pod, soft, nodes)) {
    const weight = Math.log(byValue.size + 2);
    nodes.forEach((node, i) => {
      const value = node.labels[constraint.topologyKey];
      sums[i]! += value === undefined ? 0 : (byValue.get(value) ?? 0) * weight + (constraint.maxSkew - 1);
    });
  }
  const most = Math.max(...sums);
  const least = Math.min(...sums);
  return sums.map((sum, i) => {
    if (soft.some(({ topologyKey }) => nodes[i]!.labels[topologyKey] === undefined)) return 0;
    return most === 0 ? 100 : (100 * (most + least - sum)) / most;
  });
}

/** Preferred pod (anti-)affinity, the pod's own and that of pods already there. */
function podPreference(info: PodInfo, nodes: readonly NodeInfo[], { state, namespaceLabels }: Cluster): number[] {
  const byTopology = new Map<string, number>();
  const add = (node: NodeInfo, key: string, weight: number) => {
    const value = node.labels[key];
    if (value !== undefined) byTopology.set(`${key}\0${value}`, (byTopology.get(`${key}\0${value}`) ?? 0) + weight);
  };
  const own = [
    ...info.preferredAffinity,
    ...info.preferredAntiAffinity.map(({ weight, term }) => ({ weight: -weight, term })),
  ];
  for (const node of state.ready()) {
    for (const other of own.length ? node.pods.values() : node.withAffinity.values()) {
      for (const { weight, term } of own) {
        if (termMatches(term, other.pod, namespaceLabels)) add(node, term.topologyKey, weight);
      }
      const theirs = [
        ...other.preferredAffinity,
        ...other.preferredAntiAffinity.map(({ weight, term }) => ({ weight: -weight, term })),
        ...other.requiredAffinity.map((term) => ({ weight: 1, term })),
      ];
      for (const { weight, term } of theirs) {
        if (termMatches(term, info.pod, namespaceLabels)) add(node, term.topologyKey, weight);
      }
    }
  }
  if (byTopology.size === 0) return nodes.map(() => 0);
  const sums = nodes.map((node) =>
    Object.entries(node.labels).reduce((sum, [key, value]) => sum + (byTopology.get(`${key}\0${value}`) ?? 0), 0),
  );
  const least = Math.min(...sums);
  const range = Math.max(...sums) - least;
  return sums.map((sum) => (range === 0 ? 0 : (100 * (sum - least)) / range));
}

const MB = 1024 * 1024;
const IMAGE_LEAST = 23 * MB;
const IMAGE_MOST = 1000 * MB;

/** Prefers nodes that hold the pod's images already. */
function imageLocality({ pod }: PodInfo, nodes: readonly NodeInfo[]): number[] {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  return nodes.map(({ node }) => {
    let bytes = 0;
    for (const { image } of containers) {
      if (!image) continue;
      const name = image.includes("@") || /:[^/]+$/.test(image) ? image : `${image}:latest`;
      bytes += node?.status?.images?.find(({ names = [] }) => names.includes(name))?.sizeBytes ?? 0;
    }
    const most = IMAGE_MOST * containers.length;
    return (100 * (Math.min(Math.max(bytes, IMAGE_LEAST), most) - IMAGE_LEAST)) / (most - IMAGE_LEAST);
  });
}
