import { type DeepReadonly, messageOf } from "#base";
import type { LinuxResources } from "#engine";
import type { PodCondition, PodStatus } from "#kinds";
import type { ObservedContainer, ObservedPod } from "../pods/observe.ts";
import { recordEvent, type WorkerDeps } from "../pods/worker-deps.ts";
import type { ReadonlyPod } from "../ports.ts";
import { timestamp } from "../status/container-statuses.ts";
import {
  type Allocation,
  allocationOf,
  changedResources,
  needsRestart,
  POD,
  type Resources,
  resizable,
  sameAllocation,
  widest,
  withAllocation,
} from "./changes.ts";

/**
 * Resizing a pod in place: what its spec asks for is given to it when the node has it, then put in force container by
 * container, in place or by a restart as `resizePolicy` says.
 *
 * Source: https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/, KEP-1287
 */
export interface PodResize {
  /**
   * The pod with the resources that it has been given, which are those of its spec unless the node lacks them.
   * `settled` is false while containers are being made from an earlier answer.
   */
  allocate(
    pod: ReadonlyPod,
    context: { observed: ObservedPod; previous: DeepReadonly<PodStatus>; settled: boolean },
  ): ReadonlyPod;
  conditions(): PodCondition[];
  /** Resources in force, by container, where they are not those that were given. */
  inForce(observed: ObservedPod): ReadonlyMap<string, Resources>;
  /** Ids of runs that have to be restarted for their resources. */
  restarts(pod: ReadonlyPod, observed: ObservedPod): ReadonlySet<string>;
  /** Something can be put in force without a restart. */
  due(pod: ReadonlyPod, observed: ObservedPod): boolean;
  /** Puts it in force. */
  actuate(pod: ReadonlyPod, observed: ObservedPod): Promise<void>;
  /** When to look again by itself, milliseconds. */
  readonly retryAt: number | undefined;
}

interface Pending {
  readonly generation: number;
  readonly reason: "Deferred" | "Infeasible";
  readonly message: string;
  readonly since: number;
}

interface InProgress {
  readonly generation: number;
  readonly since: number;
  error?: string;
}

const RETRY = 5000;

