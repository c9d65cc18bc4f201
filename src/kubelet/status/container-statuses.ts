import type { DeepReadonly } from "#base";
import type { ContainerState, ContainerStateTerminated, ContainerStatus } from "#kinds";
import { newest, type ObservedContainer, type ObservedPod } from "../pods/observe.ts";
import { allContainersRestart, isSidecar, shouldStart } from "../pods/restart-policy.ts";
import type { AnyContainer, ReadonlyPod } from "../ports.ts";
import { RESTARTING_ALL } from "./phase.ts";

type Status = DeepReadonly<ContainerStatus>;

/** Why a container could not be started, by container name. */
export type WaitReasons = ReadonlyMap<string, { readonly reason: string; readonly message: string }>;

/** What the status of a running container needs from the probes. */
export interface ProbeView {
  started(run: ObservedContainer, container: AnyContainer): boolean;
  ready(run: ObservedContainer, container: AnyContainer): boolean;
}

export interface ContainerStatusesInput {
  readonly pod: ReadonlyPod;
  readonly observed: ObservedPod;
  readonly previous: readonly Status[];
  readonly waitReasons: WaitReasons;
  readonly probes: ProbeView;
  /** `slim` in `slim://<id>`. */
  readonly scheme: string;
  /** Resources that are in force, where they are not those of the spec (a resize is going on). */
  readonly resources?: ReadonlyMap<string, DeepReadonly<ContainerStatus>["resources"]>;
}

export type ContainerRole = "main" | "init" | "ephemeral";

/** A moment as the API writes it: whole seconds. */
export const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/** Where the start is not known: the container never came so far. */
const EPOCH = "1970-01-01T00:00:00Z";

