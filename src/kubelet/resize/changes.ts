import type { DeepReadonly } from "#base";
import type { LinuxResources } from "#engine";
import type { Container } from "#kinds";
import { amount, isSidecar } from "../container-config/pod-resources.ts";
import type { ReadonlyPod } from "../ports.ts";

export type Resources = DeepReadonly<NonNullable<Container["resources"]>>;

/** What each container has been given, by its name, and the pod as a whole, by `POD`. */
export type Allocation = ReadonlyMap<string, Resources>;

export const POD = "";

type ReadonlyContainer = DeepReadonly<Container>;

/** Containers whose resources can change while they run. */
export const resizable = (pod: ReadonlyPod): readonly ReadonlyContainer[] => [
  ...(pod.spec?.containers ?? []),
  ...(pod.spec?.initContainers ?? []).filter(isSidecar),
];

export const allocationOf = (pod: ReadonlyPod): Allocation =>
  new Map([
    ...resizable(pod).map(({ name, resources = {} }): [string, Resources] => [name, resources]),
    [POD, pod.spec?.resources ?? {}],
  ]);

/** The pod as if its spec asked for what it has been given. */
export function withAllocation(pod: ReadonlyPod, allocation: Allocation): ReadonlyPod {
  const given = (container: ReadonlyContainer): ReadonlyContainer => {
    const resources = allocation.get(container.name);
    return resources === undefined || resources === container.resources ? container : { ...container, resources };
  };
  const { containers, initContainers, resources } = pod.spec;
  const whole = resources && (allocation.get(POD) ?? resources);
  if (whole === resources && resizable(pod).every((container) => given(container) === container)) return pod;
  return {
    ...pod,
    spec: {
      ...pod.spec,
      ...(whole ? { resources: whole } : {}),
      containers: containers.map(given),
      ...(initContainers
        ? { initContainers: initContainers.map((item) => (isSidecar(item) ? given(item) : item)) }
        : {}),
    },
  };
}

const RESIZABLE = ["cpu", "memory"] as const;

/** Which of cpu and memory differ, as a request or a limit. */
export function changedResources(from: Resources, to: Resources): readonly ("cpu" | "memory")[] {
  const differs = (name: string) =>
    (["requests", "limits"] as const).some(
      (list) => amount(name, from[list]?.[name]) !== amount(name, to[list]?.[name]),
    );
  return RESIZABLE.filter(differs);
}

export const sameAllocation = (a: Allocation, b: Allocation): boolean =>
  a.size === b.size && [...a].every(([name, resources]) => changedResources(resources, b.get(name) ?? {}).length === 0);

/** Whether the container's `resizePolicy` wants a restart for this change. */
export const needsRestart = (container: ReadonlyContainer, changed: readonly string[]): boolean =>
  (container.resizePolicy ?? []).some(
    ({ resourceName, restartPolicy }) => restartPolicy === "RestartContainer" && changed.includes(resourceName),
  );

/** The wider of two settings, field by field: what a group may have while its parts change from one to the other. */
export function widest(a: LinuxResources, b: LinuxResources): LinuxResources {
  const most = (x: number, y: number) => (x < 0 || y < 0 ? -1 : Math.max(x, y));
  const unlimited = a.memoryLimitBytes === undefined || b.memoryLimitBytes === undefined;
  const { memoryLimitBytes: _limit, ...rest } = b;
  return {
    ...rest,
    ...(a.cpuShares !== undefined && b.cpuShares !== undefined ? { cpuShares: most(a.cpuShares, b.cpuShares) } : {}),
    ...(b.cpuQuota !== undefined ? { cpuQuota: most(a.cpuQuota ?? -1, b.cpuQuota) } : {}),
    ...(unlimited ? {} : { memoryLimitBytes: most(a.memoryLimitBytes ?? 0, b.memoryLimitBytes ?? 0) }),
  };
}
