import { messageOf } from "#base";
import type { SandboxStatus } from "#engine";
import { createBudget } from "../lifecycle/budget.ts";
import type { ReadonlyPod } from "../ports.ts";
import { collectGarbage, removeRun } from "./garbage.ts";
import { graceSeconds, killOne, killPod } from "./kill.ts";
import type { ObservedPod } from "./observe.ts";
import type { PodPlan } from "./plan.ts";
import { findContainer, isSidecar } from "./restart-policy.ts";
import { type StartFailure, startContainer } from "./start-container.ts";
import { recordEvent, type WorkerDeps } from "./worker-deps.ts";

export interface ApplyContext {
  readonly pod: ReadonlyPod;
  /** What the plan was made from. */
  readonly observed: ObservedPod;
  readonly signal: AbortSignal;
  hide(id: string): void;
  show(id: string): void;
  /** The outcome of starting a container; undefined: it was started. */
  started(name: string, failure: StartFailure | undefined): void;
  /** Nothing could be done; look again after this many milliseconds (undefined: in a while). */
  waiting(retryAfterMs: number | undefined): void;
}

/** Executes a plan, step by step. Ends early when the signal aborts (by throwing its reason) or the pod has to wait. */
export async function applyPlan(deps: WorkerDeps, plan: PodPlan, context: ApplyContext): Promise<void> {
  const { pod, observed, signal } = context;
  if (plan.createSandbox?.replaces) {
    const message = "Pod sandbox changed, it will be killed and re-created.";
    recordEvent(deps, pod, { type: "Normal", reason: "SandboxChanged", message });
  }
  const podIP = podIPs(deps, pod, observed.sandboxes[0])[0] ?? "";
  if (plan.killPod) {
    using budget = createBudget(deps.clock, graceSeconds(pod, undefined, "other") * 1000);
    await killPod(deps, pod, observed, budget, podIP);
    if (plan.createSandbox) await removeInitContainers(deps, pod, observed);
  }
  for (const kill of plan.kill) await killOne(deps, pod, kill, podIP);
  await resetContainers(deps, plan, context, podIP);
  signal.throwIfAborted();

  if (!(plan.createSandbox || plan.startEphemeral.length || plan.startInit.length || plan.start.length)) return;
  if (!(await volumesReady(deps, context))) return;
  const sandbox = plan.createSandbox
    ? await createSandbox(deps, plan.createSandbox.attempt, context)
    : observed.sandboxes[0];
  if (!sandbox) return;
  signal.throwIfAborted();
  await startContainers(deps, plan, sandbox, context);
  await collectGarbage(deps, deps.view.observe(pod.metadata?.uid ?? ""));
}

async function startContainers(
  deps: WorkerDeps,
  plan: PodPlan,
  sandbox: SandboxStatus,
  context: ApplyContext,
): Promise<void> {
  const { pod } = context;
  const start = async (name: string): Promise<boolean> => {
    const container = findContainer(pod, name);
    if (!container) return false;
    context.signal.throwIfAborted();
    const failure = await startContainer(deps, container, { ...context, sandbox, podIPs: podIPs(deps, pod, sandbox) });
    context.started(name, failure);
    return failure === undefined;
  };
  for (const name of plan.startEphemeral) await start(name);
  for (const name of plan.startInit) {
    const ok = await start(name);
    const container = findContainer(pod, name);
    if (!ok && container && !isSidecar(container)) return;
  }
  for (const name of plan.start) await start(name);
}

async function volumesReady(deps: WorkerDeps, { pod, signal, waiting }: ApplyContext): Promise<boolean> {
  const outcome = await deps.volumes.prepare(pod);
  signal.throwIfAborted();
  if (outcome.state === "ready") return true;
  for (const event of outcome.events) recordEvent(deps, pod, event);
  waiting(outcome.state === "waiting" ? outcome.retryAfterMs : undefined);
  return false;
}

async function createSandbox(
  deps: WorkerDeps,
  attempt: number,
  { pod, waiting, signal }: ApplyContext,
): Promise<SandboxStatus | undefined> {
  try {
    const runtimeHandler = await deps.runtimeHandler(pod);
    const config = await deps.configs.sandbox(pod, { attempt, ...(runtimeHandler ? { runtimeHandler } : {}) });
    return await deps.engine.runSandbox(config);
  } catch (error) {
    signal.throwIfAborted();
    const message = `Failed to create pod sandbox: ${messageOf(error)}`;
    recordEvent(deps, pod, { type: "Warning", reason: "FailedCreatePodSandBox", message });
    waiting(undefined);
    return undefined;
  }
}

/** All containers restart in place: what runs is killed without grace, everything is removed. */
async function resetContainers(deps: WorkerDeps, plan: PodPlan, { pod }: ApplyContext, podIP: string): Promise<void> {
  for (const { id, name, kill } of plan.reset) {
    if (kill) {
      const dying = { ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: 0 } } as ReadonlyPod;
      await killOne(deps, dying, { id, name, message: "killing", cause: "other" }, podIP);
    }
    await deps.engine.removeContainer(id);
  }
}

/** In a new sandbox the init containers run again. */
async function removeInitContainers(deps: WorkerDeps, pod: ReadonlyPod, observed: ObservedPod): Promise<void> {
  const names = new Set((pod.spec?.initContainers ?? []).map((container) => container.name));
  for (const run of observed.containers) if (names.has(run.name)) await removeRun(deps, run.id);
}

const podIPs = (deps: WorkerDeps, pod: ReadonlyPod, sandbox: SandboxStatus | undefined): readonly string[] =>
  pod.spec?.hostNetwork ? deps.hostIPs : (sandbox?.ips ?? []);
