import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Logger, messageOf } from "#base";
import type { ImageConfig } from "../../port.ts";
import { writeAtomically } from "../sys/files.ts";
import { digestHex } from "./documents.ts";
import type { StoredLayer } from "./layers.ts";

/** What the store knows of an image; one file each, so that one that is damaged harms no other. */
export interface ImageRecord {
  readonly version: 1;
  readonly id: string;
  /** Reference to the time it was given, milliseconds: the later wins where two images claim it after a crash. */
  readonly tags: Readonly<Record<string, number>>;
  /** `name@sha256:…` */
  readonly digests: readonly string[];
  /** Digests of manifest and index, whatever the repository. */
  readonly manifestDigests: readonly string[];
  /** Lowest first. */
  readonly layers: readonly StoredLayer[];
  readonly createdAt: number;
  readonly lastUsedAt: number;
  readonly pinned: boolean;
  /** What a built-in image was made from. */
  readonly fingerprint?: string;
  readonly config: ImageConfig;
}

/** The images of the store, in memory and on disk. All of it is synchronous: between two calls nothing is half done. */
export interface Records {
  all(): readonly ImageRecord[];
  get(id: string): ImageRecord | undefined;
  put(record: ImageRecord): void;
  delete(id: string): void;
}

/** Reads the records; one that cannot be read is moved aside and its image has to be loaded again. */
export function openRecords(dir: string, logger: Logger): Records {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const records = new Map<string, ImageRecord>();
  const file = (id: string) => join(dir, `${digestHex(id)}.json`);
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (!name.endsWith(".json")) {
      if (name.includes(".tmp-")) rmSync(path, { force: true });
      continue;
    }
    try {
      const record = check(JSON.parse(readFileSync(path, "utf8")), name);
      records.set(record.id, record);
    } catch (error) {
      renameSync(path, `${path}.corrupt`);
      logger.warn("An image's record is damaged and was moved aside: load or pull the image again", {
        file: `${path}.corrupt`,
        error: messageOf(error),
      });
    }
  }
  settleTags(records);
  return {
    all: () => [...records.values()],
    get: (id) => records.get(id),
    put(record) {
      writeAtomically(file(record.id), `${JSON.stringify(record)}\n`);
      records.set(record.id, record);
    },
    delete(id) {
      rmSync(file(id), { force: true });
      records.delete(id);
    },
  };
}

function check(value: unknown, name: string): ImageRecord {
  const record = value as ImageRecord;
  const layersAreSound =
    Array.isArray(record?.layers) &&
    record.layers.every(({ key, size }) => /^[a-f0-9]{64}$/.test(key) && Number.isFinite(size));
  if (record?.version !== 1 || !layersAreSound || `${digestHex(record.id)}.json` !== name)
    throw new Error("unknown form");
  if (typeof record.tags !== "object" || !Array.isArray(record.digests) || !Array.isArray(record.manifestDigests)) {
    throw new Error("unknown form");
  }
  return record;
}

function settleTags(records: Map<string, ImageRecord>): void {
  const owners = new Map<string, { id: string; at: number }>();
  for (const record of records.values()) {
    for (const [tag, at] of Object.entries(record.tags)) {
      if (at >= (owners.get(tag)?.at ?? 0)) owners.set(tag, { id: record.id, at });
    }
  }
  for (const record of records.values()) {
    const own = Object.entries(record.tags).filter(([tag]) => owners.get(tag)?.id === record.id);
    records.set(record.id, { ...record, tags: Object.fromEntries(own) });
  }
}
