import type { Clock } from "#base";

/**
 * Delays by key, counted from a moment that the caller names: the end of a container's last run, a failed pull.
 *
 * Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restarts
 */
export interface RestartBackoff {
  /** When the key may be tried again after something at `since`; undefined: now. Milliseconds. */
  until(key: string, since: number): { at: number; delay: number } | undefined;
  /** Registers a try: the next delay is twice as long, or the first one again after a long quiet time. */
  next(key: string, since: number): void;
  forget(prefix: string): void;
}

const FIRST = 10_000;
const MAX = 300_000;
/** A run that lasted longer than this starts the delays afresh. */
const RESET_AFTER = 2 * MAX;

export function createRestartBackoff(clock: Clock): RestartBackoff {
  const entries = new Map<string, { delay: number; updated: number }>();
  const live = (key: string, since: number) => {
    const entry = entries.get(key);
    return entry && since - entry.updated <= RESET_AFTER ? entry : undefined;
  };
  return {
    until(key, since) {
      const entry = live(key, since);
      if (!entry || clock.now() - since >= entry.delay) return undefined;
      return { at: since + entry.delay, delay: entry.delay };
    },
    next(key, since) {
      const entry = live(key, since);
      entries.set(key, { delay: entry ? Math.min(MAX, entry.delay * 2) : FIRST, updated: clock.now() });
    },
    forget(prefix) {
      for (const key of entries.keys()) if (key.startsWith(prefix)) entries.delete(key);
    },
  };
}
