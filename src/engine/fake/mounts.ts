import { mkdir } from "node:fs/promises";
import type { Mounts } from "../port.ts";

/** Mounts without a kernel: the directory is made, and that it is a mount point is remembered. */
export function fakeMounts(): Mounts {
  const points = new Set<string>();
  const under = (path: string) =>
    [...points].filter((point) => point === path || point.startsWith(`${path}/`)).sort((a, b) => b.length - a.length);
  const mount = async (path: string) => {
    await mkdir(path, { recursive: true });
    points.add(path);
  };
  return {
    tmpfs: (path) => mount(path),
    bind: (_source, path) => mount(path),
    async unmount(path) {
      for (const point of under(path)) points.delete(point);
    },
    under: async (path) => under(path),
  };
}
