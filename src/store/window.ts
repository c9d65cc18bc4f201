import { StoreError } from "./errors.ts";
import type { Change, StoredObject } from "./port.ts";

/** The past changes that are still known, oldest first. Its length is between `keep` and twice `keep` once it is full. */
export class ChangeWindow {
  #changes: Change[] = [];
  #compacted: number;
  readonly #keep: number;

  constructor(revision: number, keep: number) {
    this.#compacted = revision;
    this.#keep = keep;
  }

  /** All changes after this revision are known. */
  get compacted(): number {
    return this.#compacted;
  }

  push(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length < 2 * this.#keep) return;
    this.#compacted = this.#changes[this.#keep - 1]!.revision;
    this.#changes = this.#changes.slice(this.#keep);
  }

  /** Changes after `since`, in order. @throws {StoreError} `compacted`, `future` */
  *since(since: number, current: number): Generator<Change> {
    this.check(since, current);
    for (let i = this.#indexAfter(since); i < this.#changes.length; i++) yield this.#changes[i]!;
  }

  /** What keys under `prefix` held at `revision`, for those that changed since: undefined = absent then. */
  overlay(prefix: string, revision: number, current: number): Map<string, StoredObject | undefined> {
    this.check(revision, current);
    const overlay = new Map<string, StoredObject | undefined>();
    const first = this.#indexAfter(revision);
    for (let i = this.#changes.length - 1; i >= first; i--) {
      const change = this.#changes[i]!;
      if (change.key.startsWith(prefix)) overlay.set(change.key, change.previous);
    }
    return overlay;
  }

  check(revision: number, current: number): void {
    if (revision > current)
      throw new StoreError("future", `revision ${revision} is later than the current one, ${current}`);
    if (revision < this.#compacted)
      throw new StoreError("compacted", `revision ${revision} is no longer known; the oldest is ${this.#compacted}`);
  }

  #indexAfter(revision: number): number {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#changes[middle]!.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
