import { messageOf } from "#base";
import type { ContainerConfig, SandboxConfig } from "../port.ts";
import { createContainer, discard, startContainer } from "./containers.ts";
import type { Context } from "./context.ts";
import { isAlive } from "./sys/process.ts";

/**
 * The pause container of a sandbox. The namespaces do not need it, so it is started a moment later than the others, unless its
 * process namespace is shared: then it is PID 1 there and everything waits for it.
 */
export async function startPause(context: Context, sandboxId: string): Promise<void> {
  const sandbox = context.sandboxes.all.get(sandboxId);
  if (sandbox?.config.namespaces.pid === "pod") return runPause(context, sandboxId);
  keepPauseIn(context, sandboxId, PAUSE_DELAY_MS);
}

function keepPauseIn(context: Context, sandboxId: string, ms: number): void {
  context.clock.setTimer(() => {
    if (!context.closed.aborted) void context.sandboxLock.run(sandboxId, () => keepPause(context, sandboxId));
  }, ms);
}

/** Long enough for the pod's own containers to be started first. */
const PAUSE_DELAY_MS = 1000;
/** Wait before a pause container that was killed is started again. */
const RESTART_DELAY_MS = 100;

/** Makes sure that a ready sandbox has its pause container; the sandbox is locked. Failure disturbs nobody, so it is only logged. */
export async function keepPause(context: Context, sandboxId: string): Promise<void> {
  const sandbox = context.sandboxes.all.get(sandboxId);
  if (sandbox?.state !== "ready") return;
  const before = context.containers.all.get(sandbox.pauseId ?? "");
  if (before?.state === "running" && isAlive(before.process)) return;
  try {
    if (before) await discard(context, before);
    await runPause(context, sandboxId);
  } catch (error) {
    context.logger.warn("the pause container could not be started", { sandbox: sandboxId, error: messageOf(error) });
  }
}

/** A pause container ended: it comes back, unless the sandbox is lost with it (see `loseSharedNamespace`). */
export function pauseEnded(context: Context, sandboxId: string): void {
  const sandbox = context.sandboxes.all.get(sandboxId);
  if (sandbox?.state !== "ready") return;
  keepPauseIn(context, sandboxId, RESTART_DELAY_MS);
}

async function runPause(context: Context, sandboxId: string): Promise<void> {
  const sandbox = context.sandboxes.all.get(sandboxId)!;
  const record = await createContainer(context, sandbox, pauseConfig(context, sandbox.config), { isPause: true });
  context.sandboxes.keep({ ...context.sandboxes.all.get(sandboxId)!, pauseId: record.id }); // its own record tells it too
  await startContainer(context, record);
}

function pauseConfig(context: Context, sandbox: SandboxConfig): ContainerConfig {
  return {
    name: "pause",
    attempt: sandbox.attempt,
    image: context.pauseImage,
    imageRef: context.pauseImage,
    env: [],
    mounts: [],
    labels: sandbox.labels,
    annotations: {},
    logPath: "/dev/null",
    stdin: false,
    stdinOnce: false,
    tty: false,
    resources: { cpuShares: 2, oomScoreAdj: -998 },
    security: {
      privileged: false,
      runAsUser: 65535,
      runAsGroup: 65535,
      supplementalGroups: [],
      addCapabilities: [],
      dropCapabilities: ["ALL"],
      readOnlyRootfs: true,
      noNewPrivileges: true,
      seccomp: "unconfined",
    },
  };
}
