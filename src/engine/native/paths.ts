import { join } from "node:path";

/** Where the engine keeps what. `dataDir` survives a reboot; `runDir` holds what lives no longer than this boot. */
export interface Paths {
  readonly sandboxRecords: string;
  readonly containerRecords: string;
  /** Compiled seccomp filters. */
  readonly seccompCache: string;
  readonly exits: string;
  readonly persist: string;
  readonly sockets: string;
  readonly runtimeRoot: (runtime: string) => string;
  /** Files of one sandbox: pinned namespaces, resolv.conf, shm. */
  readonly sandbox: (id: string) => string;
  /** The container's writable layer. */
  readonly layer: (id: string) => string;
  readonly bundle: (id: string) => string;
  readonly roots: readonly string[];
}

export function pathsOf({ dataDir, runDir }: { dataDir: string; runDir: string }): Paths {
  return {
    sandboxRecords: join(dataDir, "sandboxes"),
    containerRecords: join(dataDir, "containers"),
    seccompCache: join(dataDir, "seccomp"),
    exits: join(runDir, "exits"),
    persist: join(runDir, "persist"),
    sockets: join(runDir, "sock"),
    runtimeRoot: (runtime) => join(runDir, "runtime", runtime),
    sandbox: (id) => join(runDir, "sandboxes", id),
    layer: (id) => join(dataDir, "layers-rw", id),
    bundle: (id) => join(runDir, "bundles", id),
    roots: [
      ...["sandboxes", "containers", "layers-rw", "seccomp"].map((name) => join(dataDir, name)),
      ...["exits", "persist", "sock", "runtime", "sandboxes", "bundles", "bin"].map((name) => join(runDir, name)),
    ],
  };
}
