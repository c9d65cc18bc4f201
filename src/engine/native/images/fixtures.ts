import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { type Header, pack } from "tar-stream";

/** Images made by tests. Bytes of a tar of these entries, `content` defaulting to none. */
export async function tarOf(
  entries: readonly (Partial<Header> & { name: string; content?: string | Buffer })[],
): Promise<Buffer> {
  const archive = pack();
  for (const { content, ...headers } of entries) {
    archive.entry({ mode: 0o644, uid: 0, gid: 0, mtime: new Date(0), ...headers }, content ?? "");
  }
  archive.finalize();
  return Buffer.concat(await Array.fromAsync(archive as AsyncIterable<Buffer>));
}

export const digestOf = (bytes: Buffer | string): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
export const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

export interface FixtureImage {
  readonly layers: readonly Buffer[];
  readonly tags: readonly string[];
  readonly config?: Record<string, unknown>;
  readonly architecture?: string;
}

export const HOST_ARCHITECTURE: string = { x64: "amd64" }[process.arch as string] ?? process.arch;

export function configOf(image: FixtureImage): Buffer {
  return json({
    architecture: image.architecture ?? HOST_ARCHITECTURE,
    os: "linux",
    created: "2026-01-02T03:04:05Z",
    config: image.config ?? { Cmd: ["/hello"] },
    rootfs: { type: "layers", diff_ids: image.layers.map(digestOf) },
  });
}

/** As `docker save` wrote it for years. */
export async function dockerArchive(images: readonly FixtureImage[]): Promise<Buffer> {
  const files = new Map<string, Buffer>();
  const manifest = images.map((image) => {
    const config = configOf(image);
    const configName = `${digestOf(config).slice(7)}.json`;
    files.set(configName, config);
    const layers = image.layers.map((layer) => {
      const name = `${digestOf(layer).slice(7)}/layer.tar`;
      files.set(name, layer);
      return name;
    });
    return { Config: configName, RepoTags: image.tags, Layers: layers };
  });
  files.set("manifest.json", json(manifest));
  return tarOf([...files].map(([name, content]) => ({ name, content })));
}

export type LayerForm = "plain" | "gzip" | "zstd";
const COMPRESS = { plain: (bytes: Buffer) => bytes, gzip: gzipSync, zstd: zstdCompressSync };
const SUFFIX = { plain: "", gzip: "+gzip", zstd: "+zstd" };

/** Files of an OCI image layout; an image of several platforms gets an index of its own. */
export function ociLayout(
  images: readonly { name?: string; platforms: readonly FixtureImage[] }[],
  form: LayerForm = "gzip",
): Map<string, Buffer> {
  const files = new Map<string, Buffer>([["oci-layout", json({ imageLayoutVersion: "1.0.0" })]]);
  const blob = (mediaType: string, bytes: Buffer) => {
    files.set(`blobs/sha256/${digestOf(bytes).slice(7)}`, bytes);
    return { mediaType, digest: digestOf(bytes), size: bytes.length };
  };
  const manifestOf = (image: FixtureImage) => {
    const config = blob("application/vnd.oci.image.config.v1+json", configOf(image));
    const layers = image.layers.map((layer) => {
      return blob(`application/vnd.oci.image.layer.v1.tar${SUFFIX[form]}`, COMPRESS[form](layer));
    });
    const mediaType = "application/vnd.oci.image.manifest.v1+json";
    const manifest = blob(mediaType, json({ schemaVersion: 2, mediaType, config, layers }));
    return { ...manifest, platform: { os: "linux", architecture: image.architecture ?? HOST_ARCHITECTURE } };
  };
  const mediaType = "application/vnd.oci.image.index.v1+json";
  const manifests = images.map(({ name, platforms }) => {
    const parts = platforms.map(manifestOf);
    const top =
      parts.length === 1 ? parts[0]! : blob(mediaType, json({ schemaVersion: 2, mediaType, manifests: parts }));
    return { ...top, ...(name ? { annotations: { "org.opencontainers.image.ref.name": name } } : {}) };
  });
  files.set("index.json", json({ schemaVersion: 2, mediaType, manifests }));
  return files;
}

export function writeLayout(dir: string, files: ReadonlyMap<string, Buffer>): void {
  mkdirSync(join(dir, "blobs", "sha256"), { recursive: true });
  for (const [name, content] of files) writeFileSync(join(dir, name), content);
}

export function layoutTar(files: ReadonlyMap<string, Buffer>): Promise<Buffer> {
  return tarOf([...files].map(([name, content]) => ({ name, content })));
}
