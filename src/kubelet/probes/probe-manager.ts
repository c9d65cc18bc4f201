import type { Clock, DeepReadonly, Random } from "#base";
import type { Engine } from "#engine";
import type { ContainerStatus, Probe } from "#kinds";
import type { ObservedContainer, ObservedPod } from "../pods/observe.ts";
import type { ProbeVerdicts } from "../pods/plan.ts";
import { isSidecar } from "../pods/restart-policy.ts";
import type { AnyContainer, ReadonlyPod } from "../ports.ts";
import type { ProbeView } from "../status/container-statuses.ts";
import type { Dial } from "./dial.ts";
import type { Outcome } from "./outcome.ts";
import { createProbeRunner, type ProbeRunner, type ProbeType, type Verdict } from "./probe-runner.ts";
import { runProbe } from "./prober.ts";

/** The probes of all pods of the node. */
export interface ProbeManager extends ProbeVerdicts, ProbeView {
  /**
   * Probes what runs, forgets what does not. `published` are the statuses that the API has: they tell, after a restart of
   * this process, what was known of containers that went on running.
   */
  sync(pod: ReadonlyPod, observed: ObservedPod, published: readonly DeepReadonly<ContainerStatus>[]): void;
  remove(uid: string): void;
  stop(): void;
}

export interface ProbeManagerDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: Random;
  readonly dial: Dial;
  /** The pod's address for probes. */
  addressOf(pod: ReadonlyPod): string;
  event(pod: ReadonlyPod, container: AnyContainer, type: "Warning" | "Normal", reason: string, message: string): void;
  /** A verdict of one of the pod's probes has changed. */
  changed(uid: string): void;
}

interface Probed {
  readonly uid: string;
  readonly runId: string;
  pod: ReadonlyPod;
  container: AnyContainer;
  startedAt: number;
  /** Found running when this process began. */
  readonly adopted: boolean;
  started: boolean;
  readonly runners: Map<ProbeType, ProbeRunner>;
  startup: Verdict;
  readiness: Verdict;
  liveness: Verdict;
}

const NAMES = { startup: "Startup", readiness: "Readiness", liveness: "Liveness" } as const;

