import { messageOf } from "#base";
import type { ImageStatus, SandboxStatus } from "#engine";
import { resources, type Secret } from "#kinds";
import type { DeepReadonly } from "#base";
import { containerHash } from "../container-config/labels.ts";
import { goDuration } from "../duration.ts";
import { credentialsFor } from "../images/credentials.ts";
import { ImageError } from "../images/image-manager.ts";
import { podLabel, runHook } from "../lifecycle/hooks.ts";
import { type AnyContainer, ContainerConfigError, type PodEvent, type ReadonlyPod } from "../ports.ts";
import { nextRestartCount } from "../status/container-statuses.ts";
import { killOne } from "./kill.ts";
import { newest, type ObservedPod } from "./observe.ts";
import { recordEvent, type WorkerDeps } from "./worker-deps.ts";

/** A container could not be started: its waiting reason, and when to try again (undefined: in a while). */
export interface StartFailure {
  readonly reason: string;
  readonly message: string;
  readonly retryAt?: number;
}

export interface StartContext {
  readonly pod: ReadonlyPod;
  readonly sandbox: SandboxStatus;
  readonly podIPs: readonly string[];
  /** As it was when the start was planned: dead runs in it count for the back-off. */
  readonly observed: ObservedPod;
  readonly signal: AbortSignal;
  /** The run is not to be shown before its start is complete. */
  hide(id: string): void;
  show(id: string): void;
}

/** Back-off, image, configuration, create, start, postStart. Undefined: it runs. Throws only when aborted or broken. */
export async function startContainer(
  deps: WorkerDeps,
  container: AnyContainer,
  context: StartContext,
): Promise<StartFailure | undefined> {
  const { pod, signal } = context;
  const event = (item: PodEvent) => recordEvent(deps, pod, item, container);
  const fail = (reason: string, message: string): StartFailure => {
    event({ type: "Warning", reason: "Failed", message: `Error: ${message}` });
    return { reason, message };
  };
  const waiting = inBackoff(deps, container, context);
  if (waiting) return waiting;

  let image: ImageStatus;
  try {
    image = await deps.images.ensure({
      uid: pod.metadata?.uid ?? "",
      image: container.image ?? "",
      policy: container.imagePullPolicy ?? "IfNotPresent",
      auths: async () => credentialsFor(container.image ?? "", await pullSecrets(deps, pod)),
      event,
      signal,
    });
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    event({ type: "Warning", reason: "Failed", message: `Error: ${error.reason}` });
    return {
      reason: error.reason,
      message: error.message,
      ...(error.retryAt === undefined ? {} : { retryAt: error.retryAt }),
    };
  }
  signal.throwIfAborted();

  let id: string;
  try {
    id = await create(deps, container, image, context);
  } catch (error) {
    if (signal.aborted) throw error;
    const reason = error instanceof ContainerConfigError ? error.reason : "CreateContainerError";
    return fail(reason, messageOf(error));
  }
  context.hide(id);
  try {
    event({ type: "Normal", reason: "Created", message: "Container created" });
    signal.throwIfAborted();
    try {
      await deps.engine.startContainer(id);
    } catch (error) {
      return fail("RunContainerError", messageOf(error).replaceAll(id, container.name));
    }
    event({ type: "Normal", reason: "Started", message: "Container started" });
    return await postStart(deps, container, id, context);
  } finally {
    context.show(id);
  }
}

function inBackoff(
  deps: WorkerDeps,
  container: AnyContainer,
  { pod, observed }: StartContext,
): StartFailure | undefined {
  const dead = observed.containers.find((run) => run.name === container.name && run.state === "exited");
  if (!dead) return undefined;
  const key = backoffKey(pod, container);
  const ended = dead.finishedAt ?? dead.createdAt;
  const wait = deps.backoff.until(key, ended);
  if (!wait) {
    deps.backoff.next(key, ended);
    return undefined;
  }
  const message = `Back-off restarting failed container ${container.name} in pod ${podLabel(pod)}`;
  recordEvent(deps, pod, { type: "Warning", reason: "BackOff", message }, container);
  return {
    reason: "CrashLoopBackOff",
    message: `back-off ${goDuration(wait.delay)} restarting failed container=${container.name} pod=${podLabel(pod)}`,
    retryAt: wait.at,
  };
}

