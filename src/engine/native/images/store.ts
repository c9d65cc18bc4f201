import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { type Clock, hasCode, type Logger, messageOf, type Random } from "#base";
import { EngineError } from "../../errors.ts";
import type { ImageConfig, Images, ImageStatus } from "../../port.ts";
import { openArchive } from "./archive.ts";
import {
  BUSYBOX_PLACES,
  type Builtin,
  builtinDocument,
  busyboxImage,
  findProgram,
  PAUSE_PLACES,
  pauseImage,
} from "./builtins.ts";
import { digestHex, type ImageDocument, parseImageDocument, sha256 } from "./documents.ts";
import { type ImagePlan, readImagePlans } from "./image-plans.ts";
import { createInodes } from "./inodes.ts";
import { chainId, createLayers, type StoredLayer } from "./layers.ts";
import { parsePlatform } from "./platform.ts";
import { createPuller } from "./pull.ts";
import { type ImageRecord, openRecords } from "./records.ts";
import { formatReference, parseImageId, parseReference, type Reference } from "./reference.ts";
import { diskOf, spaceFor } from "./space.ts";

export interface ImageStoreDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface ImageStoreOptions {
  /** Images live here and survive: `layers/`, `blobs/`, `images/`, and `tmp/`, which a start empties. */
  readonly dir: string;
  /** For secrets of a pull while it runs; best on a tmpfs. */
  readonly runDir: string;
  /** Registry that answers for docker.io and, where it can, all others: `http://127.0.0.1:5000`. */
  readonly registryMirror?: string;
  /** Static program that waits for ever as PID 1. Default: catatonit, if the host has it; without one no pause image. */
  readonly pauseBinary?: string;
  /** Static busybox for `slim/busybox:latest`. Default: /bin/busybox, if it is there; `false` for none. */
  readonly busybox?: string | false;
  /** Variables such as HTTPS_PROXY and NO_PROXY, for pulls. Default: none. */
  readonly proxies?: Readonly<Record<string, string>>;
  /** `linux/arm64`; default: this machine. */
  readonly platform?: string;
}

/** The image store of the native engine. */
export interface ImageStore extends Images, AsyncDisposable {
  /**
   * Root of an image: directories for overlayfs' `lowerdir`, lowest first, and its config. Also marks it as used now.
   * @throws EngineError `image-not-found`
   */
  rootfs(image: string): { readonly layers: readonly string[]; readonly config: ImageConfig };
  /** Marks the image as in use by `holder` (a container's id): it is then neither removed nor pruned. Not kept over a restart. */
  hold(image: string, holder: string): void;
  release(holder: string): void;
}

