import { NodeInfo } from "./node-info.ts";
import { createPodInfo, type PodInfo } from "./pod-info.ts";
import type { Node, Pod } from "./types.ts";

/**
 * What is where: kept from the pods and nodes that informers show, plus the pods that this scheduler has assumed onto a
 * node and whose binding is under way. Nothing in it costs more as the number of pods grows.
 */
export interface ClusterState {
  readonly nodes: ReadonlyMap<string, NodeInfo>;
  /** Nodes whose object exists, in the order they came. */
  ready(): NodeInfo[];
  setNode(node: Node): void;
  removeNode(name: string): void;
  /** A pod that has a node and is not over; ends the assumption about it. */
  setPod(pod: Pod): void;
  removePod(uid: string): void;
  /** Counts a pod on a node before the API says so. */
  assume(info: PodInfo, node: string): void;
  /** Takes the assumption back: the binding failed. */
  forget(uid: string): void;
  readonly assumed: ReadonlySet<string>;
  /** True when some pod anywhere has required anti-affinity, or affinity of any kind. */
  readonly hasAntiAffinity: boolean;
}

export function createClusterState(): ClusterState {
  const nodes = new Map<string, NodeInfo>();
  const whereabouts = new Map<string, string>();
  const assumed = new Set<string>();
  let antiAffinity = 0;
  const infoOf = (name: string) => {
    let info = nodes.get(name);
    if (!info) {
      info = new NodeInfo(name);
      nodes.set(name, info);
    }
    return info;
  };
  const put = (info: PodInfo, name: string) => {
    take(info.uid);
    infoOf(name).add(info);
    whereabouts.set(info.uid, name);
    if (info.requiredAntiAffinity.length) antiAffinity++;
  };
  const take = (uid: string) => {
    const name = whereabouts.get(uid);
    if (name === undefined) return;
    whereabouts.delete(uid);
    const node = nodes.get(name);
    const info = node?.remove(uid);
    if (info?.requiredAntiAffinity.length) antiAffinity--;
    if (node && !node.node && node.pods.size === 0) nodes.delete(name);
  };
  return {
    nodes,
    assumed,
    get hasAntiAffinity() {
      return antiAffinity > 0;
    },
    ready: () => [...nodes.values()].filter(({ node }) => node !== undefined),
    setNode: (node) => infoOf(node.metadata.name).setNode(node),
    removeNode(name) {
      const info = nodes.get(name);
      info?.setNode(undefined);
      if (info?.pods.size === 0) nodes.delete(name);
    },
    setPod(pod) {
      const info = createPodInfo(pod);
      assumed.delete(info.uid);
      put(info, pod.spec.nodeName!);
    },
    removePod(uid) {
      assumed.delete(uid);
      take(uid);
    },
    assume(info, node) {
      put(info, node);
      assumed.add(info.uid);
    },
    forget(uid) {
      if (assumed.delete(uid)) take(uid);
    },
  };
}
