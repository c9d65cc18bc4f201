import { EngineError } from "../../errors.ts";
import type { Archive } from "./archive.ts";
import {
  type Descriptor,
  digestHex,
  type ImageDocument,
  isImage,
  type Json,
  parseDescriptor,
  parseDescriptors,
  parseImageDocument,
  parseJson,
  parseObject,
  sha256,
  verifyBytes,
} from "./documents.ts";
import { choosePlatform, type Platform } from "./platform.ts";
import { parseReference, type Reference } from "./reference.ts";

/** An image that an archive holds: what is to be unpacked, and under which names. */
export interface ImagePlan {
  readonly document: ImageDocument;
  readonly tags: readonly Reference[];
  readonly layers: readonly LayerPlan[];
  /** Digests by which a registry knows it: of the manifest, and of the index that names the manifest. */
  readonly manifestDigests: readonly string[];
}

export interface LayerPlan {
  readonly diffId: string;
  /** File in the archive. */
  readonly path: string;
  /** Digest of that file, where the archive tells. */
  readonly digest?: string;
}

/**
 * Reads what an archive holds; layers are not touched. Formats: docker-archive (`manifest.json`) and OCI image layout
 * (`index.json`); one that is both, as newer Docker writes, is read as the latter.
 * @throws EngineError `invalid-archive`, `no-platform`
 */
export async function readImagePlans(archive: Archive, platform: Platform): Promise<readonly ImagePlan[]> {
  if (archive.has("index.json")) return readLayout(archive, platform);
  if (archive.has("manifest.json")) return readDockerArchive(archive, platform);
  throw new EngineError(
    "invalid-archive",
    "neither a docker-archive nor an OCI image layout: no manifest.json and no index.json in it",
  );
}

async function readDockerArchive(archive: Archive, platform: Platform): Promise<readonly ImagePlan[]> {
  const images = parseJson(await archive.readAll("manifest.json"), "manifest.json");
  if (typeof images === "object" && images !== null && "config" in images) return [await readPulled(archive, platform)];
  if (!Array.isArray(images) || images.length === 0) {
    throw new EngineError("invalid-archive", "manifest.json lists no images");
  }
  const plans: ImagePlan[] = [];
  for (const image of images as { Config?: unknown; RepoTags?: unknown; Layers?: unknown }[]) {
    const { Config, RepoTags, Layers } = image ?? {};
    if (typeof Config !== "string" || !Array.isArray(Layers) || !Layers.every((item) => typeof item === "string")) {
      throw new EngineError("invalid-archive", "manifest.json: an image needs Config and Layers");
    }
    const document = parseImageDocument(await archive.readAll(Config));
    demandPlatform(document, platform, Config);
    plans.push({
      document,
      tags: (Array.isArray(RepoTags) ? RepoTags : []).map(archiveTag),
      layers: pairLayers(
        document,
        Layers.map((path: string) => ({ path })),
      ),
      manifestDigests: [],
    });
  }
  return plans;
}

/** The `dir:` form of skopeo: manifest.json is the registry's manifest, and blobs lie beside it by their digest. */
async function readPulled(archive: Archive, platform: Platform): Promise<ImagePlan> {
  const bytes = await archive.readAll("manifest.json");
  const path = (digest: string) => digestHex(digest);
  return readManifest(archive, parseObject(bytes, "manifest.json"), {
    platform,
    path,
    what: "manifest.json",
    digests: [sha256(bytes)],
  });
}

async function readManifest(
  archive: Archive,
  manifest: Json,
  {
    platform,
    path,
    what,
    digests,
  }: { platform: Platform; path(digest: string): string; what: string; digests: readonly string[] },
): Promise<ImagePlan> {
  if (manifest.config === undefined) {
    throw new EngineError("invalid-archive", `${what} is not an OCI or Docker v2 image manifest`);
  }
  const config = parseDescriptor(manifest.config, "a manifest's config");
  const document = parseImageDocument(verifyBytes(await archive.readAll(path(config.digest)), config.digest));
  demandPlatform(document, platform, what);
  const layers = parseDescriptors(manifest.layers ?? [], "a manifest");
  const files = layers.map(({ digest }) => ({ path: path(digest), digest }));
  return { document, tags: [], layers: pairLayers(document, files), manifestDigests: digests };
}

async function readLayout(archive: Archive, platform: Platform): Promise<readonly ImagePlan[]> {
  const index = parseObject(await archive.readAll("index.json"), "index.json");
  const tops = parseDescriptors(index.manifests, "index.json").filter(isImage);
  if (tops.length === 0) throw new EngineError("invalid-archive", "index.json lists no images");
  const plans = new Map<string, ImagePlan>();
  // Manifests of one name for several platforms may stand side by side without an index of their own.
  for (const group of Map.groupBy(tops, (top) => nameOf(top) ?? (top.platform ? "" : top.digest)).values()) {
    const sole =
      group.length === 1 || group.some((top) => !top.platform)
        ? group
        : [choosePlatform(group, platform, "index.json")];
    for (const top of sole) {
      const plan = await readTop(archive, top, platform);
      const earlier = plans.get(plan.document.id);
      plans.set(plan.document.id, earlier ? merge(earlier, plan) : plan);
    }
  }
  return addDockerNames(archive, [...plans.values()]);
}

