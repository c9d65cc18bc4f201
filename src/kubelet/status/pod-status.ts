import { type DeepReadonly, deepClone } from "#base";
import type { PodCondition, PodStatus } from "#kinds";
import { qosClassOf } from "../container-config/qos.ts";
import type { ObservedPod } from "../pods/observe.ts";
import { sandboxChange } from "../pods/plan.ts";
import { allContainersRestart, canRestartAll } from "../pods/restart-policy.ts";
import type { ReadonlyPod } from "../ports.ts";
import { allRestarting, containersReady, KUBELET_CONDITIONS, podInitialized, podReady } from "./conditions.ts";
import { containerStatuses, type ProbeView, timestamp, type WaitReasons } from "./container-statuses.ts";
import { limitMessages } from "./message-limit.ts";
import { isTerminalPhase, podPhase } from "./phase.ts";
import { podResourcesStatus } from "./pod-resources.ts";

export interface PodStatusInput {
  readonly pod: ReadonlyPod;
  readonly observed: ObservedPod;
  /** What was published last: the basis for all that must not change by itself. */
  readonly previous: DeepReadonly<PodStatus>;
  readonly waitReasons: WaitReasons;
  readonly probes: ProbeView;
  readonly hostIPs: readonly string[];
  readonly scheme: string;
  /** All containers have stopped for good, whatever the restart policy says. */
  readonly ended: boolean;
  /** The pod is ended from outside: deadline, eviction. */
  readonly evict?: { readonly reason: string; readonly message: string };
  /** `PodResizePending`, `PodResizeInProgress`. */
  readonly resizeConditions?: readonly PodCondition[];
  readonly resources?: ReadonlyMap<string, DeepReadonly<PodStatus>["resources"]>;
  /** Milliseconds. */
  readonly now: number;
}

/** The status of a pod as Kubernetes shows it, from what is observed. Pure. */
export function podStatus(input: PodStatusInput): PodStatus {
  const { pod, observed, previous } = input;
  const common = {
    pod,
    observed,
    waitReasons: input.waitReasons,
    probes: input.probes,
    scheme: input.scheme,
    ...(input.resources ? { resources: input.resources } : {}),
  };
  const main = containerStatuses({ ...common, previous: previous.containerStatuses ?? [] }, "main");
  const init = containerStatuses({ ...common, previous: previous.initContainerStatuses ?? [] }, "init");
  const ephemeral = containerStatuses({ ...common, previous: previous.ephemeralContainerStatuses ?? [] }, "ephemeral");
  const statuses = [...main, ...init];
  const active = observed.sandboxes[0];
  const hasRun = observed.containers.some(
    (run) => run.sandboxId === active?.id && pod.spec?.containers?.some((container) => container.name === run.name),
  );

  let phase = podPhase(pod, statuses, { ended: input.ended, hasRun });
  // A terminal phase never changes again.
  for (const earlier of [previous.phase, pod.status?.phase]) {
    if (!isTerminalPhase(phase) && isTerminalPhase(earlier)) phase = earlier as typeof phase;
  }
  const kept = phase === previous.phase;
  let reason = kept ? previous.reason || pod.status?.reason : undefined;
  let message = kept ? previous.message || pod.status?.message : undefined;
  if (input.evict) {
    phase = "Failed";
    ({ reason, message } = input.evict);
  }
  const published = pod.status?.phase;
  if (isTerminalPhase(published) && phase !== published) phase = published as typeof phase;

  const status: PodStatus = {
    phase,
    ...(reason ? { reason } : {}),
    ...(message ? { message } : {}),
    qosClass: qosClassOf(pod),
    startTime: previous.startTime ?? timestamp(input.now),
    observedGeneration: Math.max(pod.metadata?.generation ?? 0, previous.observedGeneration ?? 0),
    containerStatuses: main,
    ...(init.length > 0 ? { initContainerStatuses: init } : {}),
    ...(ephemeral.length > 0 ? { ephemeralContainerStatuses: ephemeral } : {}),
    ...addresses(input),
    ...podResourcesStatus(pod),
  };
  limitMessages(status);
  status.conditions = conditionsOf(input, status);
  return status;
}

function addresses({ pod, observed, previous, hostIPs, ended }: PodStatusInput): Partial<PodStatus> {
  const host = { hostIP: hostIPs[0] ?? "", hostIPs: hostIPs.map((ip) => ({ ip })) };
  const sandbox = observed.sandboxes[0];
  const known = (previous.podIPs ?? []).flatMap(({ ip }) => (ip ? [ip] : []));
  const stopping = ended || pod.metadata?.deletionTimestamp !== undefined || isTerminalPhase(previous.phase);
  let ips: readonly string[] = [];
  if (pod.spec?.hostNetwork) ips = known.length > 0 ? known : hostIPs;
  else if (sandbox?.state === "ready" && sandbox.ips.length > 0) ips = sandbox.ips;
  else if (stopping) ips = known;
  if (ips.length === 0) return host;
  return { ...host, podIP: ips[0] as string, podIPs: ips.map((ip) => ({ ip })) };
}

