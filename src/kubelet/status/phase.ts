import type { DeepReadonly } from "#base";
import type { ContainerStatus } from "#kinds";
import { isSidecar, restartsAfter } from "../pods/restart-policy.ts";
import type { AnyContainer, ReadonlyPod } from "../ports.ts";

export type Phase = "Pending" | "Running" | "Succeeded" | "Failed";
type Status = DeepReadonly<ContainerStatus>;

export const isTerminalPhase = (phase: string | undefined): boolean => phase === "Succeeded" || phase === "Failed";

/** Reason of a container that is replaced because all of its pod restart in place. */
export const RESTARTING_ALL = "RestartingAllContainers";

/**
 * The phase by the states of all containers.
 *
 * @param statuses of main and init containers
 * @param options `ended`: nothing will be restarted any more; `hasRun`: a main container of the present sandbox has started
 *
 * Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase
 */
export function podPhase(
  pod: ReadonlyPod,
  statuses: readonly Status[],
  options: { ended: boolean; hasRun: boolean },
): Phase {
  const find = (container: AnyContainer) => statuses.find((status) => status.name === container.name);
  const init = countInit(pod, find);
  if (init.failedForGood > 0) return "Failed";
  const main = countMain(pod, find);
  const sidecars = countSidecars(pod, find);
  const unknown = main.unknown + sidecars.unknown;
  const running = main.running + sidecars.running;
  if (init.pending > 0 || (sidecars.pending > 0 && !options.hasRun) || main.waiting + sidecars.waiting > 0)
    return "Pending";
  if (running > 0 && unknown === 0) return "Running";
  if (running === 0 && main.stopped > 0 && unknown === 0) {
    const succeeded = main.stopped === main.succeeded ? "Succeeded" : "Failed";
    if (options.ended) return succeeded;
    return main.stopped === main.stoppedForGood ? succeeded : "Running";
  }
  return "Pending";
}

type Find = (container: AnyContainer) => Status | undefined;

function endedForGood(
  pod: ReadonlyPod,
  container: AnyContainer,
  ended: { exitCode: number; reason?: string },
): boolean {
  return ended.reason !== RESTARTING_ALL && !restartsAfter(pod, container, ended.exitCode);
}

function countInit(pod: ReadonlyPod, find: Find): { pending: number; failedForGood: number } {
  const count = { pending: 0, failedForGood: 0 };
  for (const container of pod.spec?.initContainers ?? []) {
    if (isSidecar(container)) continue;
    const status = find(container);
    const ended = status?.state?.terminated ?? (status?.state?.waiting ? status.lastState?.terminated : undefined);
    if (!ended) count.pending++;
    else if (ended.exitCode !== 0 && endedForGood(pod, container, ended)) count.failedForGood++;
  }
  return count;
}

function countSidecars(
  pod: ReadonlyPod,
  find: Find,
): { pending: number; running: number; waiting: number; unknown: number } {
  const count = { pending: 0, running: 0, waiting: 0, unknown: 0 };
  for (const container of pod.spec?.initContainers ?? []) {
    if (!isSidecar(container)) continue;
    const status = find(container);
    if (!status) count.unknown++;
    else if (status.state?.running) {
      if (!status.started) count.pending++;
      count.running++;
    } else if (status.state?.waiting && !status.lastState?.terminated) {
      count.pending++;
      count.waiting++;
    }
  }
  return count;
}

function countMain(pod: ReadonlyPod, find: Find) {
  const count = { running: 0, waiting: 0, stopped: 0, stoppedForGood: 0, succeeded: 0, unknown: 0 };
  for (const container of pod.spec?.containers ?? []) {
    const status = find(container);
    const { running, terminated, waiting } = status?.state ?? {};
    const ended = terminated ?? (waiting ? status?.lastState?.terminated : undefined);
    if (running) count.running++;
    else if (ended) {
      count.stopped++;
      if (endedForGood(pod, container, ended)) count.stoppedForGood++;
      if (terminated?.exitCode === 0) count.succeeded++;
    } else if (waiting) count.waiting++;
    else count.unknown++;
  }
  return count;
}
