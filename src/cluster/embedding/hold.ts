/** Keeps the process alive while calls are pending: the timers of the library do not, so an awaited call would end in nothing. */
export interface Hold {
  during<T>(work: Promise<T>): Promise<T>;
  /** The same for a loop: from the first step to its end. */
  whileIterating<T>(items: AsyncIterable<T>): AsyncGenerator<T, void>;
}

const LONG = 2 ** 30;

export function createHold(): Hold {
  let pending = 0;
  let timer: NodeJS.Timeout | undefined;
  const enter = () => {
    pending++;
    timer ??= setInterval(() => {}, LONG);
  };
  const leave = () => {
    if (--pending > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  return {
    async during(work) {
      enter();
      try {
        return await work;
      } finally {
        leave();
      }
    },
    async *whileIterating(items) {
      enter();
      try {
        yield* items;
      } finally {
        leave();
      }
    },
  };
}
