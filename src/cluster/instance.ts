import { mkdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Clock, type Logger, type Random, systemClock, systemRandom } from "#base";
import {
  ADMIN,
  componentUser,
  kubeconfig,
  LOOPBACK,
  type Listener,
  loadOrCreatePki,
  nodeUser,
  type Pki,
  serviceAccountUser,
  type TokenAuthenticator,
  writePrivateFile,
} from "#apiserver";
import { type Client, createRecorder, type Informers, type Transport } from "#client";
import { startControllers } from "#controllers";
import type { Engine } from "#engine";
import type { FakeEngine, FakeEngineOptions } from "#engine/fake";
import type { NodeConnector } from "#kinds";
import { startScheduler } from "#scheduler";
import type { Store } from "#store";
import { createMemoryStore } from "../store/memory/mod.ts";
import { bootstrapObjects } from "./bootstrap.ts";
import { createCertificateSigner } from "./certificate-signer.ts";
import type { InstanceConfig } from "./config.ts";
import { type ControlPlane, createControlPlane } from "./control-plane.ts";
import { nodeDir, openAll, openEngine, openFakeEngine } from "./engines.ts";
import { createHostTokens, readHostToken, renewHostToken } from "./host-token.ts";
import { createInstanceListener, listenForHosts, listenTcp } from "./instance-listener.ts";
import { takeLock } from "./instance-lock.ts";
import {
  chooseNetwork,
  FAKE_NETWORK,
  hostResolvers,
  type InstanceNetwork,
  nodeCIDR,
  proxyPlace,
  removeHostAddress,
  uplinkAddress,
} from "./network.ts";
import { startNode } from "./node.ts";

/** What an instance is made of. `slimd`'s configuration is one: durable, native, with a socket. */
export interface InstanceSettings extends Omit<InstanceConfig, "kubeSocket"> {
  /** Absent: no socket. */
  readonly kubeSocket?: string;
  /** Objects and keys in memory only. Default false: SQLite and files below `dataDir`. */
  readonly inMemory?: boolean;
  /** Fake engines with these scripts in place of native ones: no network, no DNS, no proxy; needs neither root nor Linux. */
  readonly fake?: FakeEngineOptions;
}

/** A running instance with everything in this process. */
export interface Instance {
  /** Text of the admin's kubeconfig; absent when the TCP listener is off. */
  readonly kubeconfig: string | undefined;
  /** `https://127.0.0.1:6443`; absent when the TCP listener is off. */
  readonly apiAddress: string | undefined;
  /** Calls as the cluster's admin, inside the process. */
  readonly transport: Transport;
  readonly client: Client;
  readonly informers: Informers;
  /** By node. */
  readonly engines: ReadonlyMap<string, Engine>;
  readonly fakeEngines: ReadonlyMap<string, FakeEngine>;
  /** Resolves when every node is registered and works on its pods. */
  readonly nodesStarted: Promise<unknown>;
  /** Keeps the process alive by the listeners (true), or not (false; the default for what is embedded). */
  holdProcess(hold: boolean): void;
  /**
   * Ends the process's part; workloads go on, unless `purge` asks to remove all that the instance made on the host:
   * containers, mounts, interfaces, rules, control groups. Objects in the data directory stay in any case.
   */
  stop(options?: { purge?: boolean }): Promise<void>;
}

export interface InstanceDeps {
  readonly logger: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Bearer tokens that are accepted besides those of ServiceAccounts. */
  readonly tokens?: readonly TokenAuthenticator[];
}

const CONTROLLER_MANAGER = "kube-controller-manager";

/** `<run>/slimd.pid` */
export function lockPathOf(config: Pick<InstanceConfig, "runDir">): string {
  return join(config.runDir, "slimd.pid");
}

interface Booting {
  readonly settings: InstanceSettings;
  readonly deps: Required<InstanceDeps>;
  readonly network: InstanceNetwork;
  /** The nodes' address. */
  readonly uplink: string;
  readonly nodes: readonly { readonly name: string; readonly engine: Engine; readonly fake?: FakeEngine }[];
  /** What was begun, to be undone in reverse. */
  readonly begun: AsyncDisposableStack;
  /** Whether what is undone takes the workloads with it. */
  readonly ending: { purge: boolean };
}

/**
 * Boots in the order: lock, addresses, store, keys, engines, API server, listeners, scheduler, controllers, DNS, proxy, nodes;
 * stops in reverse. A start that fails half-way takes back what it began.
 * @throws CodedError in words for a person
 */