export function createProbeManager(deps: ProbeManagerDeps): ProbeManager {
  const { clock } = deps;
  const bornAt = clock.now();
  const byRun = new Map<string, Probed>();
  const byPod = new Map<string, Set<string>>();

  function probed(
    pod: ReadonlyPod,
    container: AnyContainer,
    run: ObservedContainer,
    old?: DeepReadonly<ContainerStatus>,
  ): Probed {
    const known = old?.containerID?.endsWith(run.id) ?? false;
    const entry: Probed = {
      uid: pod.metadata?.uid ?? "",
      runId: run.id,
      pod,
      container,
      startedAt: run.startedAt ?? clock.now(),
      adopted: (run.startedAt ?? clock.now()) < bornAt,
      started: !container.startupProbe || (known && old?.started === true),
      runners: new Map(),
      startup: known && old?.started ? "success" : "unknown",
      readiness: known && old?.ready ? "success" : "failure",
      liveness: "success",
    };
    byRun.set(run.id, entry);
    const runs = byPod.get(entry.uid) ?? new Set();
    byPod.set(entry.uid, runs.add(run.id));
    return entry;
  }

  function report(entry: Probed, type: ProbeType, outcome: Outcome): void {
    const name = NAMES[type];
    const event = (reason: string, text: string) => deps.event(entry.pod, entry.container, "Warning", reason, text);
    if (outcome.result === "failure") event("Unhealthy", `${name} probe failed: ${outcome.output}`);
    else if (outcome.result === "warning") event("ProbeWarning", `${name} probe warning: ${outcome.output}`);
    else if (outcome.result === "error") {
      event("Unhealthy", `${name} probe errored and resulted in unknown state: ${outcome.output}`);
    }
  }

  function begin(entry: Probed, type: ProbeType, probe: DeepReadonly<Probe> | undefined, notBefore: number): void {
    if (!probe || entry.runners.has(type)) return;
    const runner = createProbeRunner(
      {
        clock,
        attempt: (signal) => {
          const target = { container: entry.container, containerId: entry.runId, podIP: deps.addressOf(entry.pod) };
          return attempt(deps, probe, target, signal);
        },
        report: (outcome) => report(entry, type, outcome),
        changed(verdict) {
          entry[type] = verdict;
          if (type === "startup" && verdict === "success") {
            entry.started = true;
            beginStarted(entry);
          }
          deps.changed(entry.uid);
        },
      },
      { type, probe, initial: entry[type] },
    );
    entry.runners.set(type, runner);
    const due = entry.startedAt + (probe.initialDelaySeconds ?? 0) * 1000;
    // After a restart of this process all probes would come at once.
    const spread = entry.adopted
      ? Math.floor(deps.random.next() * Math.min(10_000, (probe.periodSeconds ?? 10) * 1000))
      : 0;
    runner.start(Math.max(due, notBefore + spread));
  }

  function beginStarted(entry: Probed): void {
    begin(entry, "readiness", entry.container.readinessProbe, clock.now());
    if (!entry.pod.metadata?.deletionTimestamp) begin(entry, "liveness", entry.container.livenessProbe, clock.now());
  }

  function drop(runId: string): void {
    const entry = byRun.get(runId);
    if (!entry) return;
    for (const runner of entry.runners.values()) runner.stop();
    byRun.delete(runId);
    const runs = byPod.get(entry.uid);
    runs?.delete(runId);
    if (runs?.size === 0) byPod.delete(entry.uid);
  }

  function follow(entry: Probed): void {
    const deleted = entry.pod.metadata?.deletionTimestamp !== undefined;
    if (deleted) for (const type of ["startup", "liveness"] as const) entry.runners.get(type)?.stop();
    else if (!entry.started) begin(entry, "startup", entry.container.startupProbe, clock.now());
    if (entry.started) beginStarted(entry);
  }

  return {
    sync(pod, observed, published) {
      const uid = pod.metadata?.uid ?? "";
      const present = new Set<string>();
      for (const container of probedContainers(pod)) {
        const run = observed.containers.find((candidate) => candidate.name === container.name);
        if (run?.state !== "running") continue;
        present.add(run.id);
        const old = published.find((status) => status.name === container.name);
        const entry = byRun.get(run.id) ?? probed(pod, container, run, old);
        entry.pod = pod;
        follow(entry);
      }
      for (const id of [...(byPod.get(uid) ?? [])]) if (!present.has(id)) drop(id);
    },
    remove(uid) {
      for (const id of [...(byPod.get(uid) ?? [])]) drop(id);
    },
    stop() {
      for (const id of [...byRun.keys()]) drop(id);
    },
    startup: (id) => byRun.get(id)?.startup,
    liveness: (id) => byRun.get(id)?.liveness,
    started: (run, container) => byRun.get(run.id)?.started ?? !container.startupProbe,
    ready: (run, container) => !container.readinessProbe || byRun.get(run.id)?.readiness === "success",
  };
}

/** Mains and sidecars that have probes. */
const probedContainers = (pod: ReadonlyPod): readonly AnyContainer[] =>
  [...(pod.spec?.initContainers ?? []).filter(isSidecar), ...(pod.spec?.containers ?? [])].filter(
    (container) => container.startupProbe || container.readinessProbe || container.livenessProbe,
  );

const RETRIES = 3;

/** A probe that cannot be made is tried again at once, twice. */
async function attempt(
  deps: ProbeManagerDeps,
  probe: DeepReadonly<Probe>,
  target: Parameters<typeof runProbe>[2],
  signal: AbortSignal,
): Promise<Outcome> {
  for (let left = RETRIES; ; left--) {
    const outcome = await runProbe(deps, probe, target, signal);
    if (outcome.result !== "error" || left === 1 || signal.aborted) return outcome;
  }
}
