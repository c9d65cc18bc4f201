import { type DeepReadonly, messageOf, type Timer } from "#base";
import type { PodStatus } from "#kinds";
import { type Budget, createBudget } from "../lifecycle/budget.ts";
import type { ReadonlyPod } from "../ports.ts";
import { isTerminalPhase } from "../status/phase.ts";
import { limitedVolumes } from "../volumes/usage.ts";
import { finalStatus, podStatus, rejectedStatus } from "../status/pod-status.ts";
import { applyPlan } from "./apply.ts";
import { graceSeconds, killPod, restoredPod } from "./kill.ts";
import type { ObservedPod } from "./observe.ts";
import { type PodPlan, planPod } from "./plan.ts";
import { createPodResize } from "../resize/pod-resize.ts";
import { createPodSight } from "./pod-sight.ts";
import type { StartFailure } from "./start-container.ts";
import { deadlineOf, fingerprint, isEmpty } from "./worker-checks.ts";
import { recordEvent, type WorkerDeps } from "./worker-deps.ts";

/** Brings one pod to what its spec says, and reports how it is. One step at a time; long work goes on beside the steps. */
export interface PodWorker {
  readonly uid: string;
  /** The pod as it is in the API now; undefined: it is gone from there. */
  pod(): ReadonlyPod | undefined;
  /** The same with the resources that it has been given. */
  given(): ReadonlyPod | undefined;
  setPod(pod: ReadonlyPod | undefined): void;
  wake(): void;
  /** What the pod waited for may be there: it does not wait for its next try. */
  retry(): void;
  /** Nothing of the pod is left on the node. */
  readonly finished: boolean;
  /** True while nothing is going on and nothing waits to be done. */
  readonly idle: boolean;
  stop(): void;
}

/**
 * running → terminating (containers are being stopped) → terminated (they are; volumes and sandbox are removed)
 * → finished (nothing is left). It starts in `running` after a restart too: what was observed decides how far it goes.
 */
type Stage = "running" | "terminating" | "terminated" | "finished";

const RETRY = { least: 10_000, spread: 5000 };
/** How long a failed pull is shown as such before the back-off is. */
const SHOW_PULL_FAILURE = 3000;
const KILL_RETRY = 1000;
/** How often it is looked whether scratch volumes keep to their limits, and how long a pod has that does not. */
const USAGE_CHECK = 10_000;
const EVICTION_GRACE = 1000;
const DEADLINE = {
  reason: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
};

