import { join } from "node:path";
import type { Clock, Logger, Random } from "#base";
import type { Engine } from "#engine";
import { createNativeEngine } from "#engine/native";
import { type InstanceConfig, instanceIdOf } from "./config.ts";
import { type InstanceNetwork, nodeCIDR } from "./network.ts";

/** Directory of a node's own things; the first node's is the instance's. */
export function nodeDir(dataDir: string, index: number): string {
  return index === 0 ? dataDir : join(dataDir, `node-${index + 1}`);
}

/** The native engine of the n-th node, from 0. Engines share nothing, so that each could be on a machine of its own. */
export function openEngine(
  config: InstanceConfig,
  index: number,
  network: InstanceNetwork,
  deps: { clock: Clock; random: Random; logger: Logger },
): Promise<Engine> {
  const own = instanceIdOf(config.dataDir);
  const id = index === 0 ? own : `${own}${index + 1}`;
  return createNativeEngine(deps, {
    dataDir: join(nodeDir(config.dataDir, index), "engine"),
    runDir: join(config.runDir, index === 0 ? "e" : `e${index + 1}`),
    imagesDir: index === 0 ? config.imagesDir : join(nodeDir(config.dataDir, index), "images"),
    instanceId: id,
    podCIDR: nodeCIDR(network, index),
    // a letter behind the id keeps the first node's prefix from being the start of the others'
    interfacePrefix: `${own}${String.fromCharCode(97 + index)}`,
    cgroupParent: `/slim-${id}`,
    ...(config.runtime === undefined ? {} : { runtime: config.runtime }),
    ...(config.pauseBinary === undefined ? {} : { pauseBinary: config.pauseBinary }),
    ...(config.registryMirror === undefined ? {} : { registryMirror: config.registryMirror }),
    ...(config.cniConfDir === undefined ? {} : { cniConfDir: config.cniConfDir }),
  });
}
