import { createHash } from "node:crypto";
import type { Clock } from "#base";
import { EngineError } from "../errors.ts";
import type { Images, ImageStatus } from "../port.ts";
import type { FakeEngineOptions, FakeImage } from "./script.ts";

const SIZE = 4 << 20;

/** `busybox` → `docker.io/library/busybox:latest`. @throws EngineError `invalid-reference` */
export function normalizeReference(reference: string): { name: string; tag?: string; digest?: string } {
  const [path = "", digest] = reference.split("@", 2);
  const colon = path.lastIndexOf(":");
  const tagged = colon > path.lastIndexOf("/");
  const name = tagged ? path.slice(0, colon) : path;
  const tag = tagged ? path.slice(colon + 1) : undefined;
  const parts = name.split("/");
  const host = parts.length > 1 && /[.:]|^localhost$/.test(parts[0] ?? "") ? parts.shift() : undefined;
  const valid =
    parts.every((part) => /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/.test(part)) &&
    (tag === undefined || /^\w[\w.-]{0,127}$/.test(tag)) &&
    (digest === undefined || /^sha256:[0-9a-f]{64}$/.test(digest));
  if (!valid)
    throw new EngineError("invalid-reference", `couldn't parse image name "${reference}": invalid reference format`);
  const full = `${host ?? "docker.io"}/${host || parts.length > 1 ? "" : "library/"}${parts.join("/")}`;
  if (digest) return { name: full, digest };
  return { name: full, tag: tag ?? "latest" };
}

const hash = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

/** Images that exist by being named: id and digest follow from the reference. */
export function createFakeImages(
  deps: { clock: Clock; inUse(imageId: string): boolean },
  options: FakeEngineOptions,
): Images {
  const images = new Map<string, ImageStatus>();
  const add = (spec: FakeImage): ImageStatus => {
    const { name, tag, digest } = normalizeReference(spec.reference);
    const key = digest ? `${name}@${digest}` : `${name}:${tag}`;
    const id = hash(`id ${key}`);
    const uid = /^\d+$/.test(spec.user ?? "") ? Number(spec.user) : undefined;
    const image: ImageStatus = {
      id,
      tags: tag ? [key] : [],
      digests: [`${name}@${digest ?? hash(`digest ${key}`)}`],
      size: spec.size ?? SIZE,
      ...(uid === undefined ? (spec.user ? { username: spec.user } : { uid: 0 }) : { uid }),
      createdAt: deps.clock.now(),
      pinned: false,
      config: {
        ...(spec.user ? { User: spec.user } : {}),
        ...(spec.stopSignal ? { StopSignal: spec.stopSignal } : {}),
        ...(spec.entrypoint ? { Entrypoint: spec.entrypoint } : {}),
        ...(spec.cmd ? { Cmd: spec.cmd } : {}),
      },
    };
    images.set(id, image);
    return image;
  };
  for (const image of options.images ?? ["slim/busybox:latest", "nebula/pause:slim"]) {
    add(typeof image === "string" ? { reference: image } : image);
  }

  const get = (reference: string): ImageStatus | undefined => {
    if (images.has(reference)) return images.get(reference);
    if (/^(sha256:)?[0-9a-f]{64}$/.test(reference)) return images.get(`sha256:${reference.replace("sha256:", "")}`);
    const { name, tag, digest } = normalizeReference(reference);
    return [...images.values()].find((image) =>
      digest ? image.digests.includes(`${name}@${digest}`) : image.tags.includes(`${name}:${tag}`),
    );
  };

  return {
    list: () => [...images.values()],
    get,
    async pull(reference, pull) {
      normalizeReference(reference);
      const plan = options.pull?.(reference) ?? {};
      if (plan.afterMs) await deps.clock.sleep(plan.afterMs, pull?.signal ? { signal: pull.signal } : {});
      if (plan.error !== undefined) throw new EngineError(plan.code ?? "pull-failed", plan.error);
      return get(reference) ?? add({ reference });
    },
    async load() {
      throw new EngineError(
        "unsupported",
        "the fake engine makes its images from their names; there is nothing to load",
      );
    },
    async remove(reference) {
      const image = get(reference);
      if (!image) return;
      if (deps.inUse(image.id)) throw new EngineError("image-in-use", `image ${reference} is used by a container`);
      images.delete(image.id);
    },
    async prune(prune) {
      const unused = [...images.values()].filter(
        (image) => !deps.inUse(image.id) && !image.pinned && !prune?.keep?.(image),
      );
      let freedBytes = 0;
      const removed: string[] = [];
      for (const image of unused) {
        if (prune?.bytes !== undefined && freedBytes >= prune.bytes) break;
        images.delete(image.id);
        removed.push(image.id);
        freedBytes += image.size;
      }
      return { removed, freedBytes };
    },
    async usage() {
      const usedBytes = [...images.values()].reduce((sum, image) => sum + image.size, 0);
      const capacityBytes = 100 * 2 ** 30;
      return { usedBytes, capacityBytes, availableBytes: capacityBytes - usedBytes };
    },
  };
}