export function createPodWorker(deps: WorkerDeps, uid: string, hooks: { finished(): void }): PodWorker {
  const { clock, view, writer } = deps;
  let current: ReadonlyPod | undefined;
  /** The last pod that the API had, or what the engine remembers of it. */
  let known: ReadonlyPod | undefined;
  let given: ReadonlyPod | undefined;
  let stage: Stage = "running";
  let admitted = false;
  let evict: { reason: string; message: string; graceMs?: number } | undefined;
  let usageAt: number | undefined;
  let budget: Budget | undefined;
  let activity: { controller: AbortController; done: Promise<void> } | undefined;
  let dirty = false;
  let stepping = false;
  let stopped = false;
  let retryAt: number | undefined;
  let killRetryAt: number | undefined;
  let deleteAsked = false;
  let volumesStand = false;
  let retryAsked = false;
  let timer: Timer | undefined;
  const logger = deps.logger.child({ uid });
  const resize = createPodResize(deps);
  const waitReasons = new Map<string, StartFailure>();
  const sight = createPodSight(deps, uid);

  const wake = () => {
    if (stopped || stage === "finished") return;
    dirty = true;
    if (!stepping) void run();
  };

  async function run(): Promise<void> {
    stepping = true;
    // Everything that comes in the same turn is one step.
    await Promise.resolve();
    while (dirty && !stopped) {
      dirty = false;
      try {
        await step();
      } catch (error) {
        logger.error("a step of a pod failed; it is tried again", { pod: known?.metadata?.name, error });
        retryIn(RETRY.least);
      }
    }
    stepping = false;
    arm();
  }

  function retryIn(ms: number): void {
    const at = clock.now() + ms;
    if (retryAt === undefined || at < retryAt) retryAt = at;
  }

  /** One timer for whatever comes next by itself. */
  function arm(): void {
    timer?.clear();
    timer = undefined;
    if (stopped || stage === "finished") return;
    const deadline = deadlineOf(known, writer.get(uid) ?? known?.status);
    // What goes on beside the steps wakes them when it ends.
    const due = activity ? [] : [retryAt, killRetryAt, resize.retryAt];
    if (stage === "running" && !evict) due.push(deadline, usageAt);
    const pending = due.filter((at) => at !== undefined);
    if (pending.length === 0) return;
    timer = clock.setTimer(wake, Math.max(0, Math.min(...pending) - clock.now()));
  }

  async function step(): Promise<void> {
    // Reading takes time in which a container may have been started: who plans with an old view starts it once more.
    while (sight.unread) await sight.read();
    const { observed, shown } = sight.look();
    known = current ?? known ?? restoredPod(deps, uid, observed);
    if (stage === "terminated") return conclude(known, observed);
    if (stage === "running" && current && !(await admit(known, observed))) return;
    given = resize.allocate(known, {
      observed,
      previous: previousStatus(known),
      settled: !activity && stage === "running" && !known.metadata?.deletionTimestamp,
    });
    const pod = given;
    deps.probes.sync(pod, observed, publishedStatuses(pod));
    if (stage === "running" && pastDeadline(pod) && !evict) {
      evict = DEADLINE;
      recordEvent(deps, pod, { type: "Normal", ...DEADLINE });
    }
    if (stage === "running" && !evict) await checkUsage(pod);
    const status = publish(pod, shown, false);
    const leaving = !current || pod.metadata?.deletionTimestamp || evict || isTerminalPhase(status.phase);
    if (leaving) return terminate(pod, observed);
    if (!activity && retryAsked) {
      retryAsked = false;
      retryAt = undefined;
    }
    if (!activity && resize.due(pod, observed)) return begin(() => resize.actuate(pod, observed));
    if (activity || (retryAt !== undefined && clock.now() < retryAt && !changedSince(observed))) return;
    retryAt = undefined;
    const plan = planPod(pod, observed, { ...deps.probes, resized: resize.restarts(pod, observed) });
    if (!isEmpty(plan, observed)) begin((signal) => execute(plan, pod, observed, signal));
    else if (!volumesStand) begin(() => takeOverVolumes(pod));
  }

  /** Ends a pod whose scratch volumes hold more than they may. */
  async function checkUsage(pod: ReadonlyPod): Promise<void> {
    if (!deps.volumes.overLimit || limitedVolumes(pod).length === 0) return;
    const now = clock.now();
    if (usageAt !== undefined && now < usageAt) return;
    usageAt = now + USAGE_CHECK;
    const message = await deps.volumes.overLimit(pod);
    if (message === undefined) return;
    evict = { reason: "Evicted", message, graceMs: EVICTION_GRACE };
    recordEvent(deps, pod, { type: "Warning", reason: "Evicted", message });
  }

  /** What a former process set up must be kept up to date too: a running pod's volumes are known before it is left alone. */
  async function takeOverVolumes(pod: ReadonlyPod): Promise<void> {
    const outcome = await deps.volumes.prepare(pod);
    volumesStand = outcome.state !== "waiting";
    if (outcome.state !== "waiting") return;
    for (const event of outcome.events) recordEvent(deps, pod, event);
    retryIn(outcome.retryAfterMs);
  }

  let lastSeen = "";
  /** While it waits for a retry, only a change of what is there makes it look at once. */
  function changedSince(observed: ObservedPod): boolean {
    const seen = fingerprint(known, observed, deps);
    const changed = seen !== lastSeen;
    lastSeen = seen;
    return changed;
  }

  /** False: the node refuses the pod, which is Failed now. */
  async function admit(pod: ReadonlyPod, observed: ObservedPod): Promise<boolean> {
    if (admitted) return true;
    if (observed.sandboxes.length > 0 || isTerminalPhase(pod.status?.phase) || pod.metadata?.deletionTimestamp) {
      admitted = true;
      return true;
    }
    const refusal = await deps.admit(pod);
    admitted = true;
    if (!refusal) return true;
    recordEvent(deps, pod, { type: "Warning", reason: refusal.reason, message: refusal.message });
    writer.set(pod, rejectedStatus(pod, refusal, clock.now()));
    stage = "terminated";
    return false;
  }

  function previousStatus(pod: ReadonlyPod): DeepReadonly<PodStatus> {
    return writer.get(uid) ?? pod.status ?? {};
  }

  function publishedStatuses(pod: ReadonlyPod) {
    const status = previousStatus(pod);
    return [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  }

  /** Computes and publishes the status; a terminal phase waits until the last container has stopped. */
  function publish(pod: ReadonlyPod, observed: ObservedPod, ended: boolean): PodStatus {
    const previous = previousStatus(pod);
    const status = podStatus({
      pod,
      observed,
      previous,
      waitReasons,
      probes: deps.probes,
      hostIPs: deps.hostIPs,
      scheme: deps.engine.info.scheme,
      ended,
      ...(evict ? { evict } : {}),
      resizeConditions: resize.conditions(),
      resources: resize.inForce(observed),
      now: clock.now(),
    });
    if (!current) return status;
    const runs = observed.containers.some((run) => run.state === "running") || sight.hides;
    if (isTerminalPhase(status.phase) && runs && !isTerminalPhase(previous.phase)) {
      const { phase = "Pending", reason, message } = previous;
      const { reason: _reason, message: _message, ...rest } = status;
      writer.set(pod, { ...rest, phase, ...(reason ? { reason } : {}), ...(message ? { message } : {}) });
    } else writer.set(pod, status);
    return status;
  }

  function begin(work: (signal: AbortSignal) => Promise<void>): void {
    const controller = new AbortController();
    retryAt = undefined;
    const done = work(controller.signal)
      .catch((error: unknown) => {
        if (controller.signal.aborted) return;
        logger.error("work on a pod failed; it is tried again", { pod: known?.metadata?.name, error });
        retryIn(RETRY.least);
      })
      .then(() => {
        activity = undefined;
        wake();
      });
    activity = { controller, done };
  }

  async function execute(plan: PodPlan, pod: ReadonlyPod, observed: ObservedPod, signal: AbortSignal): Promise<void> {
    sight.replacing(plan, observed);
    await applyPlan(deps, plan, {
      pod,
      observed,
      signal,
      hide: sight.hide,
      show: sight.show,
      started(name, failure) {
        if (!failure) waitReasons.delete(name);
        else {
          sight.notReplaced(name);
          waitReasons.set(name, failure);
          retryLater(failure);
        }
        wake();
      },
      waiting: (ms) => retryIn(ms ?? jitter()),
    }).finally(() => sight.notReplaced());
    lastSeen = fingerprint(known, sight.look().observed, deps);
  }

  const jitter = () => RETRY.least + Math.floor(deps.random.next() * RETRY.spread);

  /** At the end of the back-off; meanwhile now and then, so that its events tell that it goes on. */
  function retryLater({ reason, retryAt: at }: StartFailure): void {
    const rest = reason === "ErrImagePull" ? SHOW_PULL_FAILURE : jitter();
    retryIn(at === undefined ? rest : Math.min(rest, at - clock.now()));
  }

  /** Stops everything; called again while that goes on, to follow a shorter grace period. */
  async function terminate(pod: ReadonlyPod, observed: ObservedPod): Promise<void> {
    // A pod that is gone from the API was force-deleted: there is nobody to wait for.
    const own =
      (current ? graceSeconds(pod, undefined, "other") : Math.min(2, graceSeconds(pod, undefined, "other"))) * 1000;
    const grace = Math.min(own, evict?.graceMs ?? own);
    if (stage === "terminating") {
      budget?.shorten(grace);
      return;
    }
    activity?.controller.abort(new Error("the pod is being stopped"));
    if (activity || (killRetryAt !== undefined && clock.now() < killRetryAt)) return;
    killRetryAt = undefined;
    stage = "terminating";
    budget = createBudget(clock, grace);
    const running = budget;
    const podIP = observed.sandboxes[0]?.ips[0] ?? "";
    begin(async () => {
      try {
        await killPod(deps, pod, view.observe(uid), running, podIP);
        deps.probes.remove(uid);
        while (sight.unread) await sight.read();
        publish(given ?? pod, sight.look().observed, true);
        await deps.volumes.teardown(uid);
        stage = "terminated";
      } catch (error) {
        stage = "running";
        killRetryAt = clock.now() + KILL_RETRY;
        const message = `error killing pod: ${messageOf(error)}`;
        recordEvent(deps, pod, { type: "Warning", reason: "FailedKillPod", message });
        throw error;
      } finally {
        running[Symbol.dispose]();
      }
    });
  }

  /** All has stopped: the last status, then the object goes if it is to be deleted, then the remains. */
  async function conclude(pod: ReadonlyPod, observed: ObservedPod): Promise<void> {
    if (!current) return clean(observed);
    if (!pod.metadata?.deletionTimestamp && isTerminalPhase(writer.get(uid)?.phase ?? pod.status?.phase)) return;
    // An object with finalizers stays for a while; it needs to be asked for only once.
    if (deleteAsked) return;
    deleteAsked = pod.metadata?.deletionTimestamp !== undefined;
    const last = finalStatus(pod, previousStatus(pod));
    last.observedGeneration = Math.max(pod.metadata?.generation ?? 0, last.observedGeneration ?? 0);
    writer.set(pod, last, { delete: deleteAsked });
  }

  async function clean(observed: ObservedPod): Promise<void> {
    for (const sandbox of observed.sandboxes) await deps.engine.removeSandbox(sandbox.id);
    for (const run of observed.containers) await deps.engine.removeContainer(run.id);
    await deps.volumes.teardown(uid);
    writer.forget(uid);
    deps.images.forget(uid);
    deps.backoff.forget(`${uid}_`);
    stage = "finished";
    timer?.clear();
    hooks.finished();
  }

  function pastDeadline(pod: ReadonlyPod): boolean {
    const deadline = deadlineOf(pod, previousStatus(pod));
    return deadline !== undefined && clock.now() >= deadline;
  }

  return {
    uid,
    pod: () => current,
    given: () => current && (given ?? current),
    setPod(pod) {
      const metadataChanged = current && pod && current.metadata?.resourceVersion !== pod.metadata?.resourceVersion;
      current = pod;
      if (pod) known = pod;
      if (metadataChanged && stage === "running") deps.volumes.refresh(pod);
      wake();
    },
    wake,
    retry() {
      retryAsked = true;
      wake();
    },
    get finished() {
      return stage === "finished";
    },
    get idle() {
      return !dirty && !stepping && !activity;
    },
    stop() {
      stopped = true;
      timer?.clear();
      budget?.[Symbol.dispose]();
      activity?.controller.abort(new Error("the kubelet stops"));
    },
  };
}