/** Statuses of the containers of one role: init containers in their order, the others by name. */
export function containerStatuses(input: ContainerStatusesInput, role: ContainerRole): ContainerStatus[] {
  const { pod } = input;
  const containers: readonly AnyContainer[] =
    (role === "init"
      ? pod.spec?.initContainers
      : role === "main"
        ? pod.spec?.containers
        : pod.spec?.ephemeralContainers) ?? [];
  const statuses = containers.map((container) => statusOf(container, role, input));
  return role === "init" ? statuses : statuses.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function statusOf(container: AnyContainer, role: ContainerRole, input: ContainerStatusesInput): ContainerStatus {
  const { observed } = input;
  const old = input.previous.find((status) => status.name === container.name);
  const runs = observed.containers.filter((run) => run.name === container.name);
  const [run, before] = runs;
  const status = run ? statusOfRun(container, run, before, old, input) : statusWithoutRun(container, old, input);
  applyWaiting(status, container, role, run, input);
  if (role === "ephemeral") return { ...status, ready: false };
  const started = run?.state === "running" && status.state?.running ? input.probes.started(run, container) : false;
  status.started = started;
  if (role === "init" && !isSidecar(container)) {
    status.ready = status.state?.terminated?.exitCode === 0;
  } else {
    status.ready = started && run !== undefined && input.probes.ready(run, container);
  }
  return status;
}

function statusOfRun(
  container: AnyContainer,
  run: ObservedContainer,
  before: ObservedContainer | undefined,
  old: Status | undefined,
  input: ContainerStatusesInput,
): ContainerStatus {
  const containerID = `${input.scheme}://${run.id}`;
  const status: ContainerStatus = {
    name: run.name,
    image: run.image,
    imageID: run.imageID,
    containerID,
    restartCount: Math.max(run.restartCount, old?.restartCount ?? 0),
    ready: false,
    state: stateOf(run, old, containerID),
    lastState: {},
    resources: clone<NonNullable<ContainerStatus["resources"]>>(
      input.resources?.get(run.name) ?? container.resources ?? {},
    ),
    volumeMounts: volumeMounts(container),
  };
  if (run.state === "unknown" && status.state?.terminated) status.restartCount = (old?.restartCount ?? 0) + 1;
  const requests = container.resources?.requests;
  if (requests && Object.keys(requests).length > 0) status.allocatedResources = { ...requests };
  if (run.user) {
    const { uid, gid, supplementalGroups } = run.user;
    status.user = { linux: { uid, gid, supplementalGroups: [...supplementalGroups] } };
  }
  if (before) status.lastState = stateOf(before, undefined, `${input.scheme}://${before.id}`);
  else if (old?.state?.terminated && old.containerID !== containerID) {
    status.lastState = { terminated: clone(old.state.terminated) };
  } else if (old?.lastState?.terminated) status.lastState = { terminated: clone(old.lastState.terminated) };
  return status;
}

function stateOf(run: ObservedContainer, old: Status | undefined, containerID: string): ContainerState {
  if (run.state === "running") return { running: { startedAt: timestamp(run.startedAt ?? run.createdAt) } };
  if (run.state === "exited") return { terminated: terminatedOf(run, containerID) };
  if (run.state === "unknown" && old?.state?.running) {
    return { terminated: lost("The container could not be located when the pod was terminated") };
  }
  return { waiting: {} };
}

function terminatedOf(run: ObservedContainer, containerID: string): ContainerStateTerminated {
  const started = run.reason === "StartError" ? undefined : run.startedAt;
  return {
    exitCode: run.exitCode,
    ...(run.reason ? { reason: run.reason } : {}),
    ...(run.message ? { message: run.message } : {}),
    startedAt: started === undefined ? EPOCH : timestamp(started),
    finishedAt: run.finishedAt === undefined ? EPOCH : timestamp(run.finishedAt),
    containerID,
  };
}

/** A container that must have run and is not there any more. */
function lost(message: string): ContainerStateTerminated {
  return {
    exitCode: 137,
    reason: "ContainerStatusUnknown",
    message,
    startedAt: null,
    finishedAt: null,
  } as unknown as ContainerStateTerminated;
}

function statusWithoutRun(
  container: AnyContainer,
  old: Status | undefined,
  { pod, observed }: ContainerStatusesInput,
): ContainerStatus {
  const restarting = old && !old.state?.waiting && allContainersRestart(pod, observed, pod.status);
  if (old && restarting) {
    const message = "The container is removed because RestartAllContainers in place";
    const ended = { exitCode: 137, reason: RESTARTING_ALL, message, startedAt: null, finishedAt: null };
    return {
      ...fresh(container, pod),
      restartCount: (old.restartCount ?? 0) + 1,
      state: { waiting: { reason: RESTARTING_ALL, message } },
      lastState: { terminated: ended as unknown as ContainerStateTerminated },
    };
  }
  if (old?.state?.terminated) return clone(old) as ContainerStatus;
  const status = fresh(container, pod);
  if (!old) return status;
  status.restartCount = old.restartCount ?? 0;
  status.lastState = clone(old.lastState ?? {});
  if (old.state?.running && !old.lastState?.terminated) {
    const message = "The container could not be located when the pod was deleted.  The container used to be Running";
    status.lastState = { terminated: lost(message) };
    if (!pod.metadata?.deletionTimestamp) status.restartCount += 1;
  }
  return status;
}

function fresh(container: AnyContainer, pod: ReadonlyPod): ContainerStatus {
  const reason = (pod.spec?.initContainers ?? []).length > 0 ? "PodInitializing" : "ContainerCreating";
  return {
    name: container.name,
    image: container.image ?? "",
    imageID: "",
    restartCount: 0,
    ready: false,
    state: { waiting: { reason } },
    lastState: {},
    volumeMounts: volumeMounts(container),
  };
}

/** A container that is to be started again and could not be waits, with the reason why. */
function applyWaiting(
  status: ContainerStatus,
  container: AnyContainer,
  role: ContainerRole,
  run: ObservedContainer | undefined,
  { pod, observed, waitReasons }: ContainerStatusesInput,
): void {
  if (role === "init") {
    if (run?.state === "exited" && run.exitCode === 0) return;
    const hasMain = (pod.spec?.containers ?? []).some((main) => {
      const state = newest(observed, main.name)?.state;
      return state !== undefined && state !== "unknown";
    });
    if (!run && hasMain && !isSidecar(container) && status.state?.waiting) {
      const message =
        "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally";
      const ended = { exitCode: 0, reason: "Completed", message, startedAt: null, finishedAt: null };
      status.state = { terminated: ended as unknown as ContainerStateTerminated };
      return;
    }
  }
  const reason = waitReasons.get(container.name);
  if (!reason || !shouldStart(pod, container, observed)) return;
  if (status.state?.terminated) status.lastState = status.state;
  status.state = { waiting: { reason: reason.reason, ...(reason.message ? { message: reason.message } : {}) } };
}

function volumeMounts(container: AnyContainer): NonNullable<ContainerStatus["volumeMounts"]> {
  return (container.volumeMounts ?? []).map((mount) => ({
    name: mount.name,
    mountPath: mount.mountPath,
    ...(mount.readOnly
      ? {
          readOnly: true,
          recursiveReadOnly:
            mount.recursiveReadOnly === "Enabled" || mount.recursiveReadOnly === "IfPossible" ? "Enabled" : "Disabled",
        }
      : {}),
  }));
}

const clone = <T>(value: DeepReadonly<T> | T): T => structuredClone(value) as T;

/**
 * How often the container that is started next has run before. Grows also when its dead runs were removed, since the last
 * published status is taken into account.
 */
export function nextRestartCount(run: ObservedContainer | undefined, old: Status | undefined): number {
  const published = old?.restartCount ?? 0;
  if (run) return Math.max(run.restartCount + 1, published);
  if (!old) return 0;
  if (old.state?.terminated || old.state?.running) return published + 1;
  // A container that waits after its run was lost: its count was raised when that was found.
  return published;
}