/** Opens the store, removes what a crash left half done, and registers the built-in images. */
export async function createImageStore(deps: ImageStoreDeps, options: ImageStoreOptions): Promise<ImageStore> {
  const { clock } = deps;
  const logger = deps.logger.child({ part: "images" });
  const { dir } = options;
  const platform = parsePlatform(options.platform);
  mkdirSync(join(dir, "blobs", "sha256"), { recursive: true, mode: 0o700 });
  const layers = createLayers(dir, await createInodes());
  const records = openRecords(join(dir, "images"), logger);
  const holders = new Map<string, string>();
  const blobPath = (digest: string) => join(dir, "blobs", "sha256", digestHex(digest));

  const neededLayers = () => new Set(records.all().flatMap((record) => record.layers.map(({ key }) => key)));
  const isHeld = (id: string) => [...holders.values()].includes(id);
  const status = (record: ImageRecord): ImageStatus => toStatus(record);
  const find = (text: string) => findRecord(records.all(), text);
  const demand = (text: string): ImageRecord => {
    const record = find(text);
    if (record) return record;
    throw new EngineError("image-not-found", `no image ${text} in the store`, {
      hint: `Load or pull it: slim image pull ${text}`,
    });
  };

  /** Layers in order: those that do not describe all of their directories need the ones below. */
  async function acquireAll(
    plan: { sources: readonly LayerInput[] },
    signal?: AbortSignal,
  ): Promise<readonly StoredLayer[]> {
    const acquired: StoredLayer[] = [];
    let chain: string | undefined;
    try {
      for (const source of plan.sources) {
        chain = chainId(chain, source.diffId);
        acquired.push(await layers.acquire(source, acquired, chain, signal));
      }
      return acquired;
    } catch (error) {
      for (const layer of acquired) layers.release(layer);
      throw error;
    }
  }

  function commit(
    document: ImageDocument,
    stored: readonly StoredLayer[],
    more: Partial<ImageRecord>,
    tags: readonly string[],
  ) {
    if (!existsSync(blobPath(document.id))) writeFileSync(blobPath(document.id), document.bytes, { mode: 0o600 });
    const earlier = records.get(document.id);
    const now = clock.now();
    const record: ImageRecord = {
      version: 1,
      id: document.id,
      createdAt: document.created ?? now,
      lastUsedAt: now,
      config: document.config,
      pinned: earlier?.pinned ?? false,
      ...(earlier?.fingerprint === undefined ? {} : { fingerprint: earlier.fingerprint }),
      ...more,
      layers: stored,
      tags: { ...earlier?.tags, ...Object.fromEntries(tags.map((tag) => [tag, now])) },
      digests: [...new Set([...(earlier?.digests ?? []), ...(more.digests ?? [])])],
      manifestDigests: [...new Set([...(earlier?.manifestDigests ?? []), ...(more.manifestDigests ?? [])])],
    };
    records.put(record);
    for (const tag of tags) untagOthers(tag, record.id);
    for (const layer of stored) layers.release(layer);
    return record;
  }

  function untagOthers(tag: string, owner: string): void {
    for (const other of records.all()) {
      if (other.id === owner || other.tags[tag] === undefined) continue;
      const { [tag]: _, ...tags } = other.tags;
      records.put({ ...other, tags });
    }
  }

  async function loadPlan(
    plan: ImagePlan,
    open: (path: string) => AsyncIterable<Buffer>,
    pulled?: Pulled,
    signal?: AbortSignal,
  ) {
    const sources = plan.layers.map((layer) => ({ ...layer, open: () => open(layer.path) }));
    const stored = await acquireAll({ sources }, signal);
    const names = pulled ? [pulled.reference] : plan.tags;
    const manifestDigests = pulled?.manifestDigests ?? plan.manifestDigests;
    // As containerd has it: only what came from a registry is known by a digest there; `get` finds others by it all the same.
    const digests = pulled ? [`${pulled.reference.name}@${manifestDigests[0]}`] : [];
    const tags = names.filter((tag) => !tag.digest).map(formatReference);
    return commit(plan.document, stored, { digests, manifestDigests }, tags);
  }

  async function load(
    source: string | Readable,
    signal?: AbortSignal,
    pulled?: Pulled,
  ): Promise<readonly ImageStatus[]> {
    try {
      signal?.throwIfAborted();
      const opening = { spool: layers.scratch("file"), budget: await spaceFor(dir), signal };
      await using archive = await openArchive(source, opening);
      const loaded: ImageRecord[] = [];
      for (const plan of await readImagePlans(archive, platform)) {
        loaded.push(await loadPlan(plan, archive.read, pulled, signal));
      }
      return loaded.map(({ id }) => status(records.get(id)!));
    } catch (error) {
      layers.sweep(neededLayers());
      if (hasCode(error, "ENOSPC", "EDQUOT")) {
        throw new EngineError("disk-full", `no space left on device below ${dir}`, { cause: error });
      }
      throw error;
    }
  }

  async function registerBuiltin(builtin: Builtin): Promise<void> {
    const tag = formatReference(parseReference(builtin.reference));
    const there = records.all().find((record) => record.tags[tag] !== undefined);
    if (there?.fingerprint === builtin.fingerprint) return;
    const bytes = Buffer.concat(await Array.fromAsync(await builtin.layer()));
    const diffId = sha256(bytes);
    const source = {
      diffId,
      open: async function* () {
        yield bytes;
      },
    };
    const stored = await acquireAll({ sources: [source] });
    const document = parseImageDocument(builtinDocument(builtin.config, diffId, platform));
    commit(document, stored, { pinned: true, fingerprint: builtin.fingerprint }, [tag]);
    const old = there && there.id !== document.id ? records.get(there.id) : undefined;
    if (!old) return;
    // Containers of the last run may still have it as their root: it becomes an ordinary image that is pruned when unused.
    const { fingerprint: _, ...rest } = old;
    records.put({ ...rest, pinned: false });
  }

  function discardImage(record: ImageRecord): void {
    records.delete(record.id);
    layers.discard(blobPath(record.id));
    layers.sweep(neededLayers());
  }

  function touch(record: ImageRecord): void {
    // Written seldom: an idle or busy node should not write the same fact again and again.
    if (clock.now() - record.lastUsedAt > TOUCH_EVERY_MS) records.put({ ...record, lastUsedAt: clock.now() });
  }

  for (const record of records.all()) {
    if (record.layers.every(({ key }) => layers.has(key))) continue;
    logger.warn("An image lacks layers on disk and was dropped: load or pull it again", {
      image: Object.keys(record.tags)[0] ?? record.id,
    });
    records.delete(record.id);
  }
  layers.sweep(neededLayers());
  await registerBuiltins();

  async function registerBuiltins(): Promise<void> {
    const pause = options.pauseBinary ?? findProgram(PAUSE_PLACES);
    const busybox = options.busybox === false ? undefined : (options.busybox ?? findProgram(BUSYBOX_PLACES));
    const builtins = [...(pause ? [pauseImage(pause)] : []), ...(busybox ? [busyboxImage(busybox)] : [])];
    for (const builtin of builtins) await registerBuiltin(builtin);
  }

  const puller = createPuller(deps, {
    ...(options.registryMirror === undefined ? {} : { mirror: options.registryMirror }),
    runDir: options.runDir,
    platform,
    scratch: () => layers.scratch("directory"),
    discard: layers.discard,
    proxies: options.proxies ?? {},
    load: async (path, reference, manifestDigests, signal) =>
      (await load(path, signal, { reference, manifestDigests }))[0]!,
  });

  return {
    list: () => records.all().map(status),
    get(reference) {
      const record = find(reference);
      return record && status(record);
    },
    async pull(reference, pullOptions) {
      // what is built in comes from no registry: asking one would fail without a network, or bring somebody else's image
      const record = find(reference);
      return record?.pinned ? status(record) : puller.pull(parseReference(reference), pullOptions);
    },
    load: (source, loadOptions) => load(source, loadOptions?.signal),
    async remove(text) {
      const record = find(text);
      if (!record) return;
      const rest = without(record, text);
      if (rest) return records.put(rest);
      if (isHeld(record.id)) {
        const users = [...holders].filter(([, id]) => id === record.id).map(([holder]) => holder);
        throw new EngineError("image-in-use", `image ${text} is in use by ${users.join(", ")}`, {
          hint: "Remove these first.",
        });
      }
      discardImage(record);
    },
    async prune({ bytes = Number.POSITIVE_INFINITY, keep = () => false } = {}) {
      const removed: string[] = [];
      let freedBytes = 0;
      for (const record of records.all().toSorted((a, b) => a.lastUsedAt - b.lastUsedAt)) {
        if (freedBytes >= bytes) break;
        if (record.pinned || isHeld(record.id) || keep(status(record))) continue;
        const before = usedBytes(records.all());
        discardImage(record);
        freedBytes += before - usedBytes(records.all());
        removed.push(record.id);
      }
      await layers.settled();
      return { removed, freedBytes };
    },
    async usage() {
      return { usedBytes: usedBytes(records.all()), ...(await diskOf(dir)) };
    },
    rootfs(image) {
      const record = demand(image);
      touch(record);
      return { layers: record.layers.map(({ key }) => layers.path(key)), config: record.config };
    },
    hold(image, holder) {
      const record = demand(image);
      touch(record);
      holders.set(holder, record.id);
    },
    release: (holder) => void holders.delete(holder),
    async [Symbol.asyncDispose]() {
      await puller.close();
      await layers.settled().catch((error) => logger.warn("Files were left behind", { error: messageOf(error) }));
    },
  };
}

