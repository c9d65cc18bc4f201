import { containerHash } from "../container-config/labels.ts";
import type { ReadonlyPod } from "../ports.ts";
import { newest, type ObservedPod } from "./observe.ts";
import { type Kill, killUnknown, type ProbeVerdicts } from "./plan.ts";
import { isSidecar, restartsOnFailure, shouldStart } from "./restart-policy.ts";

export interface InitPlan {
  /** All init containers are done (or up, for sidecars): the main ones may start. */
  readonly initialized: boolean;
  /** An init container has failed for good. */
  readonly failed: boolean;
  readonly start: readonly string[];
  readonly kill: readonly Kill[];
}

/**
 * Next steps for the init containers. Looks from the last to the first, since earlier ones may have been removed: whoever
 * has run proves that all before it are done. Sidecars are kept up throughout.
 */
export function planInitContainers(pod: ReadonlyPod, observed: ObservedPod, probes: ProbeVerdicts): InitPlan {
  const containers = pod.spec?.initContainers ?? [];
  if (containers.length === 0) return { initialized: true, failed: false, start: [], kill: [] };
  let initialized = (pod.spec?.containers ?? []).some((container) => {
    const state = newest(observed, container.name)?.state;
    return state === "created" || state === "running";
  });
  let beforeIsDone = initialized;
  const start = new Set<number>();
  const kill: Kill[] = [];
  const done = (index: number) => {
    if (index === containers.length - 1) initialized = true;
    else if (!beforeIsDone) start.add(index + 1);
  };

  for (const [index, container] of [...containers.entries()].reverse()) {
    const run = newest(observed, container.name);
    const sidecar = isSidecar(container);
    if (!run) {
      if (beforeIsDone && sidecar) start.add(index);
      continue;
    }
    if (beforeIsDone && !sidecar) continue;
    if (run.state === "created" || (run.state === "exited" && sidecar)) start.add(index);
    else if (run.state === "running" && sidecar) {
      const reason = sidecarKill(pod, index, run.id, run.hash, probes);
      if (reason) {
        kill.push({ id: run.id, name: run.name, ...reason });
        start.add(index);
      }
      const startup = container.startupProbe ? probes.startup(run.id) : "success";
      if (startup === "success") done(index);
    } else if (run.state === "exited" && run.exitCode === 0) done(index);
    else if (run.state === "exited" || (run.state === "unknown" && !sidecar)) {
      const again = run.state === "exited" ? shouldStart(pod, container, observed) : restartsOnFailure(pod, container);
      if (!again) return { initialized: false, failed: true, start: [], kill: [] };
      if (run.state === "unknown") kill.push(killUnknown(run, "Init container"));
      start.add(index);
    } else if (run.state === "unknown") {
      kill.push(killUnknown(run, "Init container"));
      start.add(index);
    }
    beforeIsDone = true;
  }
  if (!beforeIsDone) start.add(0);
  const names = [...start].sort((a, b) => a - b).map((index) => containers[index]?.name ?? "");
  return { initialized, failed: false, start: names, kill };
}

function sidecarKill(
  pod: ReadonlyPod,
  index: number,
  id: string,
  hash: string,
  probes: ProbeVerdicts,
): { message: string; cause: Kill["cause"] } | undefined {
  const container = pod.spec?.initContainers?.[index];
  if (!container) return undefined;
  if (container.startupProbe && probes.startup(id) !== "success") {
    if (probes.startup(id) !== "failure") return undefined;
    return { message: `Init container ${container.name} failed startup probe`, cause: "startup" };
  }
  if (hash !== "" && hash !== containerHash(container)) {
    return { message: `Init container ${container.name} definition changed`, cause: "other" };
  }
  if (probes.resized?.has(id)) {
    return { message: `Init container ${container.name} resize requires restart`, cause: "other" };
  }
  if (probes.liveness(id) !== "failure") return undefined;
  return { message: `Init container ${container.name} failed liveness probe`, cause: "liveness" };
}
