import type { Refusal } from "./types.ts";

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.` */
export function summarize(nodes: number, refusals: Iterable<Refusal>): string {
  const counts = new Map<string, number>();
  for (const { reasons } of refusals) for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const texts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${nodes} nodes are available:${texts.length ? ` ${texts.join(", ")}.` : ""}`;
}
