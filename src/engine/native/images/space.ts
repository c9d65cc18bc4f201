import { statfs } from "node:fs/promises";

/** Bytes that may still be written below `dir`: what is free, less a reserve so that the host's disk is never filled. */
export async function spaceFor(dir: string): Promise<number> {
  const { availableBytes, capacityBytes } = await diskOf(dir);
  return Math.max(0, availableBytes - Math.min(64 << 20, Math.floor(capacityBytes / 50)));
}

export async function diskOf(dir: string): Promise<{ capacityBytes: number; availableBytes: number }> {
  const { bsize, blocks, bavail } = await statfs(dir);
  return { capacityBytes: bsize * blocks, availableBytes: bsize * bavail };
}
