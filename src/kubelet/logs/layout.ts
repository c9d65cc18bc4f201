import { join } from "node:path";
import type { PodRef } from "#kinds";

/**
 * Where logs are: `<root>/<namespace>_<pod>_<uid>/<container>/<attempt>.log`, beside it rotated pieces
 * `<attempt>.log.<time>` and `<attempt>.log.<time>.gz`.
 *
 * Source: https://kubernetes.io/docs/concepts/cluster-administration/logging/#how-nodes-handle-container-logs
 */
export function podLogDirectory(root: string, pod: PodRef): string {
  return join(root, [pod.namespace, pod.name, pod.uid].map(element).join("_"));
}

export function containerLogDirectory(root: string, pod: PodRef, container: string): string {
  return join(podLogDirectory(root, pod), element(container));
}

export function containerLogPath(root: string, pod: PodRef, container: string, attempt: number): string {
  return join(containerLogDirectory(root, pod, container), `${attempt}.log`);
}

/** The pod of a log directory's name; undefined for what is none. */
export function parsePodLogDirectory(name: string): PodRef | undefined {
  const [namespace, pod, uid, ...more] = name.split("_");
  return namespace && pod && uid && more.length === 0 ? { namespace, name: pod, uid } : undefined;
}

/** Names come from the API, where they are checked; a path must not depend on that. */
function element(name: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) throw new Error(`"${name}" can be no part of a log's path`);
  return name;
}
