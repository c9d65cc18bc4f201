import { containerHash } from "../container-config/labels.ts";
import type { AnyContainer, ReadonlyPod } from "../ports.ts";
import { newest, type ObservedContainer, type ObservedPod } from "./observe.ts";
import { planInitContainers } from "./plan-init.ts";
import { allContainersRestart, isRestartSource, restartsOnFailure, shouldStart } from "./restart-policy.ts";

/** What probes have found out about running containers, by container id; undefined: nothing yet. */
export interface ProbeVerdicts {
  startup(id: string): "success" | "failure" | "unknown" | undefined;
  liveness(id: string): "success" | "failure" | "unknown" | undefined;
  /** Ids of runs that are to be restarted for their resources. */
  readonly resized?: ReadonlySet<string>;
}

export interface Kill {
  readonly id: string;
  readonly name: string;
  /** Text of the `Killing` event; empty: the usual one. */
  readonly message: string;
  /** Whose grace period counts. */
  readonly cause: "liveness" | "startup" | "other";
}

/** The next steps for a pod; executed in the order of the fields. Names are those of the spec. */
export interface PodPlan {
  /** Stop all containers and the sandbox. */
  readonly killPod: boolean;
  readonly createSandbox?: { readonly attempt: number; readonly replaces: string };
  readonly kill: readonly Kill[];
  /** Remove these (killing those that run): all containers restart in place. */
  readonly reset: readonly { readonly id: string; readonly name: string; readonly kill: boolean }[];
  readonly startEphemeral: readonly string[];
  readonly startInit: readonly string[];
  readonly start: readonly string[];
}

const nothing: PodPlan = { killPod: false, kill: [], reset: [], startEphemeral: [], startInit: [], start: [] };

/** Whether the pod needs a sandbox: none, none that is ready, more than one, or one without an address. */
export function sandboxChange(
  pod: ReadonlyPod,
  observed: ObservedPod,
): { changed: boolean; attempt: number; replaces: string } {
  const [latest] = observed.sandboxes;
  if (!latest) return { changed: true, attempt: 0, replaces: "" };
  const next = { changed: true, attempt: latest.config.attempt + 1, replaces: latest.id };
  if (latest.state !== "ready" || observed.sandboxes.filter((s) => s.state === "ready").length > 1) return next;
  if (!pod.spec?.hostNetwork && latest.ips.length === 0) return next;
  return { changed: false, attempt: latest.config.attempt, replaces: latest.id };
}

/**
 * What to do next for a pod that is to run. Pure; the steps and their order are those of the kubelet.
 *
 * Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/, KEP-753 (sidecars), KEP-5307, KEP-5532
 */
export function planPod(pod: ReadonlyPod, observed: ObservedPod, probes: ProbeVerdicts): PodPlan {
  if (allContainersRestart(pod, observed, pod.status) && observed.containers.length > 0) {
    const reset = planReset(pod, observed);
    if (reset.length > 0) return { ...nothing, reset };
  }
  const sandbox = sandboxChange(pod, observed);
  if (sandbox.changed) return planSandbox(pod, observed, sandbox);

  const startEphemeral = (pod.spec?.ephemeralContainers ?? [])
    .filter((container) => !newest(observed, container.name))
    .map((container) => container.name);
  const init = planInitContainers(pod, observed, probes);
  if (init.failed) return { ...nothing, killPod: true, startEphemeral: [] };
  if (!init.initialized) return { ...nothing, kill: init.kill, startEphemeral, startInit: init.start };

  const main = planMainContainers(pod, observed, probes);
  // Sidecars alone do not keep a pod alive.
  if (main.keep === 0 && main.start.length === 0) return { ...nothing, killPod: true };
  return {
    ...nothing,
    kill: [...init.kill, ...main.kill],
    startEphemeral,
    startInit: init.start,
    start: main.start,
  };
}

