import type { Store } from "../port.ts";
import { createVersionedStore, type VersionedOptions } from "../versioned.ts";

/** A store that persists nothing: everything is gone with the process. */
export function createMemoryStore(options?: VersionedOptions): Store {
  const journal = { load: () => [], revision: 0, reserved: Infinity, append: async () => {}, close: async () => {} };
  return createVersionedStore(journal, options);
}
