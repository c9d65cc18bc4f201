import { mkdirSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Clock, Logger, Random } from "#base";
import type { Client, Informers } from "#client";
import type { ContainerStatus, Engine } from "#engine";
import { type NodeConnector, resources } from "#kinds";
import {
  createConfigBuilder,
  createKubelet,
  createLogManager,
  createNodeConnector,
  createObjectCache,
  createVolumeManager,
  type Dial,
  type Kubelet,
  type NodeServices,
  type ReadLogOptions,
  readLog,
} from "#kubelet";

export interface NodeDeps {
  /** Acts as `system:node:<name>`. */
  readonly client: Client;
  readonly informers: Informers;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** How probes reach pods. Default: the network. */
  readonly dial?: Dial;
}

export interface NodeSettings {
  readonly nodeName: string;
  /** Pods' volumes and logs lie below it. */
  readonly dataDir: string;
  /** The node's InternalIP. */
  readonly nodeIP: string;
  readonly podCIDR: string;
  readonly clusterDNS: string;
}

/** One node: kubelet, volumes, configuration and connector on an engine. Disposing it leaves containers running. */
export interface RunningNode extends AsyncDisposable {
  readonly connector: NodeConnector;
  /** Resolves when the node is registered and its pods are being worked on. */
  readonly started: Promise<void>;
}

export function startNode(deps: NodeDeps, settings: NodeSettings): RunningNode {
  const { client, informers, engine, clock, random, logger } = deps;
  const root = join(settings.dataDir, "pods");
  const logsRoot = join(settings.dataDir, "logs");
  for (const dir of [root, logsRoot]) mkdirSync(dir, { recursive: true, mode: 0o711 });
  let kubelet: Kubelet | undefined;
  const services: NodeServices = {
    client,
    engine,
    clock,
    random,
    logger,
    services: informers.for(resources.services),
    node: () => kubelet?.node(),
  };
  const objects = createObjectCache({ client, clock, logger });
  const volumes = createVolumeManager(services, { root, objects });
  const configs = createConfigBuilder(
    { ...services, objects, volumes },
    {
      podsRoot: root,
      logsRoot,
      clusterDomain: "cluster.local",
      clusterDNS: [settings.clusterDNS],
      seccompRoot: join(settings.dataDir, "seccomp"),
      machine: { memoryBytes: totalmem() },
      apparmor: false,
    },
  );
  const running = createKubelet(
    { ...deps, volumes, configs },
    { nodeName: settings.nodeName, nodeIPs: [settings.nodeIP], podCIDR: settings.podCIDR, dataDir: settings.dataDir },
  );
  kubelet = running;
  const connector = createNodeConnector(
    { engine, runtime: running.runtime, clock, logger },
    { nodeName: settings.nodeName, configuration: configurationOf(settings) },
  );
  const logs = createLogManager({ engine, clock, logger }, { root: logsRoot });
  const started = running.start().then(() => logs.start());
  started.catch((error: unknown) => logger.error("the node did not start", { error }));
  return {
    connector,
    started,
    async [Symbol.asyncDispose]() {
      await running.stop();
      await logs[Symbol.asyncDispose]();
      await volumes[Symbol.asyncDispose]();
      await objects[Symbol.asyncDispose]();
    },
  };
}

/** What `configz` shows: the settings in force, in the words of KubeletConfiguration. */
function configurationOf({ clusterDNS, podCIDR }: NodeSettings): Record<string, unknown> {
  return {
    clusterDomain: "cluster.local",
    clusterDNS: [clusterDNS],
    podCIDR,
    maxPods: 110,
    containerLogMaxSize: "10Mi",
    containerLogMaxFiles: 5,
  };
}

/** A container's log as text, for `slim logs`. */
export function readContainerLog(
  { engine, clock }: { engine: Engine; clock: Clock },
  container: ContainerStatus,
  options: { follow: boolean; tail?: number; timestamps: boolean },
  signal: AbortSignal,
): Promise<Readable> {
  const read: ReadLogOptions = {
    follow: options.follow,
    timestamps: options.timestamps,
    ...(options.tail === undefined ? {} : { tailLines: options.tail }),
    signal,
    ended: () => engine.container(container.id)?.state !== "running",
    onEnded: (listener) => engine.onEvent((event) => event.containerId === container.id && listener()),
  };
  return readLog(container.config.logPath, read, { clock });
}