export const backoffKey = (pod: ReadonlyPod, container: AnyContainer): string =>
  `${pod.metadata?.uid}_${container.name}_${containerHash(container as never)}`;

async function create(
  deps: WorkerDeps,
  container: AnyContainer,
  image: ImageStatus,
  { pod, sandbox, podIPs, observed }: StartContext,
): Promise<string> {
  const run = newest(observed, container.name);
  const published = deps.writer.get(pod.metadata?.uid ?? "") ?? pod.status;
  const old = [
    ...(published?.containerStatuses ?? []),
    ...(published?.initContainerStatuses ?? []),
    ...(published?.ephemeralContainerStatuses ?? []),
  ].find((status) => status.name === container.name);
  const restartCount = nextRestartCount(run, old);
  const target = (container as { targetContainerName?: string }).targetContainerName;
  const targetRun = target ? newest(observed, target) : undefined;
  if (target && targetRun?.state !== "running") {
    throw new ContainerConfigError(`unable to find target container ${target}`);
  }
  const config = await deps.configs.container(pod, container, {
    attempt: restartCount,
    restartCount,
    image,
    sandbox,
    podIPs,
    hostIPs: deps.hostIPs,
    ...(targetRun ? { targetContainerId: targetRun.id } : {}),
  });
  return deps.engine.createContainer(sandbox.id, config);
}

async function postStart(
  deps: WorkerDeps,
  container: AnyContainer,
  id: string,
  { pod, podIPs, signal }: StartContext,
): Promise<StartFailure | undefined> {
  const handler = container.lifecycle?.postStart;
  if (!handler) return undefined;
  const event = (item: PodEvent) => recordEvent(deps, pod, item, container);
  const podIP = podIPs[0] ?? "";
  const hook = runHook(deps, handler, { pod, container, containerId: id, podIP, signal, event });
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  try {
    await Promise.race([hook, aborted]);
    return undefined;
  } catch (error) {
    if (signal.aborted) {
      hook.catch(() => undefined);
      throw error;
    }
    deps.logger.info("postStart hook failed", { container: container.name, error: messageOf(error) });
    // The message may hold secrets; the event does not repeat it.
    event({ type: "Warning", reason: "FailedPostStartHook", message: "PostStartHook failed" });
    await killOne(deps, pod, { id, name: container.name, message: "FailedPostStartHook", cause: "other" }, podIP);
    return { reason: "PostStartHookError", message: messageOf(error) };
  }
}

/** The pod's pull secrets; those that cannot be read are named in an event. */
async function pullSecrets(deps: WorkerDeps, pod: ReadonlyPod): Promise<DeepReadonly<Secret>[]> {
  const names = (pod.spec?.imagePullSecrets ?? []).flatMap(({ name }) => name ?? []);
  const namespace = pod.metadata?.namespace;
  const missing: string[] = [];
  const found = await Promise.all(
    names.map((name) =>
      deps.client.get(resources.secrets, name, { namespace }).catch((error: unknown) => {
        deps.logger.warn("an image pull secret cannot be read", { secret: name, error: messageOf(error) });
        missing.push(name);
        return undefined;
      }),
    ),
  );
  if (missing.length > 0) {
    const message = `Unable to retrieve some image pull secrets (${missing.join(", ")}); attempting to pull the image may not succeed.`;
    recordEvent(deps, pod, { type: "Warning", reason: "FailedToRetrieveImagePullSecret", message });
  }
  return found.filter((secret) => secret !== undefined);
}
