import { constants } from "node:os";

const ERRNO_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, number]) => [number, name]),
);

/** `2` -> `ENOENT`. */
export function errnoName(errno: number): string {
  return ERRNO_NAMES.get(errno) ?? `errno ${errno}`;
}

/** `errno` as an Error: `code` is the name (`EBUSY`), `errno` the negative number that Node uses. */
export class SystemCallError extends Error {
  override name = "SystemCallError";
  readonly code: string;
  readonly errno: number;
  constructor(call: string, errno: number) {
    const code = errnoName(errno);
    super(`${call}: ${code}`);
    this.code = code;
    this.errno = -errno;
  }
}

/**
 * The few system calls for which a spawned program costs ten times as much. All of them block for microseconds and run on
 * the calling thread, which is what makes visits to another namespace safe: see `visitNamespaces`.
 */
export interface Libc {
  mount(source: string, target: string, fstype: string | null, flags: number, data: string | null): void;
  umount(target: string, flags: number): void;
  unshare(flags: number): void;
  setns(fd: number, type: number): void;
  sethostname(name: string): void;
  /** Opens `path` below the directory `dirfd` by openat2(2). @returns a close-on-exec descriptor */
  openat2(dirfd: number, path: string, flags: number, resolve: number): number;
  socket(domain: number, type: number, protocol: number): number;
  connect(fd: number, address: Buffer): void;
  send(fd: number, data: Buffer): number;
  /** @returns bytes received */
  recv(fd: number, data: Buffer): number;
  close(fd: number): void;
  /** `argument` is read and written in place. */
  ioctl(fd: number, request: number, argument: Buffer): void;
  /** Waits on another thread until one event of `events` is there. @returns false at the timeout */
  poll(fd: number, events: number, timeoutMs: number): Promise<boolean>;
  /** A handle on a process that cannot be confused with a later one of the same number. */
  pidfdOpen(pid: number): number;
  pidfdSignal(pidfd: number, signal: number): void;
  /** A pipe whose ends are not inherited. @returns the end to read from, the end to write to */
  pipe(): readonly [number, number];
  /**
   * Starts a program by posix_spawn(3), which does not copy this process's page tables as fork does: 0.1 ms at any heap size. Descriptor n
   * of the new process is `descriptors[n]`; all others must be close-on-exec. Signals are as a shell leaves them.
   */
  spawn(program: string, args: readonly string[], options: SpawnOptions): number;
  /** The wait status of a child that has ended, once; undefined while it runs. */
  waitStatus(pid: number): number | undefined;
}

/** The same numbers on x86-64 and arm64 (all calls after 424 are). */
const SYS = { pidfd_send_signal: 424, pidfd_open: 434, openat2: 437 };

/** Loads koffi and binds libc; undefined where there is no prebuilt koffi for this platform. */
export async function loadLibc(): Promise<Libc | undefined> {
  let koffi: typeof import("koffi");
  try {
    koffi = (await import("koffi")).default as unknown as typeof import("koffi");
  } catch {
    return undefined; // an optional dependency: the engine falls back on spawned programs and says so
  }
  const lib = koffi.load(null);
  const checked = (name: string, fn: (...args: never[]) => number) => {
    return (...args: unknown[]): number => {
      const result = (fn as unknown as (...args: unknown[]) => number)(...args);
      if (result === -1) throw new SystemCallError(name, koffi.errno());
      return result;
    };
  };
  const bind = (name: string, signature: string) => checked(name, lib.func(signature));
  const mount = bind("mount", "int mount(const char*, const char*, const char*, unsigned long, const char*)");
  const umount2 = bind("umount", "int umount2(const char*, int)");
  const unshare = bind("unshare", "int unshare(int)");
  const setns = bind("setns", "int setns(int, int)");
  const sethostname = bind("sethostname", "int sethostname(const char*, size_t)");
  const socket = bind("socket", "int socket(int, int, int)");
  const connect = bind("connect", "int connect(int, void*, unsigned int)");
  const send = bind("send", "long send(int, void*, size_t, int)");
  const recv = bind("recv", "long recv(int, void*, size_t, int)");
  const close = bind("close", "int close(int)");
  const ioctl = bind("ioctl", "int ioctl(int, unsigned long, void*)");
  const openat2 = bind("openat2", "long syscall(long, int, const char*, void*, size_t)");
  const pidfdOpen = bind("pidfd_open", "long syscall(long, int, unsigned int)");
  const pidfdSignal = bind("pidfd_send_signal", "long syscall(long, int, int, void*, unsigned int)");
  const pipe2 = bind("pipe2", "int pipe2(void*, int)");
  const waitpid = bind("waitpid", "int waitpid(int, void*, int)");
  const spawn = bindSpawn(lib);
  const poll = lib.func("int poll(void*, unsigned long, int)");
  return {
    mount: (source, target, fstype, flags, data) => void mount(source, target, fstype, flags, data),
    umount: (target, flags) => void umount2(target, flags),
    unshare: (flags) => void unshare(flags),
    setns: (fd, type) => void setns(fd, type),
    sethostname: (name) => void sethostname(name, Buffer.byteLength(name)),
    openat2(dirfd, path, flags, resolve) {
      const how = Buffer.alloc(24);
      how.writeBigUInt64LE(BigInt(flags), 0);
      how.writeBigUInt64LE(BigInt(resolve), 16);
      return openat2(SYS.openat2, dirfd, path, how, how.length);
    },
    socket: (domain, type, protocol) => socket(domain, type, protocol),
    connect: (fd, address) => void connect(fd, address, address.length),
    send: (fd, data) => send(fd, data, data.length, MSG_NOSIGNAL),
    recv: (fd, data) => recv(fd, data, data.length, 0),
    close: (fd) => void close(fd),
    ioctl: (fd, request, argument) => void ioctl(fd, request, argument),
    poll(fd, events, timeoutMs) {
      const entry = Buffer.alloc(8);
      entry.writeInt32LE(fd, 0);
      entry.writeInt16LE(events, 4);
      return new Promise((resolve, reject) => {
        poll.async(entry, 1, timeoutMs, (error: unknown, count: number) =>
          error ? reject(error) : resolve(count > 0),
        );
      });
    },
    pidfdOpen: (pid) => pidfdOpen(SYS.pidfd_open, pid, 0),
    pidfdSignal: (pidfd, signal) => void pidfdSignal(SYS.pidfd_send_signal, pidfd, signal, null, 0),
    pipe() {
      const ends = Buffer.alloc(8);
      pipe2(ends, O_CLOEXEC);
      return [ends.readInt32LE(0), ends.readInt32LE(4)];
    },
    spawn: (program, args, options) => spawn(program, args, options),
    waitStatus(pid) {
      const status = Buffer.alloc(4);
      return waitpid(pid, status, WNOHANG) === pid ? status.readInt32LE(0) : undefined;
    },
  };
}

