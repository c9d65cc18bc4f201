import { join } from "node:path";
import { type Clock, type Logger, messageOf, type Random } from "#base";
import { EngineError } from "../errors.ts";
import type { Engine, EngineEvent } from "../port.ts";
import { adopt } from "./adopt.ts";
import { createCgroups } from "./cgroups.ts";
import type { Context, ImageRoots } from "./context.ts";
import { engineOver } from "./engine.ts";
import { watchExits } from "./exits.ts";
import { examineHost } from "./host.ts";
import { createImageStore } from "./images/store.ts";
import { createCNINetwork } from "./net/cni.ts";
import { createHostRules } from "./net/host-rules.ts";
import { createAddressPool } from "./net/ipam.ts";
import { createRoutedNetwork } from "./net/routed.ts";
import { pathsOf } from "./paths.ts";
import { type ContainerRecord, openRecords, type SandboxRecord } from "./records.ts";
import { sealCrun } from "./runtime.ts";
import { makePrivateDirectory } from "./sys/files.ts";
import { createLauncher } from "./sys/launcher.ts";
import { loadLibc } from "./sys/libc.ts";
import { createKeyedLock, createSemaphore } from "./sys/locks.ts";
import { probeMounter } from "./sys/mounter.ts";
import { createNamespaces } from "./sys/namespaces.ts";
import { bootId } from "./sys/process.ts";
import { createRun } from "./sys/run.ts";

export interface NativeEngineDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Default: the image store of this engine, below `imagesDir`. */
  readonly images?: ImageRoots;
}

export interface NativeEngineOptions {
  /** State of sandboxes and containers, writable layers. Must be on a file system that overlayfs accepts as upper layer. */
  readonly dataDir: string;
  /** Pinned namespaces, bundles, sockets: what lives no longer than this boot. Keep it short: sockets are below it. */
  readonly runDir: string;
  /** Default: `<dataDir>/images`. */
  readonly imagesDir?: string;
  /** Names the nftables table; letters, digits, `_`. Unique on the host. */
  readonly instanceId: string;
  /** IPv4 range of the pods, /8 to /29. */
  readonly podCIDR: string;
  /** Range of the pods of all nodes: traffic to it keeps its source address. Default: `podCIDR`. */
  readonly clusterCIDR?: string;
  /** Address of this host from which it reaches pods; absent: the kernel chooses, and may choose another instance's. */
  readonly hostAddress?: string;
  /** Begins the names of all veths, at most 9 characters. Unique on the host: `purge` removes what begins with it. */
  readonly interfacePrefix: string;
  /** Control group above all pods: `/slim-1a2b3c`. Unique on the host: `purge` removes it. */
  readonly cgroupParent: string;
  /** `crun`, `runc` or a path. Default: the first that works here. */
  readonly runtime?: string;
  /** Static program of the pause container. Default: catatonit of the host. */
  readonly pauseBinary?: string;
  readonly registryMirror?: string;
  /** False: works as if koffi were not installed, with slower, spawned programs. Default true. */
  readonly koffi?: boolean;
  /** A directory of CNI configurations, the first of which replaces the built-in pod network. */
  readonly cniConfDir?: string;
}

const VERSION = "0.1.0";
const PAUSE_IMAGE = "nebula/pause:slim";
/** Programs at work at once: on two processors four give the most pods a second; more only delay the event loop. */
const CONCURRENCY = 4;

/**
 * Opens the engine on its directories: examines the host, adopts what runs, removes what is half made. Disposing it leaves
 * everything running; `purge` leaves nothing.
 * @throws EngineError `unsupported` when the host lacks something, with the way out as hint
 */
