import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { hasCode } from "#base";
import { CLONE, type Libc, MNT_DETACH, MS } from "./libc.ts";
import type { Run } from "./run.ts";
import { mustRun } from "./run.ts";

export type NamespaceKind = "net" | "uts" | "ipc";
const FLAGS: Record<NamespaceKind, number> = { net: CLONE.NEWNET, uts: CLONE.NEWUTS, ipc: CLONE.NEWIPC };

/**
 * Namespaces that live in bind-mounted files and need no process.
 *
 * With koffi the calling thread steps into new namespaces and back in one synchronous stretch of a millisecond: no other
 * JavaScript runs meanwhile and other threads keep their own namespaces. If it could not step back, nothing in this process
 * could be trusted any more, so that ends the process; containers go on and the next start adopts them.
 */
export interface Namespaces {
  /** Makes the kinds named in `files` and pins each to its file; `inside` runs in them (synchronously; absent without koffi). */
  create(
    files: Partial<Record<NamespaceKind, string>>,
    options: { hostname?: string; sysctls: Readonly<Record<string, string>> },
  ): Promise<void>;
  /** Runs `work` inside the pinned network namespace. Only with koffi. */
  visitNetwork<T>(file: string, work: () => T): T;
  release(file: string): void | Promise<void>;
}

export function createNamespaces(libc: Libc | undefined, run: Run): Namespaces {
  return libc ? inThread(libc) : bySpawning(run);
}

function inThread(libc: Libc): Namespaces {
  const home = {
    net: openSync("/proc/self/ns/net", "r"),
    uts: openSync("/proc/self/ns/uts", "r"),
    ipc: openSync("/proc/self/ns/ipc", "r"),
  };
  const away = <T>(kinds: readonly NamespaceKind[], work: () => T): T => {
    try {
      return work();
    } finally {
      try {
        for (const kind of kinds) libc.setns(home[kind], FLAGS[kind]);
      } catch {
        process.abort();
      }
    }
  };
  return {
    async create(files, { hostname, sysctls }) {
      const kinds = Object.keys(files) as NamespaceKind[];
      if (kinds.length === 0) return;
      for (const kind of kinds) emptyFile(files[kind]!);
      away(kinds, () => {
        libc.unshare(kinds.reduce((flags, kind) => flags | FLAGS[kind], 0));
        if (files.uts !== undefined && hostname !== undefined) libc.sethostname(hostname);
        for (const [name, value] of Object.entries(sysctls)) writeSysctl(name, value);
        for (const kind of kinds) libc.mount(`/proc/thread-self/ns/${kind}`, files[kind]!, null, MS.BIND, null);
      });
    },
    visitNetwork(file, work) {
      const fd = openSync(file, "r");
      try {
        return away(["net"], () => {
          libc.setns(fd, CLONE.NEWNET);
          return work();
        });
      } finally {
        closeSync(fd);
      }
    },
    release(file) {
      try {
        libc.umount(file, MNT_DETACH);
      } catch (error) {
        if (!hasCode(error, "EINVAL", "ENOENT")) throw error; // not mounted (any more)
      }
      rmSync(file, { force: true });
    },
  };
}

function bySpawning(run: Run): Namespaces {
  return {
    async create(files, { hostname, sysctls }) {
      const kinds = Object.keys(files) as NamespaceKind[];
      if (kinds.length === 0) return;
      for (const kind of kinds) emptyFile(files[kind]!);
      const enter = kinds.map((kind) => `--${kind}=${files[kind]}`);
      await mustRun(run, "unshare", [...enter, "true"]);
      if (files.uts !== undefined && hostname !== undefined)
        await mustRun(run, "nsenter", [...enter, "hostname", hostname]);
      for (const [name, value] of Object.entries(sysctls))
        await mustRun(run, "nsenter", [...enter, "sysctl", "-w", `${name}=${value}`]);
    },
    visitNetwork() {
      throw new Error("a visit to a network namespace needs koffi");
    },
    async release(file) {
      await run("umount", ["-l", file]);
      rmSync(file, { force: true });
    },
  };
}

function emptyFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, "");
}

/** `net.ipv4.ip_forward` or `net/ipv4/conf/eth0.1/forwarding` -> its file, which the kernel answers for the thread's namespaces. */
export function sysctlPath(name: string): string {
  const parts = name.includes("/") ? name.split("/") : name.split(".");
  if (parts.some((part) => part === "" || part === ".." || part === "."))
    throw new Error(`invalid sysctl ${JSON.stringify(name)}`);
  return `/proc/sys/${parts.join("/")}`;
}

function writeSysctl(name: string, value: string): void {
  try {
    writeFileSync(sysctlPath(name), value);
  } catch (error) {
    throw new Error(`set sysctl ${name}=${value}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}
