import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "../../errors.ts";
import { digestHex } from "./documents.ts";
import { type ExtractOptions, extractLayer } from "./extract-layer.ts";
import { adoptImplied, applyWhiteouts } from "./finish-layer.ts";
import type { Inodes } from "./inodes.ts";
import { spaceFor } from "./space.ts";

export interface StoredLayer {
  /** Name of its directory in `layers/`. */
  readonly key: string;
  /** Bytes of its files. */
  readonly size: number;
}

export interface LayerSource {
  readonly diffId: string;
  readonly digest?: string | undefined;
  open(): AsyncIterable<Buffer>;
}

/**
 * Unpacked layers, `layers/<key>/fs` with facts in `layers/<key>/layer.json`; both appear in one rename. The key is the diff
 * id; only a layer whose tar leaves out directories, so that they take after the layers below, goes by its chain id.
 */
export interface Layers {
  /** Unpacks the layer unless it is there; one that is being unpacked is waited for. It is kept until `release`. */
  acquire(
    source: LayerSource,
    below: readonly StoredLayer[],
    chain: string,
    signal?: AbortSignal,
  ): Promise<StoredLayer>;
  release(layer: StoredLayer): void;
  path(key: string): string;
  has(key: string): boolean;
  /** Removes layers that are neither acquired nor `needed`. They vanish at once; freeing the disk goes on until `settled`. */
  sweep(needed: ReadonlySet<string>): void;
  /** Makes an empty directory or a file name in the scratch space, which the next start empties. */
  scratch(kind: "directory" | "file"): string;
  discard(path: string): void;
  /** Resolves when everything discarded is off the disk. */
  settled(): Promise<void>;
}

export function createLayers(dir: string, inodes: Inodes): Layers {
  const root = join(dir, "layers");
  const temporary = join(dir, "tmp");
  const acquired = new Map<string, number>();
  const unpacking = new Map<string, Promise<unknown>>();
  const removals = new Set<Promise<void>>();
  let serial = 0;
  mkdirSync(root, { recursive: true, mode: 0o700 });
  mkdirSync(temporary, { recursive: true, mode: 0o700 });

  const path = (key: string) => join(root, key, "fs");
  const scratch = (kind: "directory" | "file") => {
    const name = join(temporary, `${process.pid}-${serial++}`);
    if (kind === "directory") mkdirSync(name, { mode: 0o700 });
    return name;
  };
  const discard = (what: string) => {
    const removal = rm(what, { recursive: true, force: true, maxRetries: 2 }).finally(() => removals.delete(removal));
    removals.add(removal);
    removal.catch(() => {}); // settled() reports it; the next start tries again
  };
  const keep = (layer: StoredLayer) => {
    acquired.set(layer.key, (acquired.get(layer.key) ?? 0) + 1);
    return layer;
  };
  const stored = (key: string): StoredLayer | undefined => {
    if (!existsSync(path(key))) return undefined;
    const { size } = JSON.parse(readFileSync(join(root, key, "layer.json"), "utf8")) as { size: number };
    return { key, size };
  };

  async function unpack(source: LayerSource, below: readonly StoredLayer[], chain: string, signal?: AbortSignal) {
    const work = scratch("directory");
    try {
      const into = join(work, "fs");
      mkdirSync(into, { mode: 0o755 });
      const options: ExtractOptions = { ...source, into, budget: await spaceFor(dir), signal };
      const layer = await extractLayer(source.open(), options);
      await applyWhiteouts(into, layer.whiteouts, inodes);
      const under = below.map(({ key }) => path(key));
      adoptImplied(into, layer.implied, under);
      writeFileSync(join(work, "layer.json"), JSON.stringify({ diffId: source.diffId, size: layer.size }));
      const key = digestHex(layer.implied.length > 0 ? chain : source.diffId);
      renameSync(work, join(root, key));
      return keep({ key, size: layer.size }); // in the same turn: a sweep may come in any other
    } catch (error) {
      discard(work);
      throw error;
    }
  }

  for (const left of readdirSync(temporary)) discard(join(temporary, left));
  return {
    async acquire(source, below, chain, signal) {
      for (;;) {
        const there = stored(digestHex(chain)) ?? stored(digestHex(source.diffId));
        if (there) return keep(there);
        const other = unpacking.get(source.diffId);
        if (!other) break;
        await other.catch(() => {}); // its failure is its caller's; this one then tries itself
        signal?.throwIfAborted();
      }
      const work = unpack(source, below, chain, signal);
      unpacking.set(source.diffId, work);
      try {
        return await work;
      } finally {
        unpacking.delete(source.diffId);
      }
    },
    release({ key }) {
      const count = (acquired.get(key) ?? 1) - 1;
      if (count > 0) acquired.set(key, count);
      else acquired.delete(key);
    },
    path,
    has: (key) => existsSync(path(key)),
    sweep(needed) {
      for (const key of readdirSync(root)) {
        if (needed.has(key) || acquired.has(key)) continue;
        const grave = scratch("file");
        renameSync(join(root, key), grave);
        discard(grave);
      }
    },
    scratch,
    discard,
    async settled() {
      const results = await Promise.allSettled(removals);
      const failed = results.find((result) => result.status === "rejected");
      if (failed) throw new EngineError("unsupported", `cannot remove files of the image store: ${failed.reason}`);
    },
  };
}

/** Identity of a layer on top of others. Source: OCI image spec, "Layer ChainID". */
export function chainId(parent: string | undefined, diffId: string): string {
  return parent === undefined ? diffId : `sha256:${createHash("sha256").update(`${parent} ${diffId}`).digest("hex")}`;
}
