import type { DeepReadonly } from "#base";
import type { LinuxResources } from "#engine";
import type { Container, Pod } from "#kinds";
import { amount, containerAmounts, isSidecar, podAmounts } from "./pod-resources.ts";
import { isZero, milliValue, wholeValue } from "./quantity.ts";
import { qosClassOf } from "./qos.ts";

/** What the formulas need to know of the machine. */
export interface MachineFacts {
  /** Physical memory. */
  readonly memoryBytes: number;
  /** As the kernel's cgroup files name them: `2MB`, `1GB`. Default: none, and no limit is set. */
  readonly hugePageSizes?: readonly string[];
  /** Limit of processes of each pod; absent = none. */
  readonly podPidsLimit?: number;
}

const PERIOD = 100_000;
const MIN_QUOTA = 1000;
const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
const NODE_CRITICAL_PRIORITY = 2_000_001_000;

/** cpu.shares for a request in thousandths of a CPU. */
export const cpuShares = (milliCPU: number): number =>
  Math.min(MAX_SHARES, Math.max(MIN_SHARES, Math.floor((milliCPU * 1024) / 1000)));

/** Microseconds in each 100 ms for a limit in thousandths of a CPU; -1 (none) for no limit. */
export const cpuQuota = (milliCPU: number): number =>
  milliCPU === 0 ? -1 : Math.max(MIN_QUOTA, Math.floor((milliCPU * PERIOD) / 1000));

/**
 * cgroup settings of a container. A limit that it lacks is the pod's own, where `spec.resources` has one; a cpu request that
 * it lacks is its limit.
 *
 * Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#how-pods-with-resource-limits-are-run
 */
export function containerResources(
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
  machine: MachineFacts,
): LinuxResources {
  const { requests, limits } = container.resources ?? {};
  const podLimits = pod.spec?.resources?.limits;
  const cpuLimit = isZero(limits?.cpu) ? podLimits?.cpu : limits?.cpu;
  const memoryLimit = wholeValue(isZero(limits?.memory) ? podLimits?.memory : limits?.memory);
  return {
    cpuShares: cpuShares(milliValue(requests?.cpu ?? cpuLimit)),
    cpuQuota: cpuQuota(milliValue(cpuLimit)),
    cpuPeriod: PERIOD,
    ...(memoryLimit > 0 ? { memoryLimitBytes: memoryLimit } : {}),
    oomScoreAdj: oomScoreAdjust(pod, container, machine.memoryBytes),
    ...hugePages({ ...podLimits, ...limits }, machine),
  };
}

/**
 * cgroup settings of the pod as a whole: its requests; its limits, where every container has one.
 *
 * Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/, KEP-2837
 */
export function podCgroupResources(pod: DeepReadonly<Pod>, machine: MachineFacts): LinuxResources {
  const pids = machine.podPidsLimit === undefined ? {} : { pidsLimit: machine.podPidsLimit };
  const qos = qosClassOf(pod);
  if (qos === "BestEffort") return { cpuShares: MIN_SHARES, ...pids };
  const limits = podAmounts(pod, "limits");
  const declared = (name: string) => qos === "Guaranteed" || allLimited(pod, name);
  const memory = limits.get("memory") ?? 0;
  return {
    cpuShares: cpuShares(podAmounts(pod, "requests").get("cpu") ?? 0),
    ...(declared("cpu") ? { cpuQuota: cpuQuota(limits.get("cpu") ?? 0), cpuPeriod: PERIOD } : {}),
    ...(declared("memory") && memory > 0 ? { memoryLimitBytes: memory } : {}),
    ...hugePages(Object.fromEntries([...podAmounts(pod, "requests")].map(([name, n]) => [name, String(n)])), machine),
    ...pids,
  };
}

/** For something new: "no quota" is left out instead of being set, which some runtimes cannot do. */
export function withoutNoQuota(resources: LinuxResources): LinuxResources {
  if (resources.cpuQuota !== -1) return resources;
  const { cpuQuota: _quota, cpuPeriod: _period, ...rest } = resources;
  return rest;
}

function allLimited(pod: DeepReadonly<Pod>, name: string): boolean {
  if (!isZero(pod.spec?.resources?.limits?.[name])) return true;
  const all = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  return all.every((container) => !isZero(container.resources?.limits?.[name]));
}

/**
 * How readily the kernel kills the container's processes when memory runs out, -997…1000.
 *
 * Source: https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/#node-out-of-memory-behavior, KEP-2837, KEP-753
 */
export function oomScoreAdjust(
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
  memoryBytes: number,
): number {
  if ((pod.spec?.priority ?? 0) >= NODE_CRITICAL_PRIORITY) return -997;
  const qos = qosClassOf(pod);
  if (qos === "Guaranteed") return -997;
  if (qos === "BestEffort") return 1000;
  const share = unassignedMemory(pod);
  const score = (bytes: number) => 1000 - Math.trunc((1000 * (bytes + share)) / memoryBytes);
  let adjust = score(wholeValue(container.resources?.requests?.memory));
  if (isSidecar(container) && pod.spec?.initContainers?.some(({ name }) => name === container.name)) {
    const mains = (pod.spec.containers ?? []).map((main) => wholeValue(main.resources?.requests?.memory));
    // A sidecar must not be killed before the containers that it serves.
    adjust = Math.min(adjust, score(Math.min(...mains)));
  }
  if (adjust < 3) return 3;
  return adjust === 1000 ? 999 : adjust;
}

/** Each container's share of the pod-level memory request that no container asked for. */
function unassignedMemory(pod: DeepReadonly<Pod>): number {
  const total = pod.spec?.resources?.requests?.memory;
  if (isZero(total)) return 0;
  const count = (pod.spec?.containers ?? []).length + (pod.spec?.initContainers ?? []).length;
  return Math.trunc((wholeValue(total) - (containerAmounts(pod, "requests").get("memory") ?? 0)) / count);
}

/** A limit for every page size that the machine has; 0 where nothing was asked for. */
function hugePages(
  limits: Readonly<Record<string, string>>,
  machine: MachineFacts,
): { hugepageLimits?: readonly { pageSize: string; limit: number }[] } {
  const sizes = machine.hugePageSizes ?? [];
  if (sizes.length === 0) return {};
  const asked = new Map<number, number>();
  for (const [name, quantity] of Object.entries(limits)) {
    if (name.startsWith("hugepages-")) asked.set(wholeValue(name.slice("hugepages-".length)), amount(name, quantity));
  }
  return {
    hugepageLimits: sizes.map((pageSize) => ({
      pageSize,
      limit: asked.get(wholeValue(pageSize.replace(/B$/, "i"))) ?? 0,
    })),
  };
}
