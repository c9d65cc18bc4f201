import type { HostPort, PodInfo } from "./pod-info.ts";
import { addResources, type Resources, readResources } from "./pod-resources.ts";
import type { Node } from "./types.ts";

/** A node with the pods that are, or are assumed to be, on it; sums are kept as pods come and go. */
export class NodeInfo {
  readonly name: string;
  node: Node | undefined;
  allocatable: Resources = new Map();
  readonly pods: Map<string, PodInfo> = new Map();
  readonly requested: Resources = new Map();
  readonly nonZero: { cpu: number; memory: number } = { cpu: 0, memory: 0 };
  /** Pods by the uid of their controller. */
  readonly owners: Map<string, number> = new Map();
  /** Pods with affinity terms of any kind, and those with required anti-affinity. */
  readonly withAffinity: Map<string, PodInfo> = new Map();
  readonly withAntiAffinity: Map<string, PodInfo> = new Map();

  constructor(name: string) {
    this.name = name;
  }

  setNode(node: Node | undefined): void {
    this.node = node;
    this.allocatable = readResources(node?.status?.allocatable);
  }

  get labels(): Readonly<Record<string, string>> {
    return this.node?.metadata.labels ?? {};
  }

  add(info: PodInfo): void {
    this.remove(info.uid);
    this.pods.set(info.uid, info);
    this.#count(info, 1);
    if (info.requiredAntiAffinity.length) this.withAntiAffinity.set(info.uid, info);
    if (info.requiredAffinity.length || info.preferredAffinity.length || info.preferredAntiAffinity.length) {
      this.withAffinity.set(info.uid, info);
    }
  }

  remove(uid: string): PodInfo | undefined {
    const info = this.pods.get(uid);
    if (!info) return undefined;
    this.pods.delete(uid);
    this.withAffinity.delete(uid);
    this.withAntiAffinity.delete(uid);
    this.#count(info, -1);
    return info;
  }

  portTaken(wanted: HostPort): boolean {
    for (const { hostPorts } of this.pods.values()) {
      for (const used of hostPorts) {
        if (used.port !== wanted.port || used.protocol !== wanted.protocol) continue;
        if (used.ip === wanted.ip || used.ip === "0.0.0.0" || wanted.ip === "0.0.0.0") return true;
      }
    }
    return false;
  }

  #count(info: PodInfo, sign: 1 | -1): void {
    addResources(this.requested, info.requests, sign);
    this.nonZero.cpu += sign * info.nonZero.cpu;
    this.nonZero.memory += sign * info.nonZero.memory;
    if (!info.owner) return;
    const count = (this.owners.get(info.owner) ?? 0) + sign;
    if (count > 0) this.owners.set(info.owner, count);
    else this.owners.delete(info.owner);
  }
}
