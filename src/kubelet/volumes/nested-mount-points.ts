import { mkdir } from "node:fs/promises";
import { join, normalize } from "node:path";
import type { DeepReadonly } from "#base";
import type { Pod } from "#kinds";

/**
 * Makes the directories at which other volumes are mounted inside this one: it is read-only in containers, so nobody could
 * make them later.
 */
export async function makeNestedMountPoints(volume: string, path: string, pod: DeepReadonly<Pod>): Promise<void> {
  for (const nested of nestedMountPoints(volume, pod))
    await mkdir(join(path, nested), { recursive: true, mode: 0o755 });
}

/** Paths below the volume at which a container mounts another one; only the outermost of nested ones. */
export function nestedMountPoints(volume: string, pod: DeepReadonly<Pod>): string[] {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const result = new Set<string>();
  for (const { volumeMounts = [] } of [...initContainers, ...containers, ...ephemeralContainers]) {
    const points = volumeMounts.map((mount) => normalize(mount.mountPath).replace(/(.)\/$/, "$1")).sort();
    for (const mount of volumeMounts) {
      if (mount.name !== volume) continue;
      const top = `${normalize(mount.mountPath).replace(/\/$/, "")}/`;
      const taken: string[] = [];
      for (const point of points) {
        if (!point.startsWith(top) || taken.some((outer) => point.startsWith(outer))) continue;
        taken.push(`${point}/`);
        result.add(point.slice(top.length));
      }
    }
  }
  return [...result];
}