function planSandbox(pod: ReadonlyPod, observed: ObservedPod, sandbox: { attempt: number; replaces: string }): PodPlan {
  if (pod.spec?.restartPolicy === "Never" && sandbox.attempt > 0 && observed.containers.length > 0) {
    return { ...nothing, killPod: true };
  }
  const containers = pod.spec?.containers ?? [];
  const start = containers.filter((container) => !(runsOnce(pod, container) && succeeded(observed, container.name)));
  const hasRun = containers.some((container) => {
    const run = newest(observed, container.name);
    return run !== undefined && run.state !== "unknown";
  });
  if (start.length === 0 && hasRun) return { ...nothing, killPod: true };
  const first = pod.spec?.initContainers?.[0];
  return {
    ...nothing,
    killPod: observed.sandboxes.length > 0,
    createSandbox: sandbox,
    startInit: first ? [first.name] : [],
    start: first ? [] : start.map((container) => container.name),
  };
}

const runsOnce = (pod: ReadonlyPod, container: AnyContainer) =>
  ((container as { restartPolicy?: string }).restartPolicy || pod.spec?.restartPolicy) === "OnFailure";

function succeeded(observed: ObservedPod, name: string): boolean {
  const run = newest(observed, name);
  return run?.state === "exited" && run.exitCode === 0;
}

function planMainContainers(
  pod: ReadonlyPod,
  observed: ObservedPod,
  probes: ProbeVerdicts,
): { keep: number; start: string[]; kill: Kill[] } {
  const plan = { keep: 0, start: [] as string[], kill: [] as Kill[] };
  for (const container of pod.spec?.containers ?? []) {
    const run = newest(observed, container.name);
    if (run?.state !== "running") {
      if (!shouldStart(pod, container, observed)) continue;
      plan.start.push(container.name);
      if (run?.state === "unknown") plan.kill.push(killUnknown(run, "Container"));
      continue;
    }
    const kill = killReason(container, run, probes, "Container");
    if (!kill) {
      plan.keep++;
      continue;
    }
    const again = kill.always || restartsOnFailure(pod, container);
    if (again) plan.start.push(container.name);
    const message = again && !kill.whole ? `${kill.message}, will be restarted` : kill.message;
    plan.kill.push({ id: run.id, name: run.name, message, cause: kill.cause });
  }
  return plan;
}

/** Why a running container must go; undefined: it may stay. `whole`: nothing is to be said after the message. */
export function killReason(
  container: AnyContainer,
  run: ObservedContainer,
  probes: ProbeVerdicts,
  what: "Container" | "Init container",
): { message: string; cause: Kill["cause"]; always: boolean; whole?: boolean } | undefined {
  const { name } = container;
  if (run.hash !== "" && run.hash !== containerHash(container)) {
    return { message: `${what} ${name} definition changed`, cause: "other", always: true };
  }
  if (probes.liveness(run.id) === "failure") {
    return { message: `${what} ${name} failed liveness probe`, cause: "liveness", always: false };
  }
  if (probes.startup(run.id) === "failure") {
    return { message: `${what} ${name} failed startup probe`, cause: "startup", always: false };
  }
  if (probes.resized?.has(run.id)) {
    return { message: `${what} ${name} resize requires restart`, cause: "other", always: true, whole: true };
  }
  return undefined;
}

export const killUnknown = (run: ObservedContainer, what: "Container" | "Init container"): Kill => ({
  id: run.id,
  name: run.name,
  message: `${what} is in "unknown" state, try killing it before restart`,
  cause: "other",
});

/** Everything that ran goes, mains before init containers, those that caused it last. */
function planReset(pod: ReadonlyPod, observed: ObservedPod): PodPlan["reset"] {
  const targets: { id: string; name: string; kill: boolean }[] = [];
  const sources: { id: string; name: string; kill: boolean }[] = [];
  for (const container of [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])]) {
    for (const run of observed.containers.filter((candidate) => candidate.name === container.name)) {
      const source = run.state === "exited" && isRestartSource(container, run.exitCode);
      (source ? sources : targets).push({ id: run.id, name: run.name, kill: run.state !== "exited" });
    }
  }
  return [...targets, ...sources];
}
