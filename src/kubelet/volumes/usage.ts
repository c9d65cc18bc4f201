import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "#base";
import type { ReadonlyPod } from "../ports.ts";
import { wholeValue } from "../container-config/quantity.ts";
import type { MountedVolume } from "./port.ts";

/** Names and limits, in bytes, of the pod's scratch volumes that have one. */
export function limitedVolumes(pod: ReadonlyPod): { name: string; limit: string; bytes: number }[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, emptyDir }) => {
    const limit = emptyDir?.sizeLimit;
    const bytes = wholeValue(limit);
    return limit && bytes > 0 ? [{ name, limit, bytes }] : [];
  });
}

/**
 * What is to be told of the first scratch volume that holds more than its `sizeLimit`; undefined when none does.
 *
 * Source: https://kubernetes.io/docs/concepts/storage/volumes/#emptydir
 */
export async function overLimit(
  pod: ReadonlyPod,
  mounted: ReadonlyMap<string, MountedVolume>,
): Promise<string | undefined> {
  for (const { name, limit, bytes } of limitedVolumes(pod)) {
    const path = mounted.get(name)?.hostPath;
    if (path !== undefined && (await bytesBelow(path)) > bytes)
      return `Usage of EmptyDir volume ${JSON.stringify(name)} exceeds the limit ${JSON.stringify(limit)}. `;
  }
  return undefined;
}

/** Disk space of a directory and all in it, each file once however many names it has; follows no link. */
export async function bytesBelow(path: string): Promise<number> {
  const seen = new Set<string>();
  const measure = async (at: string): Promise<number> => {
    const found = await lstat(at).catch(ignoreGone);
    if (!found) return 0;
    const id = `${found.dev}:${found.ino}`;
    if (seen.has(id)) return 0;
    seen.add(id);
    let sum = found.blocks * 512;
    if (found.isDirectory())
      for (const name of (await readdir(at).catch(ignoreGone)) ?? []) sum += await measure(join(at, name));
    return sum;
  };
  return measure(path);
}

/** Containers remove files while they are counted. */
function ignoreGone(error: unknown): undefined {
  if (!hasCode(error, "ENOENT", "ENOTDIR")) throw error;
}
