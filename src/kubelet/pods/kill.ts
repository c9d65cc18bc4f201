import { messageOf } from "#base";
import type { LifecycleHandler, Pod } from "#kinds";
import { ANNOTATION, LABEL } from "../container-config/labels.ts";
import { type Budget, createBudget } from "../lifecycle/budget.ts";
import { runHook } from "../lifecycle/hooks.ts";
import { createTerminationOrder, type TerminationOrder } from "../lifecycle/termination-order.ts";
import type { AnyContainer, ReadonlyPod } from "../ports.ts";
import type { ObservedContainer, ObservedPod } from "./observe.ts";
import type { Kill } from "./plan.ts";
import { findContainer } from "./restart-policy.ts";
import { recordEvent, type WorkerDeps } from "./worker-deps.ts";

/** Between the stop signal and KILL there are always two seconds. */
const LEAST_GRACE = 2000;

/** Seconds a container has to stop; a probe that failed may name its own. */
export function graceSeconds(pod: ReadonlyPod, container: AnyContainer | undefined, cause: Kill["cause"]): number {
  if (pod.metadata?.deletionGracePeriodSeconds != null) return pod.metadata.deletionGracePeriodSeconds;
  const probe =
    cause === "liveness" ? container?.livenessProbe : cause === "startup" ? container?.startupProbe : undefined;
  return probe?.terminationGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? 2;
}

/** Stops one container: hook, its turn, stop signal, KILL. Resolves when it has stopped. */
export async function killContainer(
  deps: WorkerDeps,
  pod: ReadonlyPod,
  run: Pick<ObservedContainer, "id" | "name">,
  options: { budget: Budget; message?: string; order?: TerminationOrder; podIP: string },
): Promise<void> {
  const { budget } = options;
  const container = findContainer(pod, run.name) ?? restoredContainer(deps, run);
  const message = options.message || `Stopping container ${run.name}`;
  recordEvent(deps, pod, { type: "Normal", reason: "Killing", message }, container);
  const preStop = container.lifecycle?.preStop;
  if (preStop && budget.remaining() > 0) await runPreStop(deps, pod, container, run.id, preStop, options);
  await options.order?.turn(run.name, budget.signal);
  const graceMs = Math.max(LEAST_GRACE, budget.remaining());
  // A budget that is cut short afterwards ends in KILL here; the engine's own timer would come too late.
  const cut = () => void deps.engine.signalContainer(run.id, "KILL").catch(() => undefined);
  const cutLater = () => void deps.clock.setTimer(cut, LEAST_GRACE);
  if (!budget.signal.aborted) budget.signal.addEventListener("abort", cutLater, { once: true });
  try {
    await deps.engine.stopContainer(run.id, { graceMs });
  } finally {
    budget.signal.removeEventListener("abort", cutLater);
    options.order?.stopped(run.name);
  }
}

async function runPreStop(
  deps: WorkerDeps,
  pod: ReadonlyPod,
  container: AnyContainer,
  containerId: string,
  handler: LifecycleHandler | NonNullable<NonNullable<AnyContainer["lifecycle"]>["preStop"]>,
  { budget, podIP }: { budget: Budget; podIP: string },
): Promise<void> {
  const event = (item: Parameters<typeof recordEvent>[2]) => recordEvent(deps, pod, item, container);
  const hook = runHook(deps, handler, { pod, container, containerId, podIP, signal: budget.signal, event }).catch(
    (error: unknown) => {
      if (budget.signal.aborted) return;
      deps.logger.info("preStop hook failed", { container: container.name, error: messageOf(error) });
      // The message may hold secrets; the event does not repeat it.
      event({ type: "Warning", reason: "FailedPreStopHook", message: "PreStopHook failed" });
    },
  );
  const exited = exitOf(deps, containerId, budget.signal);
  await Promise.race([hook, exited]);
}

/** Resolves when the container has ended or the signal aborts. */
function exitOf(deps: WorkerDeps, id: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      subscription[Symbol.dispose]();
      resolve();
    };
    const subscription = deps.engine.onEvent(() => {
      if (deps.engine.container(id)?.state !== "running") done();
    });
    if (signal.aborted) done();
    else signal.addEventListener("abort", done, { once: true });
  });
}

/** Stops every running container of the pod in the documented order, then its sandboxes. */
export async function killPod(
  deps: WorkerDeps,
  pod: ReadonlyPod,
  observed: ObservedPod,
  budget: Budget,
  podIP: string,
): Promise<void> {
  const running = observed.containers.filter((run) => run.state === "running" || run.state === "unknown");
  const order = createTerminationOrder(
    pod,
    running.map((run) => run.name),
  );
  await Promise.all(running.map((run) => killContainer(deps, pod, run, { budget, order, podIP })));
  for (const sandbox of observed.sandboxes) if (sandbox.state === "ready") await deps.engine.stopSandbox(sandbox.id);
}

/** Kills for one cause with the grace period that belongs to it. */
export async function killOne(deps: WorkerDeps, pod: ReadonlyPod, kill: Kill, podIP: string): Promise<void> {
  const container = findContainer(pod, kill.name);
  using budget = createBudget(deps.clock, graceSeconds(pod, container, kill.cause) * 1000);
  await killContainer(deps, pod, kill, { budget, message: kill.message, podIP });
}

/** What of a container's spec is needed to stop it, from what was written on it when it was made. */
function restoredContainer(deps: WorkerDeps, run: Pick<ObservedContainer, "id" | "name">): AnyContainer {
  const annotations = deps.engine.container(run.id)?.config.annotations ?? {};
  const preStop = annotations[ANNOTATION.preStopHandler];
  const ports = annotations[ANNOTATION.ports];
  return {
    name: run.name,
    ...(preStop ? { lifecycle: { preStop: JSON.parse(preStop) as LifecycleHandler } } : {}),
    ...(ports ? { ports: JSON.parse(ports) as [] } : {}),
  };
}

/** A pod of which only the engine knows any more: enough of it to stop it. */
export function restoredPod(deps: WorkerDeps, uid: string, observed: ObservedPod): ReadonlyPod {
  const sandbox = observed.sandboxes[0];
  const annotations = observed.containers.map((run) => deps.engine.container(run.id)?.config);
  const config = annotations.find((item) => item !== undefined);
  const number = (name: string) => {
    const value = Number(config?.annotations[name] ?? Number.NaN);
    return Number.isFinite(value) ? value : undefined;
  };
  const deletion = number(ANNOTATION.podDeletionGracePeriod);
  const grace = number(ANNOTATION.podTerminationGracePeriod);
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: sandbox?.config.name ?? config?.labels[LABEL.podName] ?? "",
      namespace: sandbox?.config.namespace ?? config?.labels[LABEL.podNamespace] ?? "",
      uid,
      ...(deletion === undefined ? {} : { deletionGracePeriodSeconds: deletion }),
    },
    spec: { containers: [], ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }) },
  };
  return pod;
}