async function readTop(archive: Archive, top: Descriptor, platform: Platform): Promise<ImagePlan> {
  const digests = [top.digest];
  let bytes = await readBlob(archive, top.digest);
  let manifest = parseObject(bytes, `manifest ${top.digest}`);
  for (let depth = 0; Array.isArray(manifest.manifests); depth++) {
    if (depth === 4) throw new EngineError("invalid-archive", "image indexes are nested too deep");
    const entries = parseDescriptors(manifest.manifests, "an image index").filter(isImage);
    const next = choosePlatform(await withPlatforms(archive, entries), platform, nameOf(top) ?? top.digest);
    digests.push(next.digest);
    bytes = await readBlob(archive, next.digest);
    manifest = parseObject(bytes, `manifest ${next.digest}`);
  }
  const what = nameOf(top) ?? top.digest;
  const plan = await readManifest(archive, manifest, { platform, path: blobPath, what, digests });
  const name = nameOf(top);
  return { ...plan, tags: name === undefined ? [] : [archiveTag(name)] };
}

/** An index entry need not tell its platform: then the image's config does. */
async function withPlatforms(archive: Archive, entries: readonly Descriptor[]): Promise<readonly Descriptor[]> {
  const told: Descriptor[] = [];
  for (const entry of entries) {
    if (entry.platform || !archive.has(blobPath(entry.digest))) {
      told.push(entry);
      continue;
    }
    const manifest = parseObject(await readBlob(archive, entry.digest), `manifest ${entry.digest}`);
    if (manifest.config === undefined) continue;
    const config = parseDescriptor(manifest.config, "a manifest's config");
    const { os, architecture } = parseImageDocument(await readBlob(archive, config.digest));
    told.push({ ...entry, platform: { os, architecture } });
  }
  return told;
}

/** Docker writes both forms; names that the layout lacks stand in manifest.json. */
async function addDockerNames(archive: Archive, plans: readonly ImagePlan[]): Promise<readonly ImagePlan[]> {
  if (!archive.has("manifest.json")) return plans;
  const listed = parseJson(await archive.readAll("manifest.json"), "manifest.json");
  if (!Array.isArray(listed)) return plans;
  return plans.map((plan) => {
    const hex = digestHex(plan.document.id);
    const own = listed.filter((item) => typeof item?.Config === "string" && item.Config.includes(hex));
    const names = own.flatMap((item) => (Array.isArray(item.RepoTags) ? item.RepoTags : [])).map(archiveTag);
    return merge(plan, { ...plan, tags: names });
  });
}

function merge(a: ImagePlan, b: ImagePlan): ImagePlan {
  const tags = new Map([...a.tags, ...b.tags].map((tag) => [`${tag.name}:${tag.tag}`, tag]));
  return {
    ...a,
    tags: [...tags.values()],
    manifestDigests: [...new Set([...a.manifestDigests, ...b.manifestDigests])],
  };
}

function pairLayers(
  document: ImageDocument,
  files: readonly { path: string; digest?: string }[],
): readonly LayerPlan[] {
  if (files.length !== document.diffIds.length) {
    const counts = `${files.length} layers, its config names ${document.diffIds.length}`;
    throw new EngineError("invalid-archive", `image ${document.id} has ${counts}`);
  }
  return files.map((file, i) => ({ ...file, diffId: document.diffIds[i]! }));
}

function demandPlatform(document: ImageDocument, platform: Platform, what: string): void {
  if (document.architecture === "") return;
  choosePlatform([{ platform: document }], platform, what);
}

/** A lone word in `org.opencontainers.image.ref.name` is only a tag: it names no repository. */
function nameOf({ annotations }: Descriptor): string | undefined {
  const full = annotations["io.containerd.image.name"];
  if (full !== undefined) return full;
  const name = annotations["org.opencontainers.image.ref.name"];
  return name !== undefined && /[/:]/.test(name) ? name : undefined;
}

function archiveTag(name: unknown): Reference {
  if (typeof name !== "string") throw new EngineError("invalid-archive", "an image's name in the archive is no text");
  try {
    return parseReference(name);
  } catch (error) {
    throw new EngineError(
      "invalid-archive",
      `the archive names an image ${JSON.stringify(name)}: invalid reference format`,
      {
        cause: error,
      },
    );
  }
}

const blobPath = (digest: string) => `blobs/sha256/${digestHex(digest)}`;

async function readBlob(archive: Archive, digest: string): Promise<Buffer> {
  return verifyBytes(await archive.readAll(blobPath(digest)), digest);
}
