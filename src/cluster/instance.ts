import { mkdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Clock, CodedError, hasCode, type Logger, type Random, systemClock, systemRandom } from "#base";
import {
  ADMIN,
  createIdentify,
  createListener,
  createStreaming,
  type Listener,
  LOOPBACK,
  loadOrCreatePki,
  nodeUser,
  type Pki,
  writeKubeconfig,
} from "#apiserver";
import { createRecorder } from "#client";
import { startDns } from "#dns";
import { startControllers } from "#controllers";
import type { Engine } from "#engine";
import type { NodeConnector } from "#kinds";
import { startProxy } from "#proxy";
import { startScheduler } from "#scheduler";
import { createSqliteStore } from "../store/sqlite/mod.ts";
import { bootstrapObjects } from "./bootstrap.ts";
import type { InstanceConfig } from "./config.ts";
import { type ControlPlane, createControlPlane } from "./control-plane.ts";
import { createEngineApi } from "./engine-api.ts";
import { nodeDir, openEngine } from "./engines.ts";
import { takeLock } from "./instance-lock.ts";
import { chooseNetwork, proxyPlace, type InstanceNetwork, hostResolvers, nodeCIDR, uplinkAddress } from "./network.ts";
import { readContainerLog, startNode } from "./node.ts";

/** A running instance with everything in this process: what `slimd` runs. */
export interface Instance {
  readonly kubeconfigPath: string;
  /** `https://127.0.0.1:6443`; absent when the TCP listener is off. */
  readonly apiAddress: string | undefined;
  /** Ends the process's part; workloads go on. */
  stop(): Promise<void>;
}

