import type { Change } from "./port.ts";

/**
 * Listeners by prefix. A change of `/a/b/c` reaches the prefixes `/`, `/a/`, `/a/b/`, `/a/b/c` and ``, so a write costs as many
 * look-ups as its key has parts, however many watchers of other things there are.
 */
export class Watchers {
  #byPrefix = new Map<string, Set<(change: Change) => void>>();

  add(prefix: string, listener: (change: Change) => void): Disposable {
    const set = this.#byPrefix.get(prefix) ?? new Set();
    this.#byPrefix.set(prefix, set);
    set.add(listener);
    return {
      [Symbol.dispose]: () => {
        set.delete(listener);
        if (set.size === 0 && this.#byPrefix.get(prefix) === set) this.#byPrefix.delete(prefix);
      },
    };
  }

  dispatch(change: Change): void {
    this.#tell("", change);
    for (let slash = change.key.indexOf("/"); slash >= 0; slash = change.key.indexOf("/", slash + 1)) {
      this.#tell(change.key.slice(0, slash + 1), change);
    }
    if (!change.key.endsWith("/")) this.#tell(change.key, change);
  }

  #tell(prefix: string, change: Change): void {
    const listeners = this.#byPrefix.get(prefix);
    if (!listeners) return;
    for (const listener of listeners) listener(change);
  }
}
