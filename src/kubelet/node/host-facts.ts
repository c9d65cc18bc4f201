import { readFile, statfs } from "node:fs/promises";
import { arch, availableParallelism, platform, release, totalmem } from "node:os";
import type { NodeSystemInfo } from "#kinds";

/** What is told of the machine; read once. */
export interface HostFacts {
  readonly info: Omit<NodeSystemInfo, "kubeletVersion" | "containerRuntimeVersion" | "kubeProxyVersion">;
  /** `cpu`, `memory`, `ephemeral-storage`, as quantities. */
  readonly capacity: Readonly<Record<string, string>>;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

/** @param directory whose file system is the pods' scratch space */
export async function readHostFacts(directory: string): Promise<HostFacts> {
  const text = async (path: string) => (await readFile(path, "utf8").catch(() => "")).trim();
  const machineID = await text("/etc/machine-id");
  const product = await text("/sys/class/dmi/id/product_uuid");
  const system = await text("/etc/os-release");
  const pretty = /^PRETTY_NAME="?(.*?)"?$/m.exec(system)?.[1];
  const { bsize, blocks } = await statfs(directory);
  return {
    info: {
      architecture: ARCHITECTURES[arch()] ?? arch(),
      bootID: await text("/proc/sys/kernel/random/boot_id"),
      kernelVersion: release(),
      machineID,
      operatingSystem: "linux",
      osImage: pretty ?? `${platform()} ${release()}`,
      systemUUID: product || machineID,
    },
    capacity: {
      cpu: String(availableParallelism()),
      memory: `${Math.floor(totalmem() / 1024)}Ki`,
      "ephemeral-storage": `${Math.floor((bsize * blocks) / 1024)}Ki`,
    },
  };
}
