import type { Clock } from "./clock.ts";

export interface BackoffOptions {
  /** First delay, milliseconds. */
  initial: number;
  /** Largest delay, milliseconds. */
  max: number;
  /** Default 2. */
  factor?: number;
  /** A key that was quiet this long starts afresh, milliseconds. Default: twice `max`. */
  resetAfter?: number;
}

/** Exponential back-off by key. */
export interface Backoff {
  /** Registers a failure and gives the delay before the next try, milliseconds. */
  next(key: string): number;
  /** The delay that is in force now, 0 for an unknown key. */
  current(key: string): number;
  reset(key: string): void;
}

export function createBackoff(clock: Clock, options: BackoffOptions): Backoff {
  const entries = new Map<string, { delay: number; at: number }>();
  const resetAfter = options.resetAfter ?? 2 * options.max;
  const fresh = (key: string) => {
    const entry = entries.get(key);
    if (entry && clock.monotonic() - entry.at > resetAfter + entry.delay) {
      entries.delete(key);
      return undefined;
    }
    return entry;
  };
  return {
    next(key) {
      const delay = Math.min(
        options.max,
        (fresh(key)?.delay ?? options.initial / (options.factor ?? 2)) * (options.factor ?? 2),
      );
      entries.set(key, { delay, at: clock.monotonic() });
      return delay;
    },
    current: (key) => fresh(key)?.delay ?? 0,
    reset: (key) => void entries.delete(key),
  };
}
