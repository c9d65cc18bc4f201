import type { ContainerStatus, Pod } from "../../generated/types.ts";
import { ageColumn, column, nameColumn, since } from "../../columns/column.ts";
import type { Column } from "../../scheme.ts";
import { isSidecar } from "./resources.ts";
import { isPodReady, podCondition } from "./state.ts";

/** What `kubectl get pods` shows of a pod. */
export interface PodSummary {
  readonly ready: number;
  readonly total: number;
  /** `Running`, `Init:0/1`, `CrashLoopBackOff`, `Terminating`, … */
  readonly status: string;
  readonly restarts: number;
  /** RFC 3339 time of the last restart, if there was one. */
  readonly lastRestart: string | undefined;
}

interface Tally {
  restarts: number;
  lastRestart: string | undefined;
  ready: number;
  reason: string;
}

/** Readiness, status and restarts of a pod, told from its spec and status alone. */
export function summarizePod(pod: Pod): PodSummary {
  const initContainers = pod.spec.initContainers ?? [];
  const sidecars = new Set(initContainers.filter(isSidecar).map(({ name }) => name));
  const gated = podCondition(pod, "PodScheduled")?.reason === "SchedulingGated";
  const reason = gated ? "SchedulingGated" : pod.status?.reason || pod.status?.phase || "";
  const tally: Tally = { restarts: 0, lastRestart: undefined, ready: 0, reason };
  const initializing = tallyInit(pod, sidecars, tally);
  if (!initializing || podCondition(pod, "Initialized")?.status === "True") tallyMain(pod, sidecars, tally);
  return {
    ready: tally.ready,
    total: (pod.spec.containers ?? []).length + sidecars.size,
    status: deletionStatus(pod) ?? tally.reason,
    restarts: tally.restarts,
    lastRestart: tally.lastRestart,
  };
}

function deletionStatus(pod: Pod): string | undefined {
  if (!pod.metadata.deletionTimestamp) return undefined;
  if (pod.status?.reason === "NodeLost") return "Unknown";
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed" ? undefined : "Terminating";
}

/** True while init containers keep the others from starting; `reason` then says `Init:…`. */
function tallyInit(pod: Pod, sidecars: ReadonlySet<string>, tally: Tally): boolean {
  const statuses = pod.status?.initContainerStatuses ?? [];
  const count = (pod.spec.initContainers ?? []).length;
  for (const [i, status] of statuses.entries()) {
    countRestarts(status, tally);
    const { terminated, waiting } = status.state ?? {};
    if (terminated?.exitCode === 0) continue;
    if (sidecars.has(status.name) && status.started) {
      if (status.ready) tally.ready++;
      continue;
    }
    if (terminated) tally.reason = `Init:${endOf(terminated)}`;
    else if (waiting?.reason && waiting.reason !== "PodInitializing") tally.reason = `Init:${waiting.reason}`;
    else tally.reason = `Init:${i}/${count}`;
    return true;
  }
  return false;
}

function tallyMain(pod: Pod, sidecars: ReadonlySet<string>, tally: Tally): void {
  tally.restarts = 0;
  tally.lastRestart = undefined;
  for (const status of pod.status?.initContainerStatuses ?? []) {
    if (sidecars.has(status.name)) countRestarts(status, tally);
  }
  let running = false;
  let errorReason = "";
  for (const status of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    countRestarts(status, tally);
    const { terminated, waiting, running: isRunning } = status.state ?? {};
    if (waiting?.reason) {
      tally.reason = waiting.reason;
    } else if (terminated) {
      tally.reason = endOf(terminated);
      if (terminated.exitCode !== 0) errorReason = tally.reason;
    } else if (status.ready && isRunning) {
      running = true;
      tally.ready++;
    }
  }
  if (tally.reason !== "Completed") return;
  if (running && isPodReady(pod)) tally.reason = "Running";
  else if (errorReason) tally.reason = errorReason;
  else if (running) tally.reason = "NotReady";
}

function endOf(terminated: { reason?: string; signal?: number; exitCode: number }): string {
  if (terminated.reason) return terminated.reason;
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`;
}

function countRestarts(status: ContainerStatus, tally: Tally): void {
  tally.restarts += status.restartCount ?? 0;
  const finished = status.lastState?.terminated?.finishedAt;
  if (finished && (!tally.lastRestart || Date.parse(finished) > Date.parse(tally.lastRestart)))
    tally.lastRestart = finished;
}

function restartsCell(pod: Pod, now: number): string {
  const { restarts, lastRestart } = summarizePod(pod);
  return restarts > 0 && lastRestart ? `${restarts} (${since(lastRestart, now)} ago)` : String(restarts);
}

function readinessGatesCell(pod: Pod): string {
  const gates = pod.spec.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const met = gates.filter(({ conditionType }) => podCondition(pod, conditionType)?.status === "True");
  return `${met.length}/${gates.length}`;
}

export const podColumns: readonly Column[] = [
  nameColumn,
  column<Pod>(
    "Ready",
    (pod) => {
      const { ready, total } = summarizePod(pod);
      return `${ready}/${total}`;
    },
    { description: "Ready containers of all containers" },
  ),
  column<Pod>("Status", (pod) => summarizePod(pod).status, { description: "What its containers are doing" }),
  column<Pod>("Restarts", restartsCell, { description: "Restarts of its containers, and when the last one was" }),
  ageColumn,
  column<Pod>("IP", (pod) => pod.status?.podIPs?.[0]?.ip || "<none>", {
    wide: true,
    description: "Address of the pod",
  }),
  column<Pod>("Node", (pod) => pod.spec.nodeName || "<none>", { wide: true, description: "Node that it runs on" }),
  column<Pod>("Nominated Node", (pod) => pod.status?.nominatedNodeName || "<none>", {
    wide: true,
    description: "Node that pods are being preempted on for it",
  }),
  column<Pod>("Readiness Gates", readinessGatesCell, {
    wide: true,
    description: "Conditions met of those it waits for",
  }),
];