export async function createNativeEngine(deps: NativeEngineDeps, options: NativeEngineOptions): Promise<Engine> {
  checkOptions(options);
  const logger = deps.logger.child({ part: "engine" });
  const libc = options.koffi === false ? undefined : await loadLibc();
  const run = createRun(deps.clock);
  const found = await examineHost({ run, libc }, options.runtime === undefined ? {} : { runtime: options.runtime });
  for (const directory of [options.dataDir, options.runDir]) makePrivateDirectory(directory);
  const crun = found.runtimes.get("crun");
  const sealed = crun === undefined ? [] : [["crun", sealCrun(libc, crun, join(options.runDir, "bin"))] as const];
  const host = { ...found, runtimes: new Map([...found.runtimes, ...sealed]) };
  await using unwinding = new AsyncDisposableStack();
  const images = deps.images ?? (await ownImages(deps, options, unwinding));
  const closed = new AbortController();
  const listeners = new Set<(event: EngineEvent) => void>();
  const namespaces = createNamespaces(libc, run);
  const paths = pathsOf(options);
  for (const root of paths.roots) makePrivateDirectory(root);
  const context: Context = {
    clock: deps.clock,
    random: deps.random,
    logger,
    libc,
    run,
    launcher: unwinding.use(createLauncher(libc)),
    host,
    namespaces,
    images,
    paths,
    cgroups: createCgroups(deps.clock, host.cgroups),
    mounter: await probeMounter(libc, run, options.dataDir),
    network: networkFor({ run, libc, namespaces }, host, options),
    cgroupParent: options.cgroupParent,
    pauseImage: PAUSE_IMAGE,
    bootId: bootId(),
    sandboxes: openRecords<SandboxRecord>(paths.sandboxRecords, logger),
    containers: openRecords<ContainerRecord>(paths.containerRecords, logger),
    sandboxLock: createKeyedLock(),
    gate: createSemaphore(CONCURRENCY),
    emit: (event) => tell(listeners, event, logger),
    closed: closed.signal,
  };
  const info = {
    name: "slim",
    version: VERSION,
    scheme: "slim",
    cgroupVersion: host.cgroups.version,
    runtimes: [...host.runtimes.keys()],
    notices: host.notices,
  };
  unwinding.use(watchExits(context));
  await adopt(context);
  await context.network.start();
  unwinding.defer(async () => {
    closed.abort();
    await context.sandboxLock.idle();
  });
  const closing = unwinding.move();
  return engineOver(context, info, listeners, () => closing.disposeAsync());
}

async function ownImages(
  deps: NativeEngineDeps,
  options: NativeEngineOptions,
  stack: AsyncDisposableStack,
): Promise<ImageRoots> {
  const { clock, random, logger } = deps;
  const store = await createImageStore(
    { clock, random, logger },
    {
      dir: options.imagesDir ?? join(options.dataDir, "images"),
      runDir: join(options.runDir, "images"),
      ...(options.registryMirror === undefined ? {} : { registryMirror: options.registryMirror }),
      ...(options.pauseBinary === undefined ? {} : { pauseBinary: options.pauseBinary }),
    },
  );
  return stack.use(store);
}

function networkFor(
  deps: Pick<Context, "run" | "libc" | "namespaces">,
  host: Context["host"],
  { instanceId, podCIDR, interfacePrefix, clusterCIDR, hostAddress, cniConfDir }: NativeEngineOptions,
): Context["network"] {
  if (cniConfDir !== undefined) return createCNINetwork(deps, { confDir: cniConfDir });
  const rules = createHostRules(
    { run: deps.run, nft: host.programs.nft },
    { table: `slim_${instanceId}_pods`, podCIDR, interfacePrefix, clusterCIDR: clusterCIDR ?? podCIDR },
  );
  return createRoutedNetwork(
    { ...deps, ip: host.programs.ip, pool: createAddressPool(podCIDR), rules },
    { interfacePrefix, mtu: host.uplinkMtu, hostAddress },
  );
}

/** One listener's fault must not keep the others, or the engine, from going on. */
function tell(listeners: ReadonlySet<(event: EngineEvent) => void>, event: EngineEvent, logger: Logger): void {
  for (const listener of listeners) {
    try {
      listener(event);
    } catch (error) {
      logger.error("a listener of engine events failed", { event: event.type, error: messageOf(error) });
    }
  }
}

function checkOptions({ instanceId, interfacePrefix, cgroupParent }: NativeEngineOptions): void {
  const bad = (name: string, value: string, rule: string) =>
    new EngineError("invalid-config", `${name} is ${JSON.stringify(value)}, but must be ${rule}`);
  if (!/^\w{1,32}$/.test(instanceId)) throw bad("instanceId", instanceId, "1 to 32 letters, digits or underscores");
  if (!/^\w[\w-]{0,8}$/.test(interfacePrefix))
    throw bad("interfacePrefix", interfacePrefix, "1 to 9 letters, digits, - or _");
  if (!/^(\/[\w.-]+)+$/.test(cgroupParent) || /\/\.\.?(\/|$)/.test(cgroupParent))
    throw bad("cgroupParent", cgroupParent, "an absolute path below the root group");
}
