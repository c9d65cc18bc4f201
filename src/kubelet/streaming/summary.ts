import { statfs } from "node:fs/promises";
import type { ConnectorDeps, ReadonlyPod } from "../ports.ts";
import { type ContainerUsage, containerUsage, type MachineUsage, machineUsage } from "./usage.ts";

/**
 * The `Summary` of the kubelet's stats API (v1alpha1): what node, pods and containers use. `brief`: CPU and memory only.
 *
 * Source: https://kubernetes.io/docs/reference/instrumentation/node-metrics/#summary-api-source
 */
export async function nodeSummary(
  deps: ConnectorDeps,
  nodeName: string,
  { brief }: { brief: boolean },
): Promise<Record<string, unknown>> {
  const time = new Date(deps.clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
  const [usage, machine, images, disk] = await Promise.all([
    containerUsage(deps),
    machineUsage(),
    deps.engine.images.usage(),
    brief ? undefined : statfs("/"),
  ]);
  const byPod = new Map<ReadonlyPod, ContainerUsage[]>(deps.runtime.pods().map((pod) => [pod, []]));
  for (const entry of usage) byPod.get(entry.pod)?.push(entry);
  const imageFs = {
    time,
    availableBytes: images.availableBytes,
    capacityBytes: images.capacityBytes,
    usedBytes: images.usedBytes,
  };
  return {
    node: {
      nodeName,
      startTime: new Date(machine.bootTime).toISOString().replace(/\.\d+Z$/, "Z"),
      cpu: { time, usageCoreNanoSeconds: machine.cpuNanoseconds },
      memory: machineMemory(time, machine),
      swap: {
        time,
        swapAvailableBytes: machine.swapFreeBytes,
        swapUsageBytes: machine.swapTotalBytes - machine.swapFreeBytes,
      },
      ...(brief ? {} : { network: network(time, machine) }),
      ...(disk
        ? {
            fs: {
              time,
              availableBytes: disk.bavail * disk.bsize,
              capacityBytes: disk.blocks * disk.bsize,
              usedBytes: (disk.blocks - disk.bfree) * disk.bsize,
              inodesFree: disk.ffree,
              inodes: disk.files,
              inodesUsed: disk.files - disk.ffree,
            },
            runtime: { imageFs, containerFs: imageFs },
          }
        : {}),
    },
    pods: [...byPod].flatMap(([pod, containers]) => (containers.length > 0 ? [podSummary(time, pod, containers)] : [])),
  };
}

function machineMemory(time: string, machine: MachineUsage): Record<string, unknown> {
  const used = machine.memoryTotalBytes - machine.memoryAvailableBytes;
  return { time, availableBytes: machine.memoryAvailableBytes, usageBytes: used, workingSetBytes: used };
}

function network(time: string, { interfaces }: MachineUsage): Record<string, unknown> {
  const main = interfaces.find(({ name }) => name.startsWith("e")) ?? interfaces[0];
  return { time, ...main, interfaces };
}

function podSummary(time: string, pod: ReadonlyPod, containers: readonly ContainerUsage[]): Record<string, unknown> {
  const sum = (of: (usage: ContainerUsage) => number) => containers.reduce((total, usage) => total + of(usage), 0);
  const { name, namespace, uid } = pod.metadata;
  return {
    podRef: { name, namespace, uid },
    startTime: pod.status?.startTime ?? time,
    containers: containers.map((usage) => containerSummary(time, usage)),
    cpu: { time, usageCoreNanoSeconds: sum(({ stats }) => stats.cpuUsageNanoseconds) },
    memory: {
      time,
      usageBytes: sum(({ stats }) => stats.memoryUsageBytes),
      workingSetBytes: sum(({ stats }) => stats.memoryWorkingSetBytes),
      rssBytes: sum(({ stats }) => stats.memoryRssBytes),
    },
    process_stats: { process_count: sum(({ stats }) => stats.pids) },
  };
}

function containerSummary(time: string, { container, name, stats }: ContainerUsage): Record<string, unknown> {
  return {
    name,
    startTime: new Date(container.startedAt ?? container.createdAt).toISOString().replace(/\.\d+Z$/, "Z"),
    cpu: { time, usageCoreNanoSeconds: stats.cpuUsageNanoseconds },
    memory: {
      time,
      usageBytes: stats.memoryUsageBytes,
      workingSetBytes: stats.memoryWorkingSetBytes,
      rssBytes: stats.memoryRssBytes,
    },
  };
}
