import { monitorEventLoopDelay } from "node:perf_hooks";
import type { ApiRequest, ApiResponse, Scheme } from "#kinds";
import type { Store } from "#store";
import type { RequestInfo } from "./ports.ts";
import { prefixOf } from "./registry/keys.ts";

type Labels = Readonly<Record<string, string>>;

/** Upper ends of the classes of a request's duration, seconds; those of the original. */
const BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];

interface Series {
  readonly labels: Labels;
  count: number;
  sum: number;
  readonly buckets: number[];
}

/** What the server counts of itself, in the Prometheus text format under the names of kube-apiserver. */
export interface Metrics {
  /** To be called when a request comes; the function that it gives, when it was answered. */
  begin(request: ApiRequest, info: RequestInfo): (response: ApiResponse) => void;
  text(): string;
}

/** @see https://kubernetes.io/docs/reference/instrumentation/metrics/ */
export function createMetrics(deps: { store: Store; scheme: Scheme; now(): number; startedAt: number }): Metrics {
  const requests = new Map<string, { labels: Labels; count: number }>();
  const durations = new Map<string, Series>();
  const inFlight = { mutating: 0, readOnly: 0 };
  const delay = monitorEventLoopDelay({ resolution: 50 });
  return {
    begin(_request, info) {
      const kind = MUTATING.has(info.verb) ? "mutating" : "readOnly";
      const began = deps.now();
      inFlight[kind]++;
      return (response) => {
        inFlight[kind]--;
        const labels = labelsOf(info);
        const key = JSON.stringify(labels);
        count(requests, `${key} ${response.code}`, { ...labels, code: String(response.code) });
        // watches and the like last as long as their clients wish
        if (response.body.kind === "object" || response.body.kind === "bytes")
          observe(durations, key, labels, (deps.now() - began) / 1000);
      };
    },
    text() {
      const { heapUsed, rss } = process.memoryUsage();
      const { user, system } = process.cpuUsage();
      delay.enable();
      return [
        ...counter(
          "apiserver_request_total",
          "Counter of apiserver requests broken out for each verb, resource and code.",
          requests,
        ),
        ...histogram(
          "apiserver_request_duration_seconds",
          "Response latency distribution in seconds for each verb and resource.",
          durations,
        ),
        ...gauge("apiserver_current_inflight_requests", "Number of requests that are worked on, by kind.", [
          [{ request_kind: "mutating" }, inFlight.mutating],
          [{ request_kind: "readOnly" }, inFlight.readOnly],
        ]),
        ...gauge("apiserver_storage_objects", "Number of stored objects, by resource.", objects(deps)),
        ...gauge("apiserver_resource_revision", "The revision of the last write.", [[{}, deps.store.revision]]),
        ...line(
          "process_cpu_seconds_total",
          "counter",
          "Total user and system CPU time spent in seconds.",
          (user + system) / 1e6,
        ),
        ...line("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", rss),
        ...line(
          "process_start_time_seconds",
          "gauge",
          "Start time of the process since unix epoch in seconds.",
          deps.startedAt / 1000,
        ),
        ...line("nodejs_heap_size_used_bytes", "gauge", "Process heap size used from Node.js in bytes.", heapUsed),
        ...line(
          "nodejs_eventloop_lag_p99_seconds",
          "gauge",
          "The 99th percentile of the event loop's delay since the last scrape but one.",
          Number.isFinite(delay.percentile(99)) ? delay.percentile(99) / 1e9 : 0,
        ),
        "",
      ].join("\n");
    },
  };
}

const MUTATING = new Set(["create", "update", "patch", "delete", "deletecollection", "post", "put"]);

function labelsOf(info: RequestInfo): Labels {
  if (!info.isResourceRequest)
    return { verb: info.verb.toUpperCase(), group: "", version: "", resource: "", subresource: "", scope: "" };
  const { verb, group, version, resource, subresource, namespace, name } = info;
  const scope = name ? "resource" : namespace ? "namespace" : "cluster";
  return { verb: VERBS[verb] ?? verb.toUpperCase(), group, version, resource, subresource, scope };
}
const VERBS: Readonly<Record<string, string>> = { create: "POST", update: "PUT", deletecollection: "DELETECOLLECTION" };

function count(series: Map<string, { labels: Labels; count: number }>, key: string, labels: Labels): void {
  const one = series.get(key);
  if (one) one.count++;
  else if (series.size < MAX_SERIES) series.set(key, { labels, count: 1 });
}
/** Paths of clients make labels: their number is bounded. */
const MAX_SERIES = 5_000;

function observe(series: Map<string, Series>, key: string, labels: Labels, seconds: number): void {
  let one = series.get(key);
  if (!one) {
    if (series.size >= MAX_SERIES) return;
    one = { labels, count: 0, sum: 0, buckets: BUCKETS.map(() => 0) };
    series.set(key, one);
  }
  one.count++;
  one.sum += seconds;
  const index = BUCKETS.findIndex((end) => seconds <= end);
  if (index >= 0) one.buckets[index]!++;
}

function objects({ store, scheme }: { store: Store; scheme: Scheme }): [Labels, number][] {
  const counted = new Map<string, [Labels, number]>();
  for (const kind of scheme.all()) {
    const prefix = prefixOf(kind);
    if (kind.verbs.includes("list") && !counted.has(prefix))
      counted.set(prefix, [
        { resource: kind.group ? `${kind.resource}.${kind.group}` : kind.resource },
        store.count(prefix),
      ]);
  }
  return [...counted.values()];
}

function head(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function line(name: string, type: string, help: string, value: number): string[] {
  return [...head(name, type, help), `${name} ${value}`];
}

function gauge(name: string, help: string, samples: readonly (readonly [Labels, number])[]): string[] {
  return [...head(name, "gauge", help), ...samples.map(([labels, value]) => sample(name, labels, value))];
}

function counter(name: string, help: string, series: ReadonlyMap<string, { labels: Labels; count: number }>): string[] {
  return [...head(name, "counter", help), ...[...series.values()].map((one) => sample(name, one.labels, one.count))];
}

function histogram(name: string, help: string, series: ReadonlyMap<string, Series>): string[] {
  return [...head(name, "histogram", help), ...[...series.values()].flatMap((one) => histogramLines(name, one))];
}

function histogramLines(name: string, { labels, count: total, sum, buckets }: Series): string[] {
  let below = 0;
  const lines = BUCKETS.map((end, i) => {
    below += buckets[i]!;
    return sample(`${name}_bucket`, { ...labels, le: String(end) }, below);
  });
  return [
    ...lines,
    sample(`${name}_bucket`, { ...labels, le: "+Inf" }, total),
    sample(`${name}_sum`, labels, sum),
    sample(`${name}_count`, labels, total),
  ];
}

function sample(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${text.replace(/[\\"\n]/g, escapeLabel)}"`);
  return `${name}${pairs.length > 0 ? `{${pairs.join(",")}}` : ""} ${value}`;
}

const escapeLabel = (character: string): string => (character === "\n" ? "\\n" : `\\${character}`);
