/** A pending timer. `clear` is idempotent. */
export interface Timer {
  clear(): void;
}

/** The only source of time. Everything that waits takes one, so that tests and simulations choose the time. */
export interface Clock {
  /** Wall clock, milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Milliseconds that never go backwards; only differences mean something. */
  monotonic(): number;
  /** Calls `fn` once after `ms`; never keeps the process alive. */
  setTimer(fn: () => void, ms: number): Timer;
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, options?: { signal?: AbortSignal }): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(fn, ms) {
    const handle = setTimeout(fn, Math.min(ms, MAX_DELAY));
    handle.unref();
    return { clear: () => clearTimeout(handle) };
  },
  sleep: (ms, options) => sleepOn(systemClock, ms, options?.signal),
};

/** setTimeout takes a signed 32 bit delay; a longer one would fire at once. */
const MAX_DELAY = 2 ** 31 - 1;

export interface FakeClock extends Clock {
  /** Moves time on by `ms`, firing due timers in order and letting promises settle between them. */
  advance(ms: number): Promise<void>;
  /** Timers that have not fired. */
  readonly pending: number;
}

export function createFakeClock(start: number = Date.UTC(2026, 0, 1)): FakeClock {
  let time = start;
  let order = 0;
  const timers = new Set<{ at: number; order: number; fn: () => void }>();
  const clock: FakeClock = {
    now: () => time,
    monotonic: () => time - start,
    get pending() {
      return timers.size;
    },
    setTimer(fn, ms) {
      const timer = { at: time + Math.max(0, ms), order: order++, fn };
      timers.add(timer);
      return { clear: () => void timers.delete(timer) };
    },
    sleep: (ms, options) => sleepOn(clock, ms, options?.signal),
    async advance(ms) {
      const end = time + ms;
      await settle();
      for (;;) {
        const due = [...timers].filter((t) => t.at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
        if (!due) break;
        timers.delete(due);
        time = Math.max(time, due.at);
        due.fn();
        await settle();
      }
      time = end;
      await settle();
    },
  };
  return clock;
}

/** Lets promise chains and immediates run out, so that a step of fake time sees its consequences. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}

function sleepOn(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
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
  });
}
