import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** What overlayfs wants in a layer and `node:fs` cannot make. Paths are bytes; the last component is not followed. */
export interface Inodes {
  /** The mark of a removed file: a character device 0/0. */
  whiteout(path: Buffer): Promise<void>;
  /** The mark of a directory that hides what is below it in lower layers. */
  opaque(path: Buffer): Promise<void>;
}

/** Uses libc through koffi, else the programs mknod and setfattr. */
export async function createInodes(): Promise<Inodes> {
  const libc = await load();
  if (!libc) return spawned;
  return {
    async whiteout(path) {
      libc.mknod(cString(path), S_IFCHR | 0o600, 0n);
    },
    async opaque(path) {
      libc.lsetxattr(cString(path), cString(Buffer.from(OPAQUE)), Buffer.from("y"), 1, 0);
    },
  };
}

interface Calls {
  mknod(path: Buffer, mode: number, device: bigint): void;
  lsetxattr(path: Buffer, name: Buffer, value: Buffer, size: number, flags: number): void;
}

async function load(): Promise<Calls | undefined> {
  try {
    const koffi = (await import("koffi")).default as unknown as typeof import("koffi");
    const lib = koffi.load(null);
    const bind = (name: string, signature: string) => {
      const call = lib.func(signature) as unknown as (...args: unknown[]) => number;
      return (...args: unknown[]) => {
        if (call(...args) !== 0) throw new Error(`${name}: errno ${koffi.errno()}`);
      };
    };
    return {
      mknod: bind("mknod", "int mknod(void*, unsigned int, uint64_t)"),
      lsetxattr: bind("lsetxattr", "int lsetxattr(void*, void*, void*, size_t, int)"),
    };
  } catch {
    return undefined; // an optional dependency, absent on some platforms
  }
}

const run = promisify(execFile);
const spawned: Inodes = {
  async whiteout(path) {
    await run("mknod", ["--", path.toString(), "c", "0", "0"]);
  },
  async opaque(path) {
    await run("setfattr", ["-h", "-n", OPAQUE, "-v", "y", "--", path.toString()]);
  },
};

const S_IFCHR = 0o020000;
const OPAQUE = "trusted.overlay.opaque";
const cString = (path: Buffer) => Buffer.concat([path, Buffer.of(0)]);
