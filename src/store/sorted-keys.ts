/** Largest chunk; a full one is split in two. Insertion moves at most this many entries. */
const CHUNK = 512;

/** Strings in order (by UTF-16 code units), with insertion, removal and range scans in about the square root of the size. */
export class SortedKeys {
  #chunks: string[][] = [[]];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a key that is not there yet. */
  add(key: string): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at]!;
    const last = chunk.at(-1);
    if (last === undefined || last < key) chunk.push(key);
    else chunk.splice(lowerBound(chunk, key), 0, key);
    this.#size++;
    if (chunk.length > CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK / 2));
  }

  /** Removes a key that is there. */
  remove(key: string): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at]!;
    chunk.splice(lowerBound(chunk, key), 1);
    this.#size--;
    if (chunk.length === 0 && this.#chunks.length > 1) this.#chunks.splice(at, 1);
  }

  /** Keys that start with `prefix`, from the first one that is not before `from` on. */
  *scan(prefix: string, from: string = prefix): Generator<string> {
    for (let at = this.#chunkOf(from); at < this.#chunks.length; at++) {
      const chunk = this.#chunks[at]!;
      for (let i = lowerBound(chunk, from); i < chunk.length; i++) {
        const key = chunk[i]!;
        if (!key.startsWith(prefix)) return;
        yield key;
      }
    }
  }

  /** Number of keys that start with `prefix` and are not before `from`. */
  count(prefix: string, from: string = prefix): number {
    const end = after(prefix);
    return (end === undefined ? this.#size : this.#rank(end)) - this.#rank(from < prefix ? prefix : from);
  }

  /** Number of keys before `key`. */
  #rank(key: string): number {
    const at = this.#chunkOf(key);
    let rank = lowerBound(this.#chunks[at]!, key);
    for (let i = 0; i < at; i++) rank += this.#chunks[i]!.length;
    return rank;
  }

  /** The chunk that holds the key or would: the first whose last key is not before it. */
  #chunkOf(key: string): number {
    let low = 0;
    let high = this.#chunks.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#chunks[middle]!.at(-1)! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Index of the first entry that is not before `key`. */
function lowerBound(chunk: readonly string[], key: string): number {
  let low = 0;
  let high = chunk.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (chunk[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first string after all that start with `prefix`; undefined when there is none. */
function after(prefix: string): string | undefined {
  if (prefix === "") return undefined;
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