export interface SpawnOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly descriptors: readonly number[];
  /** A session of its own: signals to our terminal are not meant for it. */
  readonly newSession: boolean;
  /** Its working directory; default: ours. */
  readonly cwd?: string;
}

/** Larger than these opaque structures are in any libc. */
const OPAQUE_BYTES = 1024;
const SIGNAL_SET_BYTES = 128;
const POSIX_SPAWN = { SETSIGDEF: 0x04, SETSIGMASK: 0x08, SETSID: 0x80 };

function bindSpawn(lib: import("koffi").LibraryHandle): Libc["spawn"] {
  const check = (signature: string) => {
    const fn = lib.func(signature);
    return (...args: unknown[]) => {
      const errno = fn(...args) as number; // this family returns the error instead of setting it
      if (errno !== 0)
        throw new SystemCallError(
          `${signature.split(/[ (]/)[1]} ${typeof args[1] === "string" ? args[1] : ""}`.trim(),
          errno,
        );
    };
  };
  const start = check("int posix_spawn(void*, const char*, void*, void*, const char**, const char**)");
  const initAttributes = check("int posix_spawnattr_init(void*)");
  const setFlags = check("int posix_spawnattr_setflags(void*, short)");
  const setDefaults = check("int posix_spawnattr_setsigdefault(void*, void*)");
  const setMask = check("int posix_spawnattr_setsigmask(void*, void*)");
  const initActions = check("int posix_spawn_file_actions_init(void*)");
  const addDuplicate = check("int posix_spawn_file_actions_adddup2(void*, int, int)");
  const addChdir = check("int posix_spawn_file_actions_addchdir_np(void*, const char*)");
  const destroyActions = check("int posix_spawn_file_actions_destroy(void*)");
  const attributes = [false, true].map((newSession) => {
    const buffer = Buffer.alloc(OPAQUE_BYTES);
    initAttributes(buffer);
    setDefaults(buffer, Buffer.alloc(SIGNAL_SET_BYTES, 0xff));
    setMask(buffer, Buffer.alloc(SIGNAL_SET_BYTES));
    setFlags(buffer, POSIX_SPAWN.SETSIGDEF | POSIX_SPAWN.SETSIGMASK | (newSession ? POSIX_SPAWN.SETSID : 0));
    return buffer;
  });
  return (program, args, { env, descriptors, newSession, cwd }) => {
    const actions = Buffer.alloc(OPAQUE_BYTES);
    initActions(actions);
    try {
      descriptors.forEach((from, to) => {
        if (from < descriptors.length) throw new Error(`descriptor ${from} would be overwritten`); // 0 to 2 are always taken, so ours are above
        addDuplicate(actions, from, to);
      });
      if (cwd !== undefined) addChdir(actions, cwd);
      const pid = Buffer.alloc(4);
      const environment = Object.entries(env).map(([name, value]) => `${name}=${value}`);
      start(pid, program, actions, attributes[Number(newSession)], [program, ...args, null], [...environment, null]);
      return pid.readInt32LE(0);
    } finally {
      destroyActions(actions);
    }
  };
}

const WNOHANG = 1;
const MSG_NOSIGNAL = 0x4000;

/** mount(2) flags. */
export const MS = {
  RDONLY: 1,
  NOSUID: 2,
  NODEV: 4,
  NOEXEC: 8,
  REMOUNT: 32,
  BIND: 4096,
  REC: 16384,
  PRIVATE: 0x40000,
  RELATIME: 0x200000,
  SHARED: 0x100000,
} as const;
export const MNT_DETACH = 2;
/** open(2) and openat2(2) flags that `node:fs` does not name. */
export const O_PATH = 0o10000000;
export const O_CLOEXEC = 0o2000000;
export const RESOLVE = { NO_MAGICLINKS: 0x02, BENEATH: 0x08, IN_ROOT: 0x10 } as const;
export const CLONE = { NEWUTS: 0x04000000, NEWIPC: 0x08000000, NEWNET: 0x40000000 } as const;
