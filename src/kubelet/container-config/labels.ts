import { createHash } from "node:crypto";
import type { DeepReadonly } from "#base";
import type { Container, Pod } from "#kinds";

/** Names of the labels and annotations by which the kubelet knows its sandboxes and containers again. */
export const LABEL = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  containerName: "io.kubernetes.container.name",
} as const;

export const ANNOTATION = {
  hash: "io.kubernetes.container.hash",
  restartCount: "io.kubernetes.container.restartCount",
  terminationMessagePath: "io.kubernetes.container.terminationMessagePath",
  terminationMessagePolicy: "io.kubernetes.container.terminationMessagePolicy",
  preStopHandler: "io.kubernetes.container.preStopHandler",
  ports: "io.kubernetes.container.ports",
  podDeletionGracePeriod: "io.kubernetes.pod.deletionGracePeriod",
  podTerminationGracePeriod: "io.kubernetes.pod.terminationGracePeriod",
} as const;

export function sandboxLabels(pod: DeepReadonly<Pod>): Record<string, string> {
  return { ...pod.metadata?.labels, ...podLabels(pod) };
}

export function containerLabels(pod: DeepReadonly<Pod>, container: DeepReadonly<Container>): Record<string, string> {
  return { ...podLabels(pod), [LABEL.containerName]: container.name };
}

/** What must survive a restart of the kubelet, and the pod itself: how to stop the container and where its message is. */
export function containerAnnotations(
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
  restartCount: number,
): Record<string, string> {
  const { deletionGracePeriodSeconds } = pod.metadata ?? {};
  const grace = pod.spec?.terminationGracePeriodSeconds;
  const preStop = container.lifecycle?.preStop;
  return {
    [ANNOTATION.hash]: containerHash(container),
    [ANNOTATION.restartCount]: String(restartCount),
    [ANNOTATION.terminationMessagePath]: container.terminationMessagePath ?? "",
    [ANNOTATION.terminationMessagePolicy]: container.terminationMessagePolicy ?? "",
    ...(deletionGracePeriodSeconds == null
      ? {}
      : { [ANNOTATION.podDeletionGracePeriod]: String(deletionGracePeriodSeconds) }),
    ...(grace == null ? {} : { [ANNOTATION.podTerminationGracePeriod]: String(grace) }),
    ...(preStop ? { [ANNOTATION.preStopHandler]: JSON.stringify(preStop) } : {}),
    ...(container.ports?.length ? { [ANNOTATION.ports]: JSON.stringify(container.ports) } : {}),
  };
}

/** Changes when the container must be replaced: name and image, the rest of a running pod's container cannot change so. */
export function containerHash(container: DeepReadonly<Container>): string {
  return createHash("sha256")
    .update(`${container.name}\0${container.image ?? ""}`)
    .digest("hex")
    .slice(0, 8);
}

const podLabels = (pod: DeepReadonly<Pod>): Record<string, string> => ({
  [LABEL.podName]: pod.metadata?.name ?? "",
  [LABEL.podNamespace]: pod.metadata?.namespace ?? "",
  [LABEL.podUid]: pod.metadata?.uid ?? "",
});
