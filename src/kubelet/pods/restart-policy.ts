import type { DeepReadonly } from "#base";
import type { ContainerRestartRule } from "#kinds";
import type { AnyContainer, ReadonlyPod } from "../ports.ts";
import { newest, type ObservedPod } from "./observe.ts";

type Rule = DeepReadonly<ContainerRestartRule>;
type Restartable = AnyContainer & { readonly restartPolicy?: string; readonly restartPolicyRules?: readonly Rule[] };

/** A restartable init container. */
export const isSidecar = (container: AnyContainer): boolean => (container as Restartable).restartPolicy === "Always";

/** The first of the container's `restartPolicyRules` that speaks of this exit code. KEP-5307 */
export function matchingRule(container: AnyContainer, exitCode: number): Rule | undefined {
  return ((container as Restartable).restartPolicyRules ?? []).find(({ exitCodes }) => {
    if (!exitCodes) return false;
    const listed = (exitCodes.values ?? []).includes(exitCode);
    return exitCodes.operator === "In" ? listed : exitCodes.operator === "NotIn" ? !listed : false;
  });
}

/** Whether a container that ended with this code is to run again: its rules, its own policy, the pod's. */
export function restartsAfter(pod: ReadonlyPod, container: AnyContainer, exitCode: number): boolean {
  const own = (container as Restartable).restartPolicy;
  const action = own ? matchingRule(container, exitCode)?.action : undefined;
  if (action === "Restart" || action === "RestartAllContainers") return true;
  switch (own || pod.spec?.restartPolicy) {
    case "Never":
      return false;
    case "OnFailure":
      return exitCode !== 0;
    default:
      return true;
  }
}

/** A container that is not running is to be started: it never ran, or its policy says again. Never in a deleted pod. */
export function shouldStart(pod: ReadonlyPod, container: AnyContainer, observed: ObservedPod): boolean {
  if (pod.metadata?.deletionTimestamp) return false;
  const run = newest(observed, container.name);
  if (!run || run.state === "unknown" || run.state === "created") return true;
  return run.state === "exited" && restartsAfter(pod, container, run.exitCode);
}

/** Whether a container that is killed for a failed probe is started again. */
export function restartsOnFailure(pod: ReadonlyPod, container: AnyContainer): boolean {
  return ((container as Restartable).restartPolicy || pod.spec?.restartPolicy) !== "Never";
}

const restartsAll = (container: AnyContainer, exitCode: number): boolean =>
  matchingRule(container, exitCode)?.action === "RestartAllContainers";

/** One of the containers has ended in a way that restarts the whole pod in place. KEP-5532 */
export function allContainersRestart(pod: ReadonlyPod, observed: ObservedPod, status: ReadonlyPod["status"]): boolean {
  const condition = status?.conditions?.find((c) => c.type === "AllContainersRestarting");
  if (condition?.status === "True") return true;
  const published = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return specContainers(pod).some((container) => {
    const run = newest(observed, container.name);
    if (run) return run.state === "exited" && restartsAll(container, run.exitCode);
    const ended = published.find((item) => item.name === container.name)?.state?.terminated;
    return ended !== undefined && restartsAll(container, ended.exitCode);
  });
}

export const isRestartSource = (container: AnyContainer, exitCode: number): boolean => restartsAll(container, exitCode);

/** Such a rule exists in the pod, so that the condition `AllContainersRestarting` is shown. */
export const canRestartAll = (pod: ReadonlyPod): boolean =>
  specContainers(pod).some((container) =>
    ((container as Restartable).restartPolicyRules ?? []).some((rule) => rule.action === "RestartAllContainers"),
  );

/** Init containers, then the main ones. */
export const specContainers = (pod: ReadonlyPod): readonly AnyContainer[] => [
  ...(pod.spec?.initContainers ?? []),
  ...(pod.spec?.containers ?? []),
];

/** Any container of the pod, ephemeral ones too. */
export function findContainer(pod: ReadonlyPod, name: string): AnyContainer | undefined {
  return [...specContainers(pod), ...(pod.spec?.ephemeralContainers ?? [])].find(
    (container) => container.name === name,
  );
}
