import { join } from "node:path";

/**
 * The directory of one pod, `<root>/<uid>`:
 *
 * ```
 * volumes/kubernetes.io~<type>/<volume>   what is mounted into containers
 * plugins/kubernetes.io~empty-dir/<volume>/ready   set-up is complete
 * containers/<container>/<attempt>        termination messages
 * etc-hosts                               the pod's /etc/hosts
 * ```
 */
export interface PodDirectory {
  readonly path: string;
  readonly volumes: string;
  readonly etcHosts: string;
  /** `type` as in `configmap`, `empty-dir`. */
  volume(type: string, name: string): string;
  terminationLog(container: string, attempt: number): string;
}

/** @throws Error for a UID or name that cannot be a path element */
export function podDirectory(root: string, uid: string): PodDirectory {
  const path = join(root, element(uid));
  return {
    path,
    volumes: join(path, "volumes"),
    etcHosts: join(path, "etc-hosts"),
    volume: (type, name) => join(path, "volumes", `kubernetes.io~${element(type)}`, element(name)),
    terminationLog: (container, attempt) => join(path, "containers", element(container), String(attempt)),
  };
}

/** Names come from the API, where they are checked; a path must not depend on that. */
function element(name: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) throw new Error(`"${name}" can be no part of a pod's directory`);
  return name;
}
