import { type Backoff, createBackoff } from "./backoff.ts";
import type { Clock, Timer } from "./clock.ts";

/**
 * A de-duplicating queue of keys, with the guarantees of client-go's workqueue: a key is handled by one worker at a
 * time; a key that is added while it is handled is handled once more afterwards; a key waiting is not queued twice.
 */
export interface WorkQueue {
  add(key: string): void;
  /** Adds the key after `ms`; an earlier wait for the same key stands if it ends sooner. */
  addAfter(key: string, ms: number): void;
  /** Adds the key after its back-off (5 ms doubling to 1000 s by default). */
  addRateLimited(key: string): void;
  /** Ends the key's back-off. */
  forget(key: string): void;
  readonly length: number;
  /** True while nothing waits, is handled or is timed. */
  readonly idle: boolean;
  /** Hands keys to `handle`, at most `concurrency` at once, until the signal aborts. `handle` must not throw. */
  run(handle: (key: string) => Promise<void>, options: { concurrency?: number; signal: AbortSignal }): void;
}

export function createWorkQueue(clock: Clock, options?: { backoff?: Backoff }): WorkQueue {
  const backoff = options?.backoff ?? createBackoff(clock, { initial: 5, max: 1_000_000 });
  const waiting = new Set<string>();
  const handling = new Set<string>();
  const again = new Set<string>();
  const timed = new Map<string, { at: number; timer: Timer }>();
  let pump = () => {};

  const queue: WorkQueue = {
    add(key) {
      if (handling.has(key)) again.add(key);
      else waiting.add(key);
      pump();
    },
    addAfter(key, ms) {
      if (ms <= 0) return queue.add(key);
      const at = clock.monotonic() + ms;
      const earlier = timed.get(key);
      if (earlier && earlier.at <= at) return;
      earlier?.timer.clear();
      const timer = clock.setTimer(() => {
        timed.delete(key);
        queue.add(key);
      }, ms);
      timed.set(key, { at, timer });
    },
    addRateLimited: (key) => queue.addAfter(key, backoff.next(key)),
    forget: (key) => backoff.reset(key),
    get length() {
      return waiting.size;
    },
    get idle() {
      return waiting.size === 0 && handling.size === 0 && timed.size === 0;
    },
    run(handle, { concurrency = 1, signal }) {
      const one = async (key: string) => {
        await handle(key);
        handling.delete(key);
        if (again.delete(key)) waiting.add(key);
        pump();
      };
      pump = () => {
        for (const key of waiting) {
          if (signal.aborted || handling.size >= concurrency) return;
          waiting.delete(key);
          handling.add(key);
          void one(key);
        }
      };
      signal.addEventListener("abort", () => {
        for (const { timer } of timed.values()) timer.clear();
        timed.clear();
      });
      pump();
    },
  };
  return queue;
}