export async function startInstance(settings: InstanceSettings, given: InstanceDeps): Promise<Instance> {
  const deps = { clock: systemClock, random: systemRandom, tokens: [], ...given };
  const { clock, logger } = deps;
  const begin = clock.monotonic();
  await using begun = new AsyncDisposableStack();
  // without a database nothing could ever take over the workloads
  const ending = { purge: settings.inMemory === true };
  await mkdir(settings.dataDir, { recursive: true, mode: 0o700 });
  begun.use(await takeLock(lockPathOf(settings)));
  const { network, uplink } = await takeAddresses(settings, begun, ending);
  const names = namesOfNodes(settings);
  const opening = openEngines(settings, names, network, deps);
  // looked at below, after what can be done meanwhile
  opening.catch(() => {});
  const store = begun.use(await openStore(settings));
  const pki = loadOrCreatePki(settings.inMemory ? undefined : join(settings.dataDir, "pki"), {
    // certificates are for programs outside, whose time is not ours to choose
    clock: systemClock,
    ips: [network.hostAddress, network.kubernetesServiceIP, uplink, settings.kubeApiAddress.host].filter(Boolean),
  });

  let address = `${network.hostAddress}:6443`;
  let bootstrapped = false;
  const connectors = new Map<string, NodeConnector>();
  const plane = createControlPlane(
    { ...deps, store },
    {
      serviceCIDR: network.serviceCIDR,
      serviceAccountKey: pki.serviceAccountKey,
      serverAddress: () => address,
      health: {
        ready: { "poststarthook/bootstrap-objects": () => (bootstrapped ? undefined : "not all are there yet") },
      },
      connector: (node) => connectors.get(node),
    },
  );
  const nodes = await opening;
  for (const { engine } of nodes) begun.use(engine);
  const boot: Booting = { settings, deps, network, uplink, nodes, begun, ending };
  const listener = begun.use(
    createInstanceListener(
      plane,
      { ...deps, tokens: tokensOf(settings, deps), engine: nodes[0]?.engine },
      settings,
      network,
    ),
  );
  const port = await listenTcp(listener, settings, settings.fake ? undefined : network.hostAddress, pki);
  if (port !== undefined) address = `${network.hostAddress}:${port}`;
  if (settings.hostAddress) {
    if (!readHostToken(settings.dataDir)) renewHostToken(settings.dataDir, pki.caCertificate);
    const bound = await listenForHosts(listener, settings.hostAddress, pki);
    logger.info("serving other hosts", { address: `tcp://${settings.hostAddress.host}:${bound}` });
  }
  if (settings.kubeSocket !== undefined) {
    await mkdir(settings.runDir, { recursive: true, mode: 0o711 });
    await listener.listenLocal(settings.kubeSocket, ADMIN);
  }
  const host = settings.kubeApiAddress.host || "127.0.0.1";
  const apiAddress = port === undefined ? undefined : `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const config = apiAddress && kubeconfig({ server: apiAddress, caCertificate: pki.caCertificate, user: pki.admin });
  if (config && !settings.inMemory) writePrivateFile(join(settings.dataDir, "kubeconfig"), config);

  await bootstrapObjects(plane, network, port ?? 6443);
  bootstrapped = true;
  const informers = begun.use(plane.informersOf(plane.clientAs(componentUser(CONTROLLER_MANAGER), CONTROLLER_MANAGER)));
  startControl(boot, plane, informers, pki);
  if (!settings.fake && nodes.length > 0) await startNetwork(boot, informers);
  const nodesStarted = Promise.all(startNodes(boot, plane, connectors));
  nodesStarted.catch(() => {}); // told by whoever waits for it, and logged
  logger.info("started", { milliseconds: Math.round(clock.monotonic() - begin), nodes: names.join() });
  return runningInstance(boot, plane, listener, { config, apiAddress, nodesStarted });
}

function runningInstance(
  { nodes, begun, ending }: Booting,
  plane: ControlPlane,
  listener: Listener,
  told: { config: string | undefined; apiAddress: string | undefined; nodesStarted: Promise<unknown> },
): Instance {
  const running = begun.move();
  const client = plane.clientAs(ADMIN, "slim");
  return {
    kubeconfig: told.config,
    apiAddress: told.apiAddress,
    transport: plane.transportAs(ADMIN),
    client,
    informers: running.use(plane.informersOf(client)),
    engines: new Map(nodes.map(({ name, engine }) => [name, engine])),
    fakeEngines: new Map(nodes.flatMap(({ name, fake }) => (fake ? [[name, fake] as const] : []))),
    nodesStarted: told.nodesStarted,
    holdProcess: (hold) => listener.holdProcess(hold),
    async stop(options) {
      ending.purge ||= options?.purge === true;
      await running.disposeAsync();
    },
  };
}

/** The token of other hosts counts only where they are served. */
function tokensOf(settings: InstanceSettings, { tokens }: Required<InstanceDeps>): readonly TokenAuthenticator[] {
  return settings.hostAddress ? [...tokens, createHostTokens(settings.dataDir)] : tokens;
}

/** The addresses of the instance; those of a fake one exist nowhere, so that all may have the same. */
async function takeAddresses(
  settings: InstanceSettings,
  begun: AsyncDisposableStack,
  ending: Booting["ending"],
): Promise<{ network: InstanceNetwork; uplink: string }> {
  if (settings.fake) return { network: FAKE_NETWORK, uplink: FAKE_NETWORK.hostAddress };
  const [network, outside] = await Promise.all([chooseNetwork(settings.dataDir), uplinkAddress()]);
  const uplink = outside ?? network.hostAddress;
  begun.defer(async () => {
    if (ending.purge) await removeHostAddress(network.hostAddress);
  });
  return { network, uplink };
}

async function openStore(settings: InstanceSettings): Promise<Store> {
  if (settings.inMemory) return createMemoryStore();
  const { createSqliteStore } = await import("../store/sqlite/mod.ts");
  return createSqliteStore(join(settings.dataDir, "slim.db"));
}

async function openEngines(
  settings: InstanceSettings,
  names: readonly string[],
  network: InstanceNetwork,
  deps: Required<InstanceDeps>,
): Promise<Booting["nodes"]> {
  const { fake } = settings;
  if (fake)
    return names.map((name, index) => {
      const engine = openFakeEngine(fake, index, network, deps);
      return { name, engine, fake: engine };
    });
  const engines = await openAll(names.map((_, index) => openEngine(settings, index, network, deps)));
  return names.map((name, index) => ({ name, engine: engines[index]! }));
}

/** Name of the host, or the one that is set; further nodes get a number. Node names are DNS names. */
function namesOfNodes(settings: InstanceSettings): string[] {
  const base =
    (settings.nodeName ?? hostname())
      .toLowerCase()
      .replace(/[^a-z0-9.-]/g, "-")
      .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "") || "slim";
  return Array.from({ length: settings.nodes }, (_, i) => (i === 0 ? base : `${base}-${i + 1}`));
}

/** Each controller acts as its own ServiceAccount in kube-system, as with `--use-service-account-credentials`. */
function startControl({ settings, deps, begun }: Booting, plane: ControlPlane, informers: Informers, pki: Pki): void {
  const scheduler = plane.clientAs(componentUser("kube-scheduler"), "kube-scheduler");
  begun.use(startScheduler({ ...deps, client: scheduler, informers }));
  const acting = (client: Client) => ({
    client,
    recorder: (component: string) => createRecorder({ ...deps, client }, { component }),
  });
  begun.use(
    startControllers(
      { ...deps, ...acting(plane.clientAs(LOOPBACK, CONTROLLER_MANAGER)), informers },
      {
        rootCA: pki.caCertificate,
        signToken: plane.tokens.legacyToken,
        // certificates are for programs outside, whose time is not ours to choose
        certificates: createCertificateSigner({ clock: systemClock }, pki.ca),
        identity: (account) => acting(plane.clientAs(serviceAccountUser("kube-system", account), CONTROLLER_MANAGER)),
        localPath: {
          root: join(settings.dataDir, "local-path"),
          removeDirectory: (path) => rm(path, { recursive: true, force: true }),
        },
      },
    ),
  );
}

/** Cluster DNS and Services, on the addresses of the instance. */
async function startNetwork({ settings, deps, network, nodes, begun, ending }: Booting, informers: Informers) {
  const [{ startDns }, { removeProxy, startProxy }] = await Promise.all([import("#dns"), import("#proxy")]);
  const { clock, logger } = deps;
  begun.use(
    await startDns(
      { informers, clock, logger: logger.child({ part: "dns" }) },
      { address: network.hostAddress, upstream: await hostResolvers(network.dnsServiceIP) },
    ),
  );
  const place = proxyPlace(settings, network);
  begun.defer(async () => {
    if (ending.purge) await removeProxy(place);
  });
  begun.use(
    startProxy(
      { informers, clock, logger: logger.child({ part: "proxy" }) },
      { ...place, nodes: nodes.map((node) => node.name) },
    ),
  );
}

function startNodes(
  { settings, deps, network, uplink, nodes, begun, ending }: Booting,
  plane: ControlPlane,
  connectors: Map<string, NodeConnector>,
): Promise<void>[] {
  return nodes.map(({ name, engine, fake }, index) => {
    const client = plane.clientAs(nodeUser(name), "kubelet");
    const dataDir = nodeDir(settings.dataDir, index);
    begun.defer(async () => {
      if (ending.purge) await removeWorkloads(engine, dataDir);
    });
    const node = begun.use(
      startNode(
        {
          ...deps,
          client,
          informers: begun.use(plane.informersOf(client)),
          engine,
          logger: deps.logger.child({ node: name }),
          ...(fake ? { dial: (host, port) => fake.dial(host, port) } : {}),
        },
        {
          nodeName: name,
          dataDir,
          nodeIP: uplink,
          podCIDR: nodeCIDR(network, index),
          clusterDNS: network.dnsServiceIP,
        },
      ),
    );
    connectors.set(name, node.connector);
    return node.started;
  });
}

/** Containers and all that belongs to them, and the volumes, which are the kubelet's. */
export async function removeWorkloads(engine: Engine, dataDir: string): Promise<void> {
  await engine.purge();
  const pods = join(dataDir, "pods");
  // file systems in memory are still mounted below the pods' directories
  await engine.mounts.unmount(pods);
  await rm(pods, { recursive: true, force: true });
}
