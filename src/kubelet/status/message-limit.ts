import type { PodStatus } from "#kinds";

/** What the messages of all containers of a pod may take together, bytes. */
const MOST = 12 * 1024;

/**
 * Shortens termination messages, so that those of many containers do not make an object too large: each may take its share.
 *
 * Source: https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
 */
export function limitMessages(status: PodStatus): void {
  const all = [
    ...(status.containerStatuses ?? []),
    ...(status.initContainerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ];
  const share = Math.floor(MOST / Math.max(1, all.length));
  for (const { state, lastState } of all) {
    for (const terminated of [state?.terminated, lastState?.terminated]) {
      if (terminated?.message === undefined || Buffer.byteLength(terminated.message) <= share) continue;
      terminated.message = cut(terminated.message, share);
    }
  }
}

/** So many bytes of the text, no broken character at the end. */
function cut(text: string, bytes: number): string {
  const raw = Buffer.from(text);
  let end = bytes;
  while (end > 0 && ((raw[end] ?? 0) & 0xc0) === 0x80) end--;
  return raw.subarray(0, end).toString("utf8");
}
