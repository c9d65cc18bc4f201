import type { ConnectorDeps } from "../ports.ts";
import { containerUsage, machineUsage } from "./usage.ts";

type Labels = Readonly<Record<string, string>>;

/** Text in the Prometheus exposition format. */
interface Exposition {
  family(name: string, type: "counter" | "gauge", help: string, samples: readonly [Labels, number][]): void;
  toString(): string;
}

function createExposition(time?: number): Exposition {
  const lines: string[] = [];
  return {
    family(name, type, help, samples) {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
      for (const [labels, value] of samples) {
        const pairs = Object.entries(labels).map(([key, text]) => `${key}="${text.replace(/[\\"\n]/g, escapeLabel)}"`);
        lines.push(
          `${name}${pairs.length > 0 ? `{${pairs.join(",")}}` : ""} ${value}${time === undefined ? "" : ` ${time}`}`,
        );
      }
    },
    toString: () => (lines.length > 0 ? `${lines.join("\n")}\n` : ""),
  };
}

const escapeLabel = (character: string) => (character === "\n" ? "\\n" : `\\${character}`);

/** What `metrics/resource` gives: the source of `kubectl top`. Source: https://kubernetes.io/docs/reference/instrumentation/node-metrics/ */
export async function resourceMetrics(deps: ConnectorDeps): Promise<string> {
  const [usage, machine] = await Promise.all([containerUsage(deps), machineUsage()]);
  const text = createExposition(deps.clock.now());
  const labels = (entry: (typeof usage)[number]): Labels => ({
    container: entry.name,
    namespace: entry.pod.metadata.namespace ?? "",
    pod: entry.pod.metadata.name,
  });
  const seconds = (nanoseconds: number) => nanoseconds / 1e9;
  const memory = machine.memoryTotalBytes - machine.memoryAvailableBytes;
  text.family(
    "container_cpu_usage_seconds_total",
    "counter",
    "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
    usage.map((entry) => [labels(entry), seconds(entry.stats.cpuUsageNanoseconds)]),
  );
  text.family(
    "container_memory_working_set_bytes",
    "gauge",
    "[STABLE] Current working set of the container in bytes",
    usage.map((entry) => [labels(entry), entry.stats.memoryWorkingSetBytes]),
  );
  text.family(
    "container_start_time_seconds",
    "gauge",
    "[STABLE] Start time of the container since unix epoch in seconds",
    usage.map((entry) => [labels(entry), (entry.container.startedAt ?? 0) / 1000]),
  );
  text.family(
    "node_cpu_usage_seconds_total",
    "counter",
    "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
    [[{}, seconds(machine.cpuNanoseconds)]],
  );
  text.family("node_memory_working_set_bytes", "gauge", "[STABLE] Current working set of the node in bytes", [
    [{}, memory],
  ]);
  const pods = new Map<string, { labels: Labels; cpu: number; memory: number }>();
  for (const { pod, stats } of usage) {
    const key = pod.metadata.uid ?? "";
    const sum = pods.get(key) ?? {
      labels: { namespace: pod.metadata.namespace ?? "", pod: pod.metadata.name },
      cpu: 0,
      memory: 0,
    };
    pods.set(key, {
      ...sum,
      cpu: sum.cpu + seconds(stats.cpuUsageNanoseconds),
      memory: sum.memory + stats.memoryWorkingSetBytes,
    });
  }
  text.family(
    "pod_cpu_usage_seconds_total",
    "counter",
    "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
    [...pods.values()].map((pod) => [pod.labels, pod.cpu]),
  );
  text.family(
    "pod_memory_working_set_bytes",
    "gauge",
    "[STABLE] Current working set of the pod in bytes",
    [...pods.values()].map((pod) => [pod.labels, pod.memory]),
  );
  text.family(
    "resource_scrape_error",
    "gauge",
    "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
    [[{}, 0]],
  );
  return text.toString();
}

/** The families of cAdvisor that the engine has figures for. */
export async function cadvisorMetrics(deps: ConnectorDeps): Promise<string> {
  const [usage, machine] = await Promise.all([containerUsage(deps), machineUsage()]);
  const text = createExposition(deps.clock.now());
  const samples = (extra: Labels, value: (entry: (typeof usage)[number]) => number): [Labels, number][] =>
    usage.map((entry) => [
      {
        container: entry.name,
        ...extra,
        id: `/${entry.container.id}`,
        image: entry.container.config.imageRef,
        name: entry.container.id,
        namespace: entry.pod.metadata.namespace ?? "",
        pod: entry.pod.metadata.name,
      },
      value(entry),
    ]);
  text.family(
    "container_cpu_usage_seconds_total",
    "counter",
    "Cumulative cpu time consumed in seconds.",
    samples({ cpu: "total" }, ({ stats }) => stats.cpuUsageNanoseconds / 1e9),
  );
  text.family(
    "container_memory_rss",
    "gauge",
    "Size of RSS in bytes.",
    samples({}, ({ stats }) => stats.memoryRssBytes),
  );
  text.family(
    "container_memory_usage_bytes",
    "gauge",
    "Current memory usage in bytes, including all memory regardless of when it was accessed",
    samples({}, ({ stats }) => stats.memoryUsageBytes),
  );
  text.family(
    "container_memory_working_set_bytes",
    "gauge",
    "Current working set in bytes.",
    samples({}, ({ stats }) => stats.memoryWorkingSetBytes),
  );
  text.family(
    "container_processes",
    "gauge",
    "Number of processes running inside the container.",
    samples({}, ({ stats }) => stats.pids),
  );
  text.family(
    "container_start_time_seconds",
    "gauge",
    "Start time of the container since unix epoch in seconds.",
    samples({}, ({ container }) => Math.floor((container.startedAt ?? 0) / 1000)),
  );
  text.family("machine_memory_bytes", "gauge", "Amount of memory installed on the machine.", [
    [{}, machine.memoryTotalBytes],
  ]);
  return text.toString();
}

/** The kubelet's own figures. */
export function kubeletMetrics({ engine, runtime }: ConnectorDeps, nodeName: string): string {
  const text = createExposition();
  const states = new Map<string, number>();
  for (const { state } of engine.containers()) states.set(state, (states.get(state) ?? 0) + 1);
  text.family("kubelet_node_name", "gauge", "[ALPHA] The node's name. The count is always 1.", [
    [{ node: nodeName }, 1],
  ]);
  text.family(
    "kubelet_running_containers",
    "gauge",
    "[BETA] Number of containers currently running",
    [...states].map(([state, count]) => [{ container_state: state }, count]),
  );
  text.family("kubelet_running_pods", "gauge", "[BETA] Number of pods that have a running pod sandbox", [
    [{}, engine.sandboxes().filter(({ state }) => state === "ready").length],
  ]);
  text.family("kubelet_active_pods", "gauge", "[ALPHA] The number of pods the kubelet considers active", [
    [{}, runtime.pods().filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed").length],
  ]);
  return text.toString();
}
