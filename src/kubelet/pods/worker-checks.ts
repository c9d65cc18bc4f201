import type { DeepReadonly } from "#base";
import type { PodStatus } from "#kinds";
import type { ReadonlyPod } from "../ports.ts";
import { newest, type ObservedPod } from "./observe.ts";
import type { PodPlan } from "./plan.ts";
import { specContainers } from "./restart-policy.ts";
import type { WorkerDeps } from "./worker-deps.ts";

/** Nothing of the plan would do anything. */
export const isEmpty = (plan: PodPlan, observed: ObservedPod): boolean =>
  !plan.createSandbox &&
  !(plan.killPod && hasLife(observed)) &&
  [plan.kill, plan.reset, plan.startEphemeral, plan.startInit, plan.start].every((steps) => steps.length === 0);

/** Something that could be stopped. */
const hasLife = (observed: ObservedPod): boolean =>
  observed.sandboxes.some((sandbox) => sandbox.state === "ready") ||
  observed.containers.some((run) => run.state === "running");

/** When `activeDeadlineSeconds` is up, milliseconds. */
export function deadlineOf(
  pod: ReadonlyPod | undefined,
  status: DeepReadonly<PodStatus> | undefined,
): number | undefined {
  const seconds = pod?.spec?.activeDeadlineSeconds;
  const start = status?.startTime;
  return seconds == null || !start ? undefined : Date.parse(start) + seconds * 1000;
}

/** What a plan depends on. Equal texts: nothing has happened that makes another try useful. */
export function fingerprint(pod: ReadonlyPod | undefined, observed: ObservedPod, deps: WorkerDeps): string {
  const containers = [...(pod ? specContainers(pod) : []), ...(pod?.spec?.ephemeralContainers ?? [])];
  const runs = containers.map(({ name, image }) => {
    const run = newest(observed, name);
    return `${name}=${image}:${run?.id}:${run?.state}:${run ? deps.probes.liveness(run.id) : ""}:${run ? deps.probes.startup(run.id) : ""}`;
  });
  return [...runs, observed.sandboxes[0]?.id, observed.sandboxes[0]?.state].join();
}
