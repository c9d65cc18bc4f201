import { readdir, rm } from "node:fs/promises";
import { CodedError, hasCode, silentLogger, systemClock, systemRandom } from "#base";
import { removeProxy } from "#proxy";
import type { InstanceConfig } from "./config.ts";
import { nodeDir, openEngine } from "./engines.ts";
import { holderOf, takeLock } from "./instance-lock.ts";
import { lockPathOf, removeWorkloads } from "./instance.ts";
import { keptNetwork, proxyPlace, removeHostAddress } from "./network.ts";

/** Time in which slimd may end in order, milliseconds. */
const PATIENCE = 15_000;

/** Ends the slimd of this instance, if it runs; workloads go on. @throws CodedError `stop-failed` */
export async function stopDaemon(config: InstanceConfig): Promise<void> {
  const holder = await holderOf(lockPathOf(config));
  if (!holder) return;
  signal(holder.pid, "SIGTERM");
  const deadline = systemClock.monotonic() + PATIENCE;
  while (await holderOf(lockPathOf(config))) {
    if (systemClock.monotonic() > deadline) {
      signal(holder.pid, "SIGKILL");
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if ((await holderOf(lockPathOf(config)))?.pid === holder.pid) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (await holderOf(lockPathOf(config))) throw new CodedError("stop-failed", `process ${holder.pid} does not end`);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}

/**
 * Removes everything that the instance made on the host, also after a crash: containers, mounts, interfaces, rules, control
 * groups, the address on `lo`. With `data` the data directory goes too; else objects and images stay for a next start.
 */
export async function purgeInstance(config: InstanceConfig, options: { data: boolean }): Promise<void> {
  const network = await keptNetwork(config.dataDir);
  if (network) {
    await using _lock = await takeLock(lockPathOf(config));
    for (const index of await nodesOf(config)) {
      await using engine = await openEngine(config, index, network, {
        clock: systemClock,
        random: systemRandom,
        logger: silentLogger,
      });
      await removeWorkloads(engine, nodeDir(config.dataDir, index));
    }
    await removeProxy(proxyPlace(config, network));
    await removeHostAddress(network.hostAddress);
  }
  await rm(config.runDir, { recursive: true, force: true });
  if (options.data) {
    await rm(config.imagesDir, { recursive: true, force: true });
    await rm(config.dataDir, { recursive: true, force: true });
  }
}

/** Indices of the nodes that ever ran here. */
async function nodesOf(config: InstanceConfig): Promise<number[]> {
  const names = await readdir(config.dataDir);
  const more = names.flatMap((name) => /^node-(\d+)$/.exec(name)?.[1] ?? []).map((text) => Number(text) - 1);
  return [0, ...more];
}
