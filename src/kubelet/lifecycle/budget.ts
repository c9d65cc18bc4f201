import type { Clock, Timer } from "#base";

/** The time that a pod has for stopping: shared by hooks, waiting for others and the stop signal; it can be cut short. */
export interface Budget extends Disposable {
  remaining(): number;
  /** Less time, from now; never more. */
  shorten(ms: number): void;
  /** Aborts when the time is up. */
  readonly signal: AbortSignal;
}

export function createBudget(clock: Clock, ms: number): Budget {
  const controller = new AbortController();
  let end = clock.now() + ms;
  let timer: Timer | undefined;
  const arm = () => {
    timer?.clear();
    const left = end - clock.now();
    if (left <= 0) controller.abort();
    else timer = clock.setTimer(() => controller.abort(), left);
  };
  arm();
  return {
    remaining: () => Math.max(0, end - clock.now()),
    shorten(less) {
      if (clock.now() + less >= end) return;
      end = clock.now() + less;
      arm();
    },
    signal: controller.signal,
    [Symbol.dispose]: () => timer?.clear(),
  };
}
