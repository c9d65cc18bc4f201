import { readFile } from "node:fs/promises";
import { hasCode } from "#base";
import type { ContainerStats, ContainerStatus } from "#engine";
import { LABEL } from "../container-config/labels.ts";
import type { ConnectorDeps, ReadonlyPod } from "../ports.ts";

/** What one running container uses now. */
export interface ContainerUsage {
  readonly pod: ReadonlyPod;
  readonly container: ContainerStatus;
  readonly name: string;
  readonly stats: ContainerStats;
}

/** Usage of all running containers of the pods on this node. One that ends meanwhile is left out. */
export async function containerUsage({ engine, runtime }: ConnectorDeps): Promise<ContainerUsage[]> {
  const pods = new Map(runtime.pods().map((pod) => [pod.metadata.uid ?? "", pod]));
  const wanted = engine.containers().flatMap((container) => {
    const pod = pods.get(container.config.labels[LABEL.podUid] ?? "");
    const name = container.config.labels[LABEL.containerName];
    return pod && name && container.state === "running" ? [{ pod, container, name }] : [];
  });
  const results = await Promise.allSettled(
    wanted.map(async (entry) => ({ ...entry, stats: await engine.stats(entry.container.id) })),
  );
  return results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
}

/** The machine's own usage, from /proc; zeros where there is no such thing. */
export interface MachineUsage {
  readonly cpuNanoseconds: number;
  readonly memoryTotalBytes: number;
  readonly memoryAvailableBytes: number;
  readonly swapTotalBytes: number;
  readonly swapFreeBytes: number;
  readonly bootTime: number;
  readonly interfaces: readonly NetworkUsage[];
}

export interface NetworkUsage {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxErrors: number;
  readonly txBytes: number;
  readonly txErrors: number;
}

/** Jiffies of /proc/stat are hundredths of a second on every Linux that Node runs on. */
const NANOSECONDS_PER_JIFFY = 10_000_000;

export async function machineUsage(): Promise<MachineUsage> {
  const [stat, memory, network] = await Promise.all(["/proc/stat", "/proc/meminfo", "/proc/net/dev"].map(readOrEmpty));
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] =
    /^cpu\s+(.*)$/m
      .exec(stat ?? "")?.[1]
      ?.split(/\s+/)
      .map(Number) ?? [];
  const kilobytes = (name: string) =>
    1024 * Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(memory ?? "")?.[1] ?? 0);
  return {
    cpuNanoseconds: (user + nice + system + irq + softirq) * NANOSECONDS_PER_JIFFY,
    memoryTotalBytes: kilobytes("MemTotal"),
    memoryAvailableBytes: kilobytes("MemAvailable"),
    swapTotalBytes: kilobytes("SwapTotal"),
    swapFreeBytes: kilobytes("SwapFree"),
    bootTime: 1000 * Number(/^btime (\d+)$/m.exec(stat ?? "")?.[1] ?? 0),
    interfaces: parseNetDev(network ?? ""),
  };
}

export function parseNetDev(text: string): NetworkUsage[] {
  return text.split("\n").flatMap((line) => {
    const match = /^\s*([^:\s]+):\s*(.*)$/.exec(line);
    if (!match || match[1] === "lo") return [];
    const numbers = (match[2] ?? "").split(/\s+/).map(Number);
    return [
      {
        name: match[1] ?? "",
        rxBytes: numbers[0] ?? 0,
        rxErrors: numbers[2] ?? 0,
        txBytes: numbers[8] ?? 0,
        txErrors: numbers[10] ?? 0,
      },
    ];
  });
}

async function readOrEmpty(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT", "EACCES")) return "";
    throw error;
  }
}
