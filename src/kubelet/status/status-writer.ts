import { type Clock, type DeepReadonly, deepEqual, type Logger, type Timer } from "#base";
import type { Client } from "#client";
import { isStatus, type Pod, type PodStatus, resources } from "#kinds";
import type { ReadonlyPod } from "../ports.ts";
import { statusPatch } from "./status-patch.ts";

/** Writes pods' statuses to the API: only changes, the newest last, one write at a time per pod, again after failures. */
export interface StatusWriter {
  /** What the API will have once all is written; undefined: nothing was set. */
  get(uid: string): DeepReadonly<PodStatus> | undefined;
  /** `delete`: after this status is written, a pod that is being deleted is removed for good. */
  set(pod: ReadonlyPod, status: PodStatus, options?: { delete?: boolean }): void;
  /** Drops all that is known of a pod. */
  forget(uid: string): void;
  /** Resolves when nothing is left to write, or cannot be written now. */
  flush(): Promise<void>;
  stop(): void;
}

interface Entry {
  pod: ReadonlyPod;
  status: DeepReadonly<PodStatus>;
  delete: boolean;
  /** The API's pod as the last write gave it. */
  server: ReadonlyPod | undefined;
  written: DeepReadonly<PodStatus> | undefined;
  busy: Promise<void> | undefined;
  retry: Timer | undefined;
  failures: number;
}

const FIRST_RETRY = 50;
const MAX_RETRY = 10_000;

export function createStatusWriter(
  deps: { client: Client; clock: Clock; logger: Logger },
  options: {
    /** The pod as the watch has it; undefined when it is gone. */
    current(uid: string): ReadonlyPod | undefined;
    /** After the object was removed, or found to be gone. */
    onGone?(uid: string): void;
  },
): StatusWriter {
  const { client, clock, logger } = deps;
  const entries = new Map<string, Entry>();
  let stopped = false;

  async function write(uid: string, entry: Entry): Promise<void> {
    const { status } = entry;
    const { name, namespace = "" } = entry.pod.metadata ?? {};
    const base = newer(options.current(uid), entry.server) ?? entry.pod;
    const patch = statusPatch(base.status ?? {}, status);
    if (patch) {
      const body = { metadata: { uid }, status: patch };
      entry.server = await client.patch(
        resources.pods,
        name ?? "",
        { type: "strategic", body },
        { namespace, subresource: "status" },
      );
    }
    entry.written = status;
    if (!entry.delete || entry.status !== status) return;
    await client.delete(resources.pods, name ?? "", { namespace, gracePeriodSeconds: 0, preconditions: { uid } });
    entries.delete(uid);
    options.onGone?.(uid);
  }

  function pump(uid: string, entry: Entry): void {
    if (entry.busy || entry.retry || stopped || entries.get(uid) !== entry) return;
    if (entry.written === entry.status && !entry.delete) return;
    entry.busy = write(uid, entry)
      .then(
        () => {
          entry.failures = 0;
        },
        (error: unknown) => {
          if (isGone(error)) {
            entries.delete(uid);
            options.onGone?.(uid);
            return;
          }
          const delay = Math.min(MAX_RETRY, FIRST_RETRY * 2 ** entry.failures++);
          logger.warn("writing a pod's status failed; it is tried again", {
            pod: entry.pod.metadata?.name,
            delay,
            error,
          });
          entry.retry = clock.setTimer(() => {
            entry.retry = undefined;
            pump(uid, entry);
          }, delay);
        },
      )
      .finally(() => {
        entry.busy = undefined;
        if (entry.written !== entry.status) pump(uid, entry);
      });
  }

  return {
    get: (uid) => entries.get(uid)?.status,
    set(pod, status, set = {}) {
      const uid = pod.metadata?.uid ?? "";
      const known = entries.get(uid);
      const entry = known ?? {
        pod,
        status,
        delete: false,
        server: undefined,
        written: undefined,
        busy: undefined,
        retry: undefined,
        failures: 0,
      };
      entries.set(uid, entry);
      entry.pod = pod;
      if (set.delete) entry.delete = true;
      if (!known || !deepEqual(known.status, status)) entry.status = status;
      pump(uid, entry);
    },
    forget(uid) {
      entries.get(uid)?.retry?.clear();
      entries.delete(uid);
    },
    async flush() {
      for (;;) {
        const busy = [...entries.values()].flatMap((entry) => entry.busy ?? []);
        if (busy.length === 0) return;
        await Promise.all(busy);
      }
    },
    stop() {
      stopped = true;
      for (const entry of entries.values()) entry.retry?.clear();
    },
  };
}

/** The object does not exist any more, or another one bears its name: nobody to tell. */
const isGone = (error: unknown): boolean =>
  isStatus(error, "NotFound") || (isStatus(error, "Conflict", "Invalid") && /uid/i.test(error.message));

function newer(a: ReadonlyPod | undefined, b: ReadonlyPod | undefined): ReadonlyPod | undefined {
  if (!a || !b) return a ?? b;
  return Number((a as Pod).metadata?.resourceVersion) >= Number((b as Pod).metadata?.resourceVersion) ? a : b;
}