export function createPodResize(
  deps: Pick<WorkerDeps, "engine" | "clock" | "recorder" | "configs" | "fits">,
): PodResize {
  const { clock, engine } = deps;
  let allocation: Allocation | undefined;
  const actuated = new Map<string, Resources>();
  let actuatedPod: Resources | undefined;
  let pending: Pending | undefined;
  let inProgress: InProgress | undefined;
  /** When the node is asked again, and when what failed is tried again. */
  let retryAt: number | undefined;
  let actuateAt: number | undefined;

  const event = (pod: ReadonlyPod, type: "Normal" | "Warning", reason: string, text: string, error?: string) => {
    const containers = resizable(pod).map(({ name, resources = {} }) => ({ name, resources: written(resources) }));
    const detail = { containers, generation: pod.metadata?.generation ?? 0, ...(error ? { error } : {}) };
    recordEvent(deps, pod, { type, reason, message: `Pod resize ${text}: ${JSON.stringify(detail)}` });
  };

  function consider(pod: ReadonlyPod, desired: Allocation): void {
    const generation = pod.metadata?.generation ?? 0;
    if (pending?.generation === generation && retryAt !== undefined && clock.now() < retryAt) return;
    retryAt = undefined;
    const refusal = deps.fits(pod);
    if (!refusal) {
      allocation = desired;
      pending = undefined;
      inProgress = { generation, since: inProgress?.since ?? clock.now() };
      actuateAt = undefined;
      event(pod, "Normal", "ResizeStarted", "started");
      return;
    }
    const { feasible, resource, message } = refusal;
    const reason = feasible ? "Deferred" : "Infeasible";
    retryAt = clock.now() + RETRY;
    if (pending?.generation === generation && pending.message === message) return;
    if (pending?.generation !== generation || pending.reason !== reason) {
      event(pod, "Warning", `Resize${reason}`, feasible ? `OutOf${resource}` : "infeasible", message);
    }
    pending = { generation, reason, message, since: pending?.reason === reason ? pending.since : clock.now() };
  }

  const running = (pod: ReadonlyPod, observed: ObservedPod) =>
    resizable(pod).flatMap((container) => {
      const run = observed.containers.find((candidate) => candidate.name === container.name);
      if (run?.state !== "running") return [];
      const changed = changedResources(actuated.get(run.id) ?? {}, container.resources ?? {});
      return [{ container, run, changed, restart: needsRestart(container, changed) }];
    });
  const outdated = (pod: ReadonlyPod, observed: ObservedPod) =>
    running(pod, observed).filter(({ changed }) => changed.length > 0);

  const podOutdated = (pod: ReadonlyPod) => changedResources(actuatedPod ?? {}, pod.spec?.resources ?? {}).length > 0;

  /** New runs are made with what was given then. */
  function follow(pod: ReadonlyPod, observed: ObservedPod): void {
    const present = new Set(observed.containers.map((run) => run.id));
    for (const id of actuated.keys()) if (!present.has(id)) actuated.delete(id);
    actuatedPod ??= pod.spec?.resources ?? {};
    for (const { name, resources = {} } of resizable(pod)) {
      for (const run of observed.containers) {
        if (run.name === name && !actuated.has(run.id)) actuated.set(run.id, resources);
      }
    }
  }

  async function checkMemory(runs: readonly { run: ObservedContainer; wanted: LinuxResources }[]): Promise<void> {
    for (const { run, wanted } of runs) {
      const { memoryLimitBytes: limit } = wanted;
      const before = engine.container(run.id)?.resources.memoryLimitBytes ?? Number.POSITIVE_INFINITY;
      if (limit === undefined || limit >= before) continue;
      const { memoryUsageBytes: usage } = await engine.stats(run.id);
      if (usage >= limit) {
        const what = `attempting to set container "${run.name}" memory limit (${limit}) below current usage (${usage})`;
        throw new Error(`cannot decrease memory limits: ${what}`);
      }
    }
  }

  return {
    allocate(pod, { observed, previous, settled }) {
      const desired = allocationOf(pod);
      allocation ??= observed.containers.length > 0 ? published(pod, previous) : desired;
      follow(withAllocation(pod, allocation), observed);
      if (sameAllocation(desired, allocation)) {
        // The same amounts, maybe written otherwise.
        allocation = desired;
        pending = undefined;
        retryAt = undefined;
      } else if (settled) consider(pod, desired);
      const given = withAllocation(pod, allocation);
      if (inProgress && settled && outdated(given, observed).length === 0 && !podOutdated(given)) {
        inProgress = undefined;
        actuateAt = undefined;
        event(given, "Normal", "ResizeCompleted", "completed");
      }
      return given;
    },
    conditions() {
      const condition = (type: string, generation: number, since: number, detail: object): PodCondition => ({
        type,
        status: "True",
        ...detail,
        observedGeneration: generation,
        lastProbeTime: timestamp(since),
        lastTransitionTime: timestamp(since),
      });
      const { reason, message } = pending ?? {};
      const error = inProgress?.error;
      return [
        ...(pending ? [condition("PodResizePending", pending.generation, pending.since, { reason, message })] : []),
        ...(inProgress
          ? [
              condition(
                "PodResizeInProgress",
                inProgress.generation,
                inProgress.since,
                error ? { reason: "Error", message: error } : {},
              ),
            ]
          : []),
      ];
    },
    inForce(observed) {
      const result = new Map<string, Resources>();
      for (const run of [...observed.containers].reverse()) {
        const resources = actuated.get(run.id);
        if (run.state !== "running" || !resources) continue;
        if (changedResources(resources, allocation?.get(run.name) ?? {}).length > 0) result.set(run.name, resources);
      }
      return result;
    },
    restarts: (pod, observed) =>
      new Set(outdated(pod, observed).flatMap(({ run, restart }) => (restart ? [run.id] : []))),
    due: (pod, observed) =>
      (actuateAt === undefined || clock.now() >= actuateAt) &&
      (podOutdated(pod) || outdated(pod, observed).some(({ restart }) => !restart)),
    async actuate(pod, observed) {
      const sandbox = engine.sandboxes().find(({ id }) => id === observed.sandboxes[0]?.id);
      // A container without a limit of its own has the pod's.
      const changing = podOutdated(pod) ? running(pod, observed) : outdated(pod, observed);
      const updates = changing
        .filter(({ restart }) => !restart)
        .map(({ container, run }) => ({ container, run, wanted: deps.configs.resources(pod, container) }));
      const whole = deps.configs.podResources(pod);
      actuateAt = undefined;
      try {
        await checkMemory(updates);
        if (sandbox) await engine.updateSandbox(sandbox.id, widest(sandbox.config.resources, whole));
        for (const { container, run, wanted } of updates) {
          await engine.updateContainer(run.id, wanted);
          actuated.set(run.id, container.resources ?? {});
        }
        if (sandbox && outdated(pod, observed).length === 0) await engine.updateSandbox(sandbox.id, whole);
        actuatedPod = pod.spec?.resources ?? {};
      } catch (error) {
        const message = messageOf(error);
        if (inProgress && inProgress.error !== message) {
          inProgress.error = message;
          event(pod, "Warning", "ResizeError", "error", message);
        }
        actuateAt = clock.now() + RETRY;
      }
    },
    get retryAt() {
      return retryAt === undefined || actuateAt === undefined ? (retryAt ?? actuateAt) : Math.min(retryAt, actuateAt);
    },
  };
}

/** As events write it: fields and names in order. */
function written({ limits, requests }: Resources): object {
  const sorted = (list: Readonly<Record<string, string>> | undefined) =>
    list && Object.fromEntries(Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { ...(limits ? { limits: sorted(limits) } : {}), ...(requests ? { requests: sorted(requests) } : {}) };
}

/** What a former process had put in force. */
function published(pod: ReadonlyPod, status: DeepReadonly<PodStatus>): Allocation {
  const statuses = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  const containers = resizable(pod).map(({ name, resources = {} }): [string, Resources] => {
    const known = statuses.find((item) => item.name === name);
    const inForce = known?.containerID ? known.resources : undefined;
    return [name, inForce ? { ...resources, ...inForce } : resources];
  });
  return new Map([...containers, [POD, pod.spec?.resources ?? {}]]);
}
