import { join } from "node:path";
import type { Clock, Logger, Random } from "#base";
import type { Engine } from "#engine";
import { createFakeEngine, type FakeEngine, type FakeEngineOptions } from "#engine/fake";
import { type InstanceConfig, instanceIdOf } from "./config.ts";
import { type InstanceNetwork, nodeCIDR } from "./network.ts";

export interface EngineDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** Directory of a node's own things; the first node's is the instance's. */
export function nodeDir(dataDir: string, index: number): string {
  return index === 0 ? dataDir : join(dataDir, `node-${index + 1}`);
}

/** The native engine of the n-th node, from 0. Engines share nothing, so that each could be on a machine of its own. */
export async function openEngine(
  config: Omit<InstanceConfig, "kubeSocket">,
  index: number,
  network: InstanceNetwork,
  deps: EngineDeps,
): Promise<Engine> {
  const own = instanceIdOf(config.dataDir);
  const id = index === 0 ? own : `${own}${index + 1}`;
  // loaded where it is used: the fake engine is for hosts on which this one has no place
  const { createNativeEngine } = await import("#engine/native");
  return createNativeEngine(deps, {
    dataDir: join(nodeDir(config.dataDir, index), "engine"),
    runDir: join(config.runDir, index === 0 ? "e" : `e${index + 1}`),
    imagesDir: index === 0 ? config.imagesDir : join(nodeDir(config.dataDir, index), "images"),
    instanceId: id,
    podCIDR: nodeCIDR(network, index),
    clusterCIDR: network.clusterCIDR,
    hostAddress: network.hostAddress,
    // a letter behind the id keeps the first node's prefix from being the start of the others'
    interfacePrefix: `${own}${String.fromCharCode(97 + index)}`,
    cgroupParent: `/slim-${id}`,
    ...(config.runtime === undefined ? {} : { runtime: config.runtime }),
    ...(config.pauseBinary === undefined ? {} : { pauseBinary: config.pauseBinary }),
    ...(config.registryMirror === undefined ? {} : { registryMirror: config.registryMirror }),
    ...(config.cniConfDir === undefined ? {} : { cniConfDir: config.cniConfDir }),
  });
}

/** A fake engine for the n-th node, whose containers write their logs to files as real ones do. */
export function openFakeEngine(
  options: FakeEngineOptions,
  index: number,
  network: InstanceNetwork,
  deps: EngineDeps,
): FakeEngine {
  const prefix = nodeCIDR(network, index).replace(/\.0\/24$/, "");
  return createFakeEngine(deps, { network: prefix, logFiles: true, ...options });
}

/** All engines at once. When one can't be opened, the others are closed. */
export async function openAll<E extends AsyncDisposable>(opening: readonly Promise<E>[]): Promise<E[]> {
  const opened = await Promise.allSettled(opening);
  const failed = opened.find((one) => one.status === "rejected");
  if (!failed) return opened.map((one) => (one as PromiseFulfilledResult<E>).value);
  for (const one of opened) if (one.status === "fulfilled") await one.value[Symbol.asyncDispose]();
  throw failed.reason;
}