/** What a pull knows of an image beside what it fetched. */
interface Pulled {
  readonly reference: Reference;
  /** Of what the reference named first: the index, where there is one. */
  readonly manifestDigests: readonly string[];
}

interface LayerInput {
  readonly diffId: string;
  readonly digest?: string;
  open(): AsyncIterable<Buffer>;
}

const TOUCH_EVERY_MS = 60_000;

function toStatus(record: ImageRecord): ImageStatus {
  const [user = ""] = (record.config.User ?? "").split(":");
  const identity = /^\d+$/.test(user) ? { uid: Number(user) } : user === "" ? {} : { username: user };
  return {
    id: record.id,
    tags: Object.keys(record.tags),
    digests: record.digests,
    size: record.layers.reduce((sum, { size }) => sum + size, 0),
    ...identity,
    createdAt: record.createdAt,
    pinned: record.pinned,
    config: record.config,
  };
}

/** By reference first: twelve hexadecimal digits may also be a name. @throws EngineError `invalid-reference` */
function findRecord(all: readonly ImageRecord[], text: string): ImageRecord | undefined {
  const hex = parseImageId(text);
  const byId = () => {
    const found = hex === undefined ? [] : all.filter(({ id }) => digestHex(id).startsWith(hex));
    return found.length === 1 ? found[0] : undefined;
  };
  if (hex !== undefined && (text.startsWith("sha256:") || text.length === 64)) return byId();
  const reference = parseReference(text);
  const normal = formatReference(reference);
  if (!reference.digest) return all.find(({ tags }) => tags[normal] !== undefined) ?? byId();
  return all.find(
    ({ digests, manifestDigests, tags }) =>
      digests.includes(normal) ||
      (manifestDigests.includes(reference.digest!) &&
        Object.keys(tags).some((tag) => tag.startsWith(`${reference.name}:`))),
  );
}

/** The record without this reference, or undefined when that was its last one (or it was named by id). */
function without(record: ImageRecord, text: string): ImageRecord | undefined {
  if (parseImageId(text) !== undefined && digestHex(record.id).startsWith(parseImageId(text)!)) return undefined;
  const reference = parseReference(text);
  const { [formatReference(reference)]: _, ...tags } = record.tags;
  const isOfRepository = (name: string) =>
    name.startsWith(`${reference.name}:`) || name.startsWith(`${reference.name}@`);
  const keepsRepository = Object.keys(tags).some(isOfRepository) && !reference.digest;
  const digests = keepsRepository ? record.digests : record.digests.filter((digest) => !isOfRepository(digest));
  return Object.keys(tags).length + digests.length === 0 ? undefined : { ...record, tags, digests };
}

function usedBytes(all: readonly ImageRecord[]): number {
  const layers = new Map(all.flatMap((record) => record.layers.map(({ key, size }) => [key, size])));
  return [...layers.values()].reduce((sum, size) => sum + size, 0);
}
