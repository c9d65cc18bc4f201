import type { Clock } from "#base";

/** A clock that runs as the real one does, and that can be moved on. */
export interface MovableClock extends Clock {
  /**
   * Moves time on by `ms`: every timer that falls due fires in its order, at its own time, and what follows from it is waited
   * for before the next. An hour of a quiet cluster takes about a second.
   */
  advance(ms: number): Promise<void>;
}

interface Entry {
  readonly at: number;
  readonly fn: () => void;
  handle: NodeJS.Timeout | undefined;
}

const MAX_DELAY = 2 ** 31 - 1;

export function createMovableClock(): MovableClock {
  let shift = 0;
  let moving = Promise.resolve();
  /** While time is being moved on, it stands still between two timers. */
  let standing: number | undefined;
  const entries = new Set<Entry>();
  const monotonic = () => standing ?? performance.now() + shift;

  const arm = (entry: Entry) => {
    clearTimeout(entry.handle);
    entry.handle = setTimeout(() => fire(entry), Math.min(Math.max(0, entry.at - monotonic()), MAX_DELAY));
    entry.handle.unref();
  };
  const fire = (entry: Entry) => {
    if (standing !== undefined) return; // whoever moves time fires it in its turn
    if (entry.at - monotonic() > 1) return arm(entry); // it was further away than a real timer reaches
    entries.delete(entry);
    entry.fn();
  };
  const next = (end: number): Entry | undefined => {
    let first: Entry | undefined;
    for (const entry of entries) if (entry.at <= end && (!first || entry.at < first.at)) first = entry;
    return first;
  };
  const move = async (ms: number) => {
    standing = monotonic();
    const end = standing + ms;
    try {
      await settle();
      for (let entry = next(end); entry; entry = next(end)) {
        entries.delete(entry);
        clearTimeout(entry.handle);
        standing = Math.max(standing, entry.at);
        entry.fn();
        await settle();
      }
    } finally {
      shift = end - performance.now();
      standing = undefined;
      for (const entry of entries) arm(entry);
    }
  };
  const clock: MovableClock = {
    now: () => Math.round(performance.timeOrigin + monotonic()),
    monotonic,
    setTimer(fn, ms) {
      const entry: Entry = { at: monotonic() + Math.max(0, ms), fn, handle: undefined };
      entries.add(entry);
      arm(entry);
      return {
        clear() {
          entries.delete(entry);
          clearTimeout(entry.handle);
        },
      };
    },
    sleep: (ms, options) =>
      new Promise((resolve, reject) => {
        const signal = options?.signal;
        if (signal?.aborted) return reject(signal.reason);
        const abort = () => {
          timer.clear();
          reject(signal?.reason);
        };
        const timer = clock.setTimer(() => {
          signal?.removeEventListener("abort", abort);
          resolve();
        }, ms);
        signal?.addEventListener("abort", abort, { once: true });
      }),
    advance(ms) {
      moving = moving.then(() => move(ms));
      return moving;
    },
  };
  return clock;
}

/** Turns of the event loop without any file operation under way after which nothing more is expected to follow. */
const QUIET = 8;
const MOST = 5000;

/** Lets promise chains, immediates and file operations run out. */
async function settle(): Promise<void> {
  for (let quiet = 0, turns = 0; quiet < QUIET && turns < MOST; turns++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    quiet = process.getActiveResourcesInfo().some((kind) => kind.startsWith("FSReq")) ? 0 : quiet + 1;
  }
}
