/** Runs work for one key at a time, in the order of the calls. */
export interface KeyedLock {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
  /** Resolves when no work is left. */
  idle(): Promise<void>;
}

export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>();
  return {
    async idle() {
      while (tails.size > 0) await Promise.all(tails.values());
    },
    async run<T>(key: string, work: () => Promise<T>): Promise<T> {
      const before = tails.get(key);
      const mine = before ? before.then(work, work) : work();
      const tail = mine.catch(() => {}); // the caller gets the error; the next in line must not
      tails.set(key, tail);
      try {
        return await mine;
      } finally {
        if (tails.get(key) === tail) tails.delete(key);
      }
    },
  };
}

/** Lets at most `size` pieces of work go on at once, first come first served. */
export interface Semaphore {
  run<T>(work: () => Promise<T>): Promise<T>;
}

export function createSemaphore(size: number): Semaphore {
  let free = size;
  const waiting: (() => void)[] = [];
  return {
    async run<T>(work: () => Promise<T>): Promise<T> {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else free++;
      }
    },
  };
}