function conditionsOf(input: PodStatusInput, status: PodStatus): PodCondition[] {
  const { pod, previous, observed } = input;
  const phase = status.phase as "Pending";
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  const others = (pod.status?.conditions ?? []).filter(
    (condition) => !KUBELET_CONDITIONS.has(condition.type) && condition.type !== "DisruptionTarget",
  );
  const disruption =
    previous.conditions?.find((condition) => condition.type === "DisruptionTarget") ??
    pod.status?.conditions?.find((condition) => condition.type === "DisruptionTarget");
  const wasInitialized = previous.conditions?.find((c) => c.type === "Initialized")?.status === "True";
  const own = [
    {
      type: "PodReadyToStartContainers",
      status: sandboxChange(pod, observed).changed ? "False" : "True",
    },
    podInitialized(pod, all, phase, wasInitialized),
    podReady(pod, pod.status?.conditions ?? [], all, phase),
    containersReady(pod, all, phase),
    { type: "PodScheduled", status: "True" },
    ...(canRestartAll(pod) ? [allRestarting(phase, restartIsGoingOn(input))] : []),
  ];
  const observedGeneration = pod.metadata?.generation ?? 0;
  return [
    ...deepClone<PodCondition[]>([...others] as PodCondition[]),
    ...(input.resizeConditions ?? []),
    ...(disruption ? [deepClone<PodCondition>(disruption)] : []),
    ...own.map((condition) => stamped({ ...condition, observedGeneration } as PodCondition, previous, input.now)),
  ];
}

const restartIsGoingOn = ({ pod, observed, previous }: PodStatusInput): boolean =>
  observed.containers.length > 0 && allContainersRestart(pod, observed, previous as ReadonlyPod["status"]);

/** `lastTransitionTime` moves only when `status` does. */
function stamped(condition: PodCondition, previous: DeepReadonly<PodStatus>, now: number): PodCondition {
  const before = previous.conditions?.find((item) => item.type === condition.type);
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : undefined;
  return {
    ...condition,
    lastProbeTime: null,
    lastTransitionTime: lastTransitionTime ?? timestamp(now),
  } as unknown as PodCondition;
}

/** The status of a pod that the node refuses. */
export function rejectedStatus(pod: ReadonlyPod, refusal: { reason: string; message: string }, now: number): PodStatus {
  return {
    phase: "Failed",
    reason: refusal.reason,
    message: `Pod was rejected: ${refusal.message}`,
    qosClass: qosClassOf(pod),
    startTime: pod.status?.startTime ?? timestamp(now),
    observedGeneration: pod.metadata?.generation ?? 0,
  };
}

/**
 * The last status of a pod whose containers have all stopped: what is not terminated counts as lost, the phase is terminal.
 */
export function finalStatus(pod: ReadonlyPod, status: DeepReadonly<PodStatus>): PodStatus {
  const last = deepClone<PodStatus>(status);
  if (hasInitialized(pod, last)) for (const item of last.containerStatuses ?? []) markLost(item);
  const init = last.initContainerStatuses ?? [];
  const lastStarted = init.findLastIndex((item) => item.lastState?.terminated || !item.state?.waiting);
  for (const item of init.slice(0, lastStarted + 1)) markLost(item);
  if (!isTerminalPhase(last.phase)) last.phase = "Failed";
  return last;
}

function markLost(item: NonNullable<PodStatus["containerStatuses"]>[number]): void {
  if (item.state?.terminated) return;
  const message = "The container could not be located when the pod was terminated";
  const terminated = { exitCode: 137, reason: "ContainerStatusUnknown", message, startedAt: null, finishedAt: null };
  item.state = { terminated: terminated as never };
  item.ready = false;
  item.started = false;
}

function hasInitialized(pod: ReadonlyPod, status: PodStatus): boolean {
  const containers = pod.spec?.initContainers ?? [];
  if (containers.length === 0) return true;
  if ((status.containerStatuses ?? []).some((item) => item.lastState?.terminated || !item.state?.waiting)) return true;
  const last = status.initContainerStatuses?.at(-1);
  const container = containers.at(-1);
  if (!last || !container) return false;
  if (container.restartPolicy === "Always") return last.state?.running !== undefined && last.started === true;
  return last.lastState?.terminated?.exitCode === 0 || last.state?.terminated?.exitCode === 0;
}
