import type { Client } from "#client";
import { resources } from "#kinds";

export interface Usage {
  /** Of a core, by thousand millionths: 5e8 is half a core. Absent until there are two samples. */
  readonly cpuNanoCores?: number;
  readonly memoryWorkingSetBytes?: number;
}

export interface ClusterMetrics {
  readonly nodes: readonly ({ readonly name: string } & Usage)[];
  readonly pods: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly node: string;
    readonly containers: readonly ({ readonly name: string } & Usage)[];
  }[];
}

interface Measured {
  readonly cpu?: { readonly usageNanoCores?: number };
  readonly memory?: { readonly workingSetBytes?: number };
}
interface Summary {
  readonly node: Measured;
  readonly pods?: readonly {
    readonly podRef: { readonly name: string; readonly namespace: string };
    readonly containers?: readonly (Measured & { readonly name: string })[];
  }[];
}

/** From the nodes' own summaries. */
export async function readMetrics(client: Client): Promise<ClusterMetrics> {
  const { items } = await client.list(resources.nodes);
  const summaries = await Promise.all(
    items.map(async ({ metadata: { name } }) => ({
      name,
      summary: (await client.request({ method: "GET", path: `/api/v1/nodes/${name}/proxy/stats/summary` })) as Summary,
    })),
  );
  return {
    nodes: summaries.map(({ name, summary }) => ({ name, ...usageOf(summary.node) })),
    pods: summaries.flatMap(({ name: node, summary }) =>
      (summary.pods ?? []).map(({ podRef: { namespace, name }, containers = [] }) => ({
        namespace,
        name,
        node,
        containers: containers.map((container) => ({ name: container.name, ...usageOf(container) })),
      })),
    ),
  };
}

function usageOf({ cpu, memory }: Measured): Usage {
  return {
    ...(cpu?.usageNanoCores === undefined ? {} : { cpuNanoCores: cpu.usageNanoCores }),
    ...(memory?.workingSetBytes === undefined ? {} : { memoryWorkingSetBytes: memory.workingSetBytes }),
  };
}
