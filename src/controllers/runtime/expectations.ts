import type { Clock } from "#base";

/** Writes that are not seen in the cache after this long will not be waited for any more, milliseconds. */
const TIMEOUT = 300_000;

/**
 * What a controller has written and not yet seen in its cache, by key. A controller that acts only when nothing is expected
 * never makes a second pod because the first is not in its cache yet.
 */
export interface Expectations {
  expectCreations(key: string, count: number): void;
  expectDeletions(key: string, uids: readonly string[]): void;
  /** One creation was seen, or will not come. */
  creationObserved(key: string): void;
  deletionObserved(key: string, uid: string): void;
  satisfied(key: string): boolean;
  forget(key: string): void;
}

export function createExpectations(clock: Clock): Expectations {
  const entries = new Map<string, { creations: number; deletions: Set<string>; at: number }>();
  const entryOf = (key: string) => {
    let entry = entries.get(key);
    if (!entry) {
      entry = { creations: 0, deletions: new Set(), at: 0 };
      entries.set(key, entry);
    }
    return entry;
  };
  const settle = (key: string) => {
    const entry = entries.get(key);
    if (entry && entry.creations <= 0 && entry.deletions.size === 0) entries.delete(key);
  };
  return {
    expectCreations(key, count) {
      const entry = entryOf(key);
      entry.creations = count;
      entry.at = clock.monotonic();
      settle(key);
    },
    expectDeletions(key, uids) {
      const entry = entryOf(key);
      entry.deletions = new Set(uids);
      entry.at = clock.monotonic();
      settle(key);
    },
    creationObserved(key) {
      const entry = entries.get(key);
      if (!entry) return;
      entry.creations--;
      settle(key);
    },
    deletionObserved(key, uid) {
      if (entries.get(key)?.deletions.delete(uid)) settle(key);
    },
    satisfied(key) {
      const entry = entries.get(key);
      return !entry || clock.monotonic() - entry.at > TIMEOUT;
    },
    forget: (key) => void entries.delete(key),
  };
}
