import { createReadStream, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { type Clock, CodedError, type Logger, type Random, silentLogger, systemClock, systemRandom } from "#base";
import {
  createClient,
  createHttpTransport,
  createInformers,
  hostTarget,
  type HttpTransport,
  type HttpTransportOptions,
  parseKubeconfig,
  targetOf,
  trusted,
} from "#client";
import type { FakeEngineOptions } from "#engine/fake";
import { isStatus, resources } from "#kinds";
import { type Instance, type InstanceSettings, startInstance } from "../instance.ts";
import type { Cluster, LoadedImage, Manifest } from "./cluster.ts";
import { createCluster } from "./create-cluster.ts";
import { createHold } from "./hold.ts";

/** What `startCluster` makes. All fields are optional; none: a native cluster in memory with the API on a free local port. */
export interface ClusterOptions {
  /**
   * Directory of the instance: database, keys, images, volumes, logs. It outlives the cluster and is found again by the next
   * start on it. Absent: all in memory, but for a temporary directory that goes with the cluster.
   */
  readonly dataDir?: string;
  /**
   * `native` (default) runs real containers; it needs Linux, root and the programs that `docs/operations.md` lists. `fake`
   * plays containers by scripts and needs neither.
   */
  readonly engine?: "native" | "fake";
  /** With the fake engine: what containers, pulls and sandboxes do. */
  readonly fake?: FakeEngineOptions;
  /** Where the API is served over TLS; `false`: nowhere. Default `{ host: "127.0.0.1", port: 0 }`, port 0 being a free one. */
  readonly listen?: false | { readonly host?: string; readonly port?: number };
  /** Unix socket or named pipe of the API besides; whoever can open it is admin. Default: none. */
  readonly socket?: string;
  /** Nodes in this process, 0 to 100. Default 1. */
  readonly nodes?: number;
  /** Name of the first node; further ones get a number. Default: `node` for fake, the host's name for native engines. */
  readonly nodeName?: string;
  /** Silent by default. */
  readonly logger?: Logger;
  /** Source of time for everything in the cluster. Default: the system's. */
  readonly clock?: Clock;
  readonly random?: Random;
  /** Archives (docker-archive or OCI layout) that are loaded before the start is over. */
  readonly images?: readonly string[];
  /** Applied before the start is over, in order; their readiness is not waited for. */
  readonly manifests?: readonly Manifest[];
  /** `http(s)://host[:port]` asked in place of every registry. */
  readonly registryMirror?: string;
  /** OCI runtime: `crun` or `runc`. Default: the first that works. */
  readonly runtime?: string;
  /** With `dataDir`: containers go on when the cluster is disposed, and are taken over by the next start. Default false. */
  readonly keepWorkloads?: boolean;
  /** The API's listener keeps the process alive, as a server of `node:http` does. Default false. */
  readonly keepProcess?: boolean;
  /**
   * Joins a cluster that runs elsewhere instead of starting one: by kubeconfig (its path or text, and a context of it), or by
   * the socket of a local instance, or by `tcp://host:port` and the token of one on another host. Disposing ends the view, not the cluster. Of the other fields only `manifests`, `images`,
   * `clock` and `logger` count.
   */
  readonly join?:
    | { readonly kubeconfig: string; readonly context?: string }
    | { readonly socket: string }
    | { readonly host: string; readonly token: string };
}

/**
 * Starts a cluster, or joins one. Resolves when the API serves, every node is registered, and pods can be created in the
 * namespace `default`. A start that fails takes back what it began.
 * @throws CodedError with `hint` for what a person can mend; StatusError of a manifest that is refused
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  return createHold().during(options.join ? joinCluster(options, options.join) : startOwn(options));
}

async function startOwn(options: ClusterOptions): Promise<Cluster> {
  checkOptions(options);
  const clock = options.clock ?? systemClock;
  await using begun = new AsyncDisposableStack();
  const dataDir = options.dataDir === undefined ? await temporaryDirectory(begun) : resolve(options.dataDir);
  const instance = await startInstance(settingsOf(options, dataDir), {
    logger: options.logger ?? silentLogger,
    clock,
    random: options.random ?? systemRandom,
  });
  begun.defer(() => instance.stop({ purge: options.keepWorkloads !== true }));
  instance.holdProcess(options.keepProcess === true);
  await Promise.all([instance.nodesStarted, untilPodsCanBeMade(instance)]);
  const running = begun.move();
  const cluster = createCluster({
    transport: instance.transport,
    client: instance.client,
    informers: instance.informers,
    clock,
    kubeconfig: instance.kubeconfig,
    server: instance.apiAddress,
    engines: instance.engines,
    fakeEngines: instance.fakeEngines,
    interval: 50,
    loadImage: (archive) => loadIntoAll(instance, archive),
    end: () => running.disposeAsync(),
  });
  return provision(cluster, options);
}

/** Loads and applies what the options name; a failure ends the cluster. */
async function provision(cluster: Cluster, { images = [], manifests = [] }: ClusterOptions): Promise<Cluster> {
  try {
    for (const image of images) await cluster.loadImage(image);
    for (const manifest of manifests) await cluster.apply(manifest);
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

function checkOptions({ engine, fake, keepWorkloads, dataDir }: ClusterOptions): void {
  if (engine !== undefined && engine !== "native" && engine !== "fake")
    throw new CodedError("invalid-option", `engine is "${engine}", but must be native or fake`);
  if (fake && engine !== "fake")
    throw new CodedError("invalid-option", "scripts of fake containers are given, but the engine is not fake", {
      hint: 'Set engine: "fake".',
    });
  if (keepWorkloads && dataDir === undefined)
    throw new CodedError(
      "invalid-option",
      "workloads can't be kept without a data directory: nothing could find them again",
      {
        hint: "Set dataDir.",
      },
    );
  if (engine !== "fake" && process.platform !== "linux")
    throw new CodedError("unsupported-platform", `the native engine needs Linux, and this is ${process.platform}`, {
      hint: 'Set engine: "fake", or join a cluster on a Linux host.',
    });
}

async function temporaryDirectory(begun: AsyncDisposableStack): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "slim-"));
  begun.defer(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function settingsOf(options: ClusterOptions, dataDir: string): InstanceSettings {
  const { nodes = 1, engine, fake = {}, socket, registryMirror, runtime } = options;
  const nodeName = options.nodeName ?? (engine === "fake" ? "node" : undefined);
  const { host = "127.0.0.1", port = 0 } = options.listen || {};
  return {
    dataDir,
    runDir: join(dataDir, "run"),
    imagesDir: join(dataDir, "images"),
    kubeApi: options.listen !== false,
    kubeApiAddress: { host, port },
    nodes,
    logLevel: "info",
    inMemory: options.dataDir === undefined,
    ...(engine === "fake" ? { fake } : {}),
    ...(socket === undefined ? {} : { kubeSocket: socket }),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(registryMirror === undefined ? {} : { registryMirror }),
    ...(runtime === undefined ? {} : { runtime }),
  };
}

/** A pod needs the ServiceAccount of its namespace, which a controller makes. */
async function untilPodsCanBeMade({ client }: Instance): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await client.get(resources.serviceAccounts, "default", { namespace: "default" });
      return;
    } catch (error) {
      if (!isStatus(error, "NotFound") || tries > 5000) throw error;
      // real time: the clock of the cluster may be one that only its owner moves
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}

async function loadIntoAll({ engines }: Instance, archive: string | Readable): Promise<readonly LoadedImage[]> {
  const all = [...engines.values()];
  if (typeof archive !== "string" && all.length > 1)
    throw new CodedError("invalid-option", "a stream can be loaded into one node only; give the path of the archive");
  const loaded = await Promise.all(all.map((engine) => engine.images.load(archive)));
  return loaded[0] ?? [];
}

async function joinCluster(options: ClusterOptions, join: NonNullable<ClusterOptions["join"]>): Promise<Cluster> {
  const clock = options.clock ?? systemClock;
  const { kubeconfig, target } = await targetOfJoin(join);
  const transport = createHttpTransport(target);
  const client = createClient(transport, { userAgent: "slim" });
  const informers = createInformers({
    client,
    clock,
    random: options.random ?? systemRandom,
    logger: options.logger ?? silentLogger,
  });
  const cluster = createCluster({
    transport,
    client,
    informers,
    clock,
    kubeconfig,
    server: target.server.startsWith("unix:") ? undefined : target.server,
    engines: new Map(),
    fakeEngines: new Map(),
    interval: 250,
    loadImage: (archive) => uploadImage(transport, archive),
    async end() {
      await informers[Symbol.asyncDispose]();
      transport.close();
    },
  });
  try {
    await client.request({ method: "GET", path: "/version" });
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
  return provision(cluster, options);
}

async function targetOfJoin(
  join: NonNullable<ClusterOptions["join"]>,
): Promise<{ kubeconfig: string | undefined; target: HttpTransportOptions }> {
  if ("socket" in join) return { kubeconfig: undefined, target: { server: `unix:${join.socket}` } };
  if ("kubeconfig" in join) return readTarget(join);
  const target = hostTarget({ SLIM_KUBE_TOKEN: join.token }, () => "", join.host);
  return { kubeconfig: undefined, target: await trusted(target) };
}

function readTarget({ kubeconfig, context }: { kubeconfig: string; context?: string }) {
  const isText = kubeconfig.includes("\n");
  const text = isText ? kubeconfig : readFileSync(kubeconfig, "utf8");
  const base = isText ? "." : dirname(resolve(kubeconfig));
  const config = parseKubeconfig(text, isText ? "the kubeconfig" : kubeconfig);
  return { kubeconfig: text, target: targetOf(config, (path) => readFileSync(resolve(base, path), "utf8"), context) };
}

async function uploadImage(transport: HttpTransport, archive: string | Readable): Promise<readonly LoadedImage[]> {
  const source = typeof archive === "string" ? createReadStream(archive) : archive;
  const answer = await transport.stream("POST", "/engine/v1/images/load", source);
  return (JSON.parse((await answer.toArray()).join("")) as { items: LoadedImage[] }).items;
}
