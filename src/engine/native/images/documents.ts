import { createHash } from "node:crypto";
import { EngineError } from "../../errors.ts";
import type { ImageConfig } from "../../port.ts";

/** An OCI image config (`application/vnd.oci.image.config.v1+json`), read and checked. */
export interface ImageDocument {
  readonly bytes: Buffer;
  /** `sha256:…` of the bytes: the image's id. */
  readonly id: string;
  readonly os: string;
  readonly architecture: string;
  readonly variant: string | undefined;
  /** Milliseconds since the epoch. */
  readonly created: number | undefined;
  readonly diffIds: readonly string[];
  readonly config: ImageConfig;
}

export interface Descriptor {
  readonly mediaType: string | undefined;
  readonly digest: string;
  readonly platform: { os?: string; architecture?: string; variant?: string } | undefined;
  readonly annotations: Readonly<Record<string, string>>;
}

export type Json = Record<string, unknown>;

export const sha256 = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** @throws EngineError `invalid-archive` */
export function parseJson(bytes: Buffer, what: string): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new EngineError("invalid-archive", `${what} is not valid JSON`, { cause: error });
  }
}

/** @throws EngineError `invalid-archive` */
export function parseObject(bytes: Buffer, what: string): Json {
  const value = parseJson(bytes, what);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new EngineError("invalid-archive", `${what} is not a JSON object`);
  }
  return value as Json;
}

/** @throws EngineError `invalid-archive` */
export function parseImageDocument(bytes: Buffer): ImageDocument {
  const document = parseObject(bytes, "the image's config");
  const rootfs = object(document.rootfs);
  const diffIds = strings(rootfs.diff_ids) ?? [];
  for (const id of diffIds) digestHex(id);
  if (diffIds.length > MAX_LAYERS) throw new EngineError("invalid-archive", `the image has over ${MAX_LAYERS} layers`);
  const created = Date.parse(String(document.created ?? ""));
  return {
    bytes,
    id: sha256(bytes),
    os: string(document.os) ?? "linux",
    architecture: string(document.architecture) ?? "",
    variant: string(document.variant),
    created: Number.isNaN(created) ? undefined : created,
    diffIds,
    config: parseConfig(object(document.config)),
  };
}

/** Descriptors of an index's `manifests` or a manifest's `layers`. @throws EngineError `invalid-archive` */
export function parseDescriptors(value: unknown, what: string): readonly Descriptor[] {
  if (!Array.isArray(value)) throw new EngineError("invalid-archive", `${what} has no list of descriptors`);
  return value.map((item) => parseDescriptor(item, what));
}

export function parseDescriptor(value: unknown, what: string): Descriptor {
  const item = object(value);
  const digest = string(item.digest);
  if (digest === undefined) throw new EngineError("invalid-archive", `${what} has a descriptor without a digest`);
  digestHex(digest);
  return {
    digest,
    mediaType: string(item.mediaType),
    platform: item.platform === undefined ? undefined : (object(item.platform) as Descriptor["platform"]),
    annotations: stringMap(item.annotations) ?? {},
  };
}

/** Build attestations and signatures stand in an index beside the images. */
export function isImage(descriptor: Descriptor): boolean {
  if (descriptor.annotations["vnd.docker.reference.type"] !== undefined) return false;
  if (descriptor.platform?.os === "unknown" || descriptor.platform?.architecture === "unknown") return false;
  return descriptor.mediaType === undefined || IMAGE_TYPES.test(descriptor.mediaType);
}

const IMAGE_TYPES = /^application\/vnd\.(oci\.image\.(manifest|index)|docker\.distribution\.manifest(\.list)?)\.v/;

/** The hexadecimal part, safe as a file name. @throws EngineError `invalid-archive` for another algorithm or form */
export function digestHex(digest: string): string {
  const hex = /^sha256:([a-f0-9]{64})$/.exec(digest)?.[1];
  if (hex) return hex;
  throw new EngineError("invalid-archive", `${JSON.stringify(digest)} is not a sha256 digest`);
}

/** @throws EngineError `invalid-archive` when the bytes are not those that the digest names */
export function verifyBytes(bytes: Buffer, digest: string): Buffer {
  if (sha256(bytes) === digest) return bytes;
  throw new EngineError("invalid-archive", `blob ${digest} is corrupt: its digest is ${sha256(bytes)}`);
}

/** overlayfs stacks at most 500 lower directories. */
const MAX_LAYERS = 500;

function parseConfig(config: Json): ImageConfig {
  const parsed = {
    Env: strings(config.Env),
    Entrypoint: strings(config.Entrypoint),
    Cmd: strings(config.Cmd),
    WorkingDir: string(config.WorkingDir),
    User: string(config.User),
    StopSignal: string(config.StopSignal),
    Labels: stringMap(config.Labels),
    ExposedPorts: config.ExposedPorts ? object(config.ExposedPorts) : undefined,
    Volumes: config.Volumes ? object(config.Volumes) : undefined,
  };
  return Object.fromEntries(Object.entries(parsed).filter(([, value]) => value !== undefined)) as ImageConfig;
}

function object(value: unknown): Json {
  if (value === undefined || value === null) return {};
  if (typeof value === "object" && !Array.isArray(value)) return value as Json;
  throw new EngineError("invalid-archive", "the image's documents hold a value where an object belongs");
}

/** Absent and empty mean the same in an image's config. */
function string(value: unknown): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value === "string" && !value.includes("\0")) return value;
  throw new EngineError("invalid-archive", "the image's documents hold a value where text belongs");
}

function strings(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === "string" && !item.includes("\0"))) return value;
  throw new EngineError("invalid-archive", "the image's documents hold a value where a list of texts belongs");
}

function stringMap(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === null) return undefined;
  const map = object(value);
  if (Object.values(map).every((item) => typeof item === "string")) return map as Record<string, string>;
  throw new EngineError("invalid-archive", "the image's documents hold a value where a map of texts belongs");
}
