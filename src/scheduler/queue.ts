import type { Clock, Timer } from "#base";
import type { PodInfo } from "./pod-info.ts";

/** What happened that may let a refused pod fit. */
export type WakeEvent = "node" | "pod-gone" | "pod-placed" | "volume" | "namespace";

export interface QueuedPod {
  info: PodInfo;
  /** Failed attempts since the pod came. */
  attempts: number;
  /** When it was queued last, for the order among equals. */
  since: number;
  /** What it waits for: events that can't matter do not wake it. Empty = any. */
  waitsFor: ReadonlySet<WakeEvent>;
}

/** Back-off of refused pods, milliseconds; and the longest that one stays unlooked at. */
const FIRST_BACKOFF = 1000;
const MAX_BACKOFF = 10_000;
const FLUSH_AFTER = 300_000;
/** Retries a second that need not wait for their back-off while nothing else is to be done. */
const EARLY_RETRIES = 100;

/**
 * Pods to be scheduled: active ones by priority, then age; refused ones, which events bring back, at once while the
 * scheduler is idle and otherwise after their back-off.
 */
export interface SchedulingQueue {
  /** A new pod, or a changed one: goes to the active pods. */
  add(info: PodInfo): void;
  remove(key: string): void;
  /** The next pod; it belongs to the caller until added, refused or dropped. */
  pop(): QueuedPod | undefined;
  /** Puts a popped pod aside until an event wakes it. */
  refused(entry: QueuedPod, waitsFor: ReadonlySet<WakeEvent>): void;
  /** Puts a popped pod back after its back-off: something went wrong that is not the pod's fault. */
  retry(entry: QueuedPod): void;
  wake(event: WakeEvent): void;
  has(key: string): boolean;
  readonly counts: { active: number; backoff: number; unschedulable: number };
  stop(): void;
}

export function createSchedulingQueue(clock: Clock, onActive: () => void): SchedulingQueue {
  const active = new Map<string, QueuedPod>();
  const heap: QueuedPod[] = [];
  const unschedulable = new Map<string, QueuedPod>();
  const backoff = new Map<string, { entry: QueuedPod; timer: Timer }>();
  let flush: Timer | undefined;
  let early = { tokens: EARLY_RETRIES, at: clock.monotonic() };
  /** Events seen since a pod was popped: it may have been refused on older news. */
  let wakes = 0;
  const poppedAt = new WeakMap<QueuedPod, number>();

  const activate = (entry: QueuedPod) => {
    active.set(entry.info.key, entry);
    push(heap, entry);
    onActive();
  };
  const drop = (key: string) => {
    const entry = active.get(key) ?? unschedulable.get(key) ?? backoff.get(key)?.entry;
    active.delete(key);
    unschedulable.delete(key);
    backoff.get(key)?.timer.clear();
    backoff.delete(key);
    return entry;
  };
  const backoffOf = (entry: QueuedPod) =>
    Math.min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** Math.max(0, entry.attempts - 1)) - (clock.monotonic() - entry.since);
  const mayRetryEarly = () => {
    const now = clock.monotonic();
    early = { tokens: Math.min(EARLY_RETRIES, early.tokens + ((now - early.at) * EARLY_RETRIES) / 1000), at: now };
    if (active.size > 0 || early.tokens < 1) return false;
    early.tokens--;
    return true;
  };
  const delay = (entry: QueuedPod, ms: number) => {
    const timer = clock.setTimer(() => {
      backoff.delete(entry.info.key);
      activate(entry);
    }, ms);
    backoff.set(entry.info.key, { entry, timer });
  };
  const bringBack = (entry: QueuedPod, earlyOk: boolean) => {
    const wait = backoffOf(entry);
    if (wait <= 0 || earlyOk) activate(entry);
    else delay(entry, wait);
  };
  const armFlush = () => {
    if (flush || unschedulable.size === 0) return;
    flush = clock.setTimer(() => {
      flush = undefined;
      for (const [key, entry] of [...unschedulable]) {
        if (clock.monotonic() - entry.since < FLUSH_AFTER) continue;
        unschedulable.delete(key);
        activate(entry);
      }
      armFlush();
    }, FLUSH_AFTER);
  };

  return {
    add(info) {
      const before = drop(info.key);
      const attempts = before?.attempts ?? 0;
      activate({ info, attempts, since: before?.since ?? clock.monotonic(), waitsFor: new Set() });
    },
    remove: (key) => void drop(key),
    has: (key) => active.has(key) || unschedulable.has(key) || backoff.has(key),
    pop() {
      for (;;) {
        const entry = pop(heap);
        if (!entry) return undefined;
        if (active.get(entry.info.key) !== entry) continue;
        active.delete(entry.info.key);
        poppedAt.set(entry, wakes);
        return entry;
      }
    },
    refused(entry, waitsFor) {
      const missed = poppedAt.get(entry) !== wakes;
      entry.attempts++;
      entry.since = clock.monotonic();
      entry.waitsFor = waitsFor;
      if (missed) return bringBack(entry, false);
      unschedulable.set(entry.info.key, entry);
      armFlush();
    },
    retry(entry) {
      entry.attempts++;
      entry.since = clock.monotonic();
      delay(entry, backoffOf(entry));
    },
    wake(event) {
      wakes++;
      if (unschedulable.size === 0) return;
      const woken = [...unschedulable.values()].filter(({ waitsFor }) => waitsFor.size === 0 || waitsFor.has(event));
      woken.sort((a, b) => (before(a, b) ? -1 : 1));
      // Decided before the first is activated: all that one event wakes may use the idle time.
      for (const [i, entry] of woken.entries()) {
        unschedulable.delete(entry.info.key);
        bringBack(entry, i < EARLY_RETRIES && (i > 0 ? early.tokens-- >= 1 : mayRetryEarly()));
      }
    },
    get counts() {
      return { active: active.size, backoff: backoff.size, unschedulable: unschedulable.size };
    },
    stop() {
      flush?.clear();
      for (const { timer } of backoff.values()) timer.clear();
    },
  };
}

const before = (a: QueuedPod, b: QueuedPod): boolean =>
  a.info.priority !== b.info.priority ? a.info.priority > b.info.priority : a.since < b.since;

function push(heap: QueuedPod[], entry: QueuedPod): void {
  heap.push(entry);
  let i = heap.length - 1;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (!before(heap[i]!, heap[parent]!)) return;
    [heap[i], heap[parent]] = [heap[parent]!, heap[i]!];
    i = parent;
  }
}

function pop(heap: QueuedPod[]): QueuedPod | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (heap.length === 0 || last === undefined) return top;
  heap[0] = last;
  let i = 0;
  for (;;) {
    const left = 2 * i + 1;
    let first = i;
    if (left < heap.length && before(heap[left]!, heap[first]!)) first = left;
    if (left + 1 < heap.length && before(heap[left + 1]!, heap[first]!)) first = left + 1;
    if (first === i) return top;
    [heap[i], heap[first]] = [heap[first]!, heap[i]!];
    i = first;
  }
}