export interface InstanceDeps {
  readonly logger: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** `<run>/slimd.pid` */
export function lockPathOf(config: Pick<InstanceConfig, "runDir">): string {
  return join(config.runDir, "slimd.pid");
}

/**
 * Boots in the order: lock, addresses, store, keys, API server, listeners, engine, kubelet, scheduler, controllers; stops in
 * reverse. A start that fails half-way takes back what it began.
 * @throws CodedError in words for a person
 */
export async function startInstance(config: InstanceConfig, deps: InstanceDeps): Promise<Instance> {
  const clock = deps.clock ?? systemClock;
  const random = deps.random ?? systemRandom;
  const { logger } = deps;
  const begin = clock.monotonic();
  await using unwinding = new AsyncDisposableStack();
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
  unwinding.use(await takeLock(lockPathOf(config)));
  const [network, uplink] = await Promise.all([chooseNetwork(config.dataDir), uplinkAddress()]);
  const nodeNames = namesOfNodes(config);
  const opening = openEngines(config, nodeNames, network, { clock, random, logger });
  // looked at below, after what can be done meanwhile
  opening.catch(() => {});
  const store = unwinding.use(await createSqliteStore(join(config.dataDir, "slim.db")));
  const pki = loadOrCreatePki(join(config.dataDir, "pki"), {
    clock,
    ips: [network.hostAddress, network.kubernetesServiceIP, uplink, config.kubeApiAddress.host].filter(Boolean),
  });

  let address = `${network.hostAddress}:6443`;
  const connectors = new Map<string, NodeConnector>();
  const plane = createControlPlane(
    { store, clock, random, logger },
    {
      serviceCIDR: network.serviceCIDR,
      serviceAccountKey: pki.serviceAccountKey,
      serverAddress: () => address,
      health: {},
      connector: (node) => connectors.get(node),
    },
  );
  const engines = await opening;
  for (const engine of engines.values()) unwinding.use(engine);
  const listener = unwinding.use(
    createInstanceListener(plane, { clock, logger, engine: [...engines.values()][0], config, network }),
  );
  const port = await listen(listener, config, network, pki);
  if (port !== undefined) address = `${network.hostAddress}:${port}`;
  await mkdir(config.runDir, { recursive: true, mode: 0o711 });
  await listener.listenLocal(config.kubeSocket, ADMIN);

  const loopback = plane.clientAs(LOOPBACK, "slim");
  await bootstrapObjects(loopback, network, port ?? 6443);
  const informers = unwinding.use(plane.informersOf(loopback));
  const recorder = (component: string) => createRecorder({ client: loopback, clock, logger }, { component });
  unwinding.use(startScheduler({ client: loopback, informers, clock, random, logger }));
  unwinding.use(
    startControllers(
      { client: loopback, informers, clock, random, logger, recorder },
      {
        rootCA: pki.caCertificate,
        localPath: {
          root: join(config.dataDir, "local-path"),
          removeDirectory: (path) => rm(path, { recursive: true, force: true }),
        },
      },
    ),
  );
  const kubeconfigPath = join(config.dataDir, "kubeconfig");
  const apiAddress =
    port === undefined ? undefined : `https://${bracketed(config.kubeApiAddress.host || "127.0.0.1")}:${port}`;
  if (apiAddress)
    writeKubeconfig(kubeconfigPath, { server: apiAddress, caCertificate: pki.caCertificate, user: pki.admin });
  if (engines.size > 0) {
    unwinding.use(
      await startDns(
        { informers, clock, logger: logger.child({ part: "dns" }) },
        { address: network.hostAddress, upstream: await hostResolvers(network.dnsServiceIP) },
      ),
    );
  }
  if (engines.size > 0)
    unwinding.use(
      startProxy(
        { informers, clock, logger: logger.child({ part: "proxy" }) },
        { ...proxyPlace(config, network), nodes: nodeNames },
      ),
    );
  for (const [index, [nodeName, engine]] of [...engines].entries()) {
    const client = plane.clientAs({ ...nodeUser(nodeName), groups: LOOPBACK.groups }, "kubelet");
    const node = unwinding.use(
      startNode(
        {
          client,
          informers: unwinding.use(plane.informersOf(client)),
          engine,
          clock,
          random,
          logger: logger.child({ node: nodeName }),
        },
        {
          nodeName,
          dataDir: nodeDir(config.dataDir, index),
          nodeIP: uplink,
          podCIDR: nodeCIDR(network, index),
          clusterDNS: network.dnsServiceIP,
        },
      ),
    );
    connectors.set(nodeName, node.connector);
  }
  logger.info("started", { milliseconds: Math.round(clock.monotonic() - begin), nodes: nodeNames.join() });
  const running = unwinding.move();
  return { kubeconfigPath, apiAddress, stop: () => running.disposeAsync() };
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** Name of the host, or the one that is set; further nodes get a number. Node names are DNS names. */
function namesOfNodes(config: InstanceConfig): string[] {
  const base =
    (config.nodeName ?? hostname())
      .toLowerCase()
      .replace(/[^a-z0-9.-]/g, "-")
      .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "") || "slim";
  return Array.from({ length: config.nodes }, (_, i) => (i === 0 ? base : `${base}-${i + 1}`));
}

/** All engines at once. When one can't be opened, the others are closed. */
async function openEngines(
  config: InstanceConfig,
  names: readonly string[],
  network: InstanceNetwork,
  deps: { clock: Clock; random: Random; logger: Logger },
): Promise<Map<string, Engine>> {
  const opened = await Promise.allSettled(names.map((_, index) => openEngine(config, index, network, deps)));
  const failed = opened.find((one) => one.status === "rejected");
  if (!failed) return new Map(names.map((name, i) => [name, (opened[i] as PromiseFulfilledResult<Engine>).value]));
  for (const one of opened) if (one.status === "fulfilled") await one.value[Symbol.asyncDispose]();
  throw failed.reason;
}

function createInstanceListener(
  plane: ControlPlane,
  {
    clock,
    logger,
    engine,
    config,
    network,
  }: { clock: Clock; logger: Logger; engine: Engine | undefined; config: InstanceConfig; network: InstanceNetwork },
): Listener {
  const started = clock.now();
  const engineApi =
    engine &&
    createEngineApi({
      engine,
      logger,
      info: () => ({
        pid: process.pid,
        startedAt: new Date(started).toISOString(),
        memoryMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
        network,
        version: "v1.36.3+slim",
        api: config.kubeApi ? `${config.kubeApiAddress.host}:${config.kubeApiAddress.port}` : "off",
      }),
      readLog: (container, options, signal) => readContainerLog({ engine, clock }, container, options, signal),
    });
  return createListener({
    clock,
    logger: logger.child({ part: "listener" }),
    handle: (request) => plane.server.handle(request),
    upgrade: createStreaming({ logger: logger.child({ part: "streaming" }), clock }),
    identify: createIdentify({ tokens: [plane.tokens.authenticator], authorizer: plane.authorizer }),
    ...(engineApi ? { raw: { prefix: "/engine/v1/", handle: engineApi } } : {}),
  });
}

/** The TCP listeners: where the user wants it, and at the host's address in the pod network, for pods. Gives the port. */
async function listen(
  listener: Listener,
  config: InstanceConfig,
  network: InstanceNetwork,
  pki: Pki,
): Promise<number | undefined> {
  if (!config.kubeApi) return undefined;
  const { host, port } = config.kubeApiAddress;
  const tls = { cert: pki.serving.cert, key: pki.serving.key, clientCa: pki.caCertificate };
  try {
    const bound = await listener.listenTls({ host: host || "0.0.0.0", port, ...tls });
    if (host !== "" && host !== "0.0.0.0" && host !== "::")
      await listener.listenTls({ host: network.hostAddress, port: bound.port, ...tls });
    return bound.port;
  } catch (cause) {
    if (!hasCode(cause, "EADDRINUSE", "EADDRNOTAVAIL", "EACCES")) throw cause;
    const why = hasCode(cause, "EADDRINUSE") ? "another program listens there" : (cause as Error).message;
    throw new CodedError("address-unavailable", `the API can't be served at ${host}:${port}: ${why}`, {
      cause,
      hint: "Choose another address with SLIM_KUBE_API_ADDR (port 0 takes a free one).",
    });
  }
}
