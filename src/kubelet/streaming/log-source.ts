import { badRequest, type ContainerStatus as ApiContainerStatus, type StatusError } from "#kinds";
import type { DeepReadonly } from "#base";
import type { ReadonlyPod } from "../ports.ts";

/**
 * The id of the engine container whose log is asked for, by what the pod's status tells.
 *
 * Source: https://kubernetes.io/docs/reference/kubectl/generated/kubectl_logs/
 *
 * @throws StatusError 400 in the words of the kubelet when there is no log (yet)
 */
export function loggedContainerId(pod: ReadonlyPod, container: string, previous: boolean): string {
  const what = `container "${container}" in pod "${pod.metadata.name}"`;
  const status = containerStatus(pod, container);
  if (!status) throw badRequest(`${what} is not available`);
  const last = status.lastState?.terminated?.containerID;
  if (previous) {
    if (!last) throw badRequest(`previous terminated ${what} not found`);
    return idOf(last);
  }
  const { running, terminated, waiting } = status.state ?? {};
  if (running) return idOf(status.containerID ?? "");
  if (terminated) {
    const id = terminated.containerID || last;
    if (!id) throw badRequest(`${what} is terminated`);
    return idOf(id);
  }
  if (status.lastState?.terminated) {
    if (!last) throw badRequest(`${what} is terminated`);
    return idOf(last);
  }
  throw waitingError(what, waiting?.reason);
}

function waitingError(what: string, reason: string | undefined): StatusError {
  switch (reason) {
    case undefined:
      return badRequest(`${what} is waiting to start - no logs yet`);
    case "ErrImagePull":
      return badRequest(`${what} is waiting to start: image can't be pulled`);
    case "ImagePullBackOff":
      return badRequest(`${what} is waiting to start: trying and failing to pull image`);
    default:
      return badRequest(`${what} is waiting to start: ${reason}`);
  }
}

/** The status of any container of the pod. */
export function containerStatus(pod: ReadonlyPod, container: string): DeepReadonly<ApiContainerStatus> | undefined {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = pod.status ?? {};
  return [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses].find(
    ({ name }) => name === container,
  );
}

/** `slim://abc` → `abc` */
const idOf = (containerID: string) => containerID.replace(/^[^:]*:\/\//, "");
