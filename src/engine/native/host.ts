import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "../errors.ts";
import { messageOf } from "#base";
import { type CgroupLayout, fasterMoves, readCgroupLayout } from "./cgroups.ts";
import { readIfThere } from "./sys/files.ts";
import { type Libc, MS } from "./sys/libc.ts";
import type { Run } from "./sys/run.ts";
import { mustRun } from "./sys/run.ts";

/** What this machine can do, found once at start. */
export interface Host {
  readonly programs: Readonly<Record<Program, string>>;
  /** OCI runtimes by name, the default first. */
  readonly runtimes: ReadonlyMap<string, string>;
  readonly cgroups: CgroupLayout;
  /** Capabilities that a container can get at most: ours by CapBnd. */
  readonly capabilities: ReadonlySet<number>;
  /** Our own oom_score_adj: without CAP_SYS_RESOURCE a container's can't be lower. */
  readonly leastOomScore: number;
  readonly uplinkMtu: number;
  readonly notices: readonly string[];
}

/** Programs that are always needed, with the Debian package of each. */
const PACKAGES = { conmon: "conmon", ip: "iproute2", nft: "nftables", setsid: "util-linux" } as const;
export type Program = keyof typeof PACKAGES;

const DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const CAP_SYS_RESOURCE = 24;

/** Looks the machine over, mends what can be mended. @throws EngineError `unsupported` naming what is missing and the way out */
export async function examineHost(
  deps: { run: Run; libc: Libc | undefined },
  options: { runtime?: string; directories?: readonly string[] },
): Promise<Host> {
  if (process.getuid?.() !== 0)
    throw new EngineError("unsupported", "the native engine needs root", {
      hint: "start it as root, or choose the fake engine",
    });
  const notices: string[] = [];
  if (!deps.libc)
    notices.push(
      "koffi is not installed for this platform: mounts and namespaces are made by slower, spawned programs",
    );
  const { directories = DIRECTORIES } = options;
  const programs = findPrograms(directories);
  const cgroups = await mendCgroups(deps, notices);
  if (deps.libc) speedUpMoves(deps.libc, notices);
  const runtimes = findRuntimes(cgroups, { preferred: options.runtime, directories }, notices);
  const capabilities = boundingSet(readFileSync("/proc/self/status", "utf8"));
  let leastOomScore = -1000;
  if (!capabilities.has(CAP_SYS_RESOURCE)) {
    leastOomScore = Number(readIfThere("/proc/self/oom_score_adj") ?? 0);
    notices.push("CAP_SYS_RESOURCE is missing: negative oomScoreAdj and limits above the hard ones are clamped");
  }
  return { programs, runtimes, cgroups, capabilities, leastOomScore, uplinkMtu: uplinkMtu(), notices };
}

/** The full path of a program, or undefined. */
export function findProgram(name: string, directories: readonly string[] = DIRECTORIES): string | undefined {
  return directories
    .map((directory) => join(directory, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function findPrograms(directories: readonly string[]): Record<Program, string> {
  const names = Object.keys(PACKAGES) as Program[];
  const found = names.map((name) => [name, findProgram(name, directories)] as const);
  const missing = found.filter(([, path]) => path === undefined).map(([name]) => name);
  if (missing.length > 0) {
    const packages = [...new Set(missing.map((name) => PACKAGES[name]))].join(" ");
    throw new EngineError("unsupported", `missing programs: ${missing.join(", ")}`, {
      hint: `apt-get install ${packages}`,
    });
  }
  return Object.fromEntries(found) as Record<Program, string>;
}

/**
 * crun refuses a hybrid host while a controller is on the version 2 tree only; such a controller (often hugetlb) is then
 * given a version 1 mount of its own.
 */
async function mendCgroups(deps: { run: Run; libc: Libc | undefined }, notices: string[]): Promise<CgroupLayout> {
  const layout = readCgroupLayout(readFileSync("/proc/self/mountinfo", "utf8"));
  if (!layout)
    throw new EngineError("unsupported", "no control groups are mounted at /sys/fs/cgroup", {
      hint: "mount -t cgroup2 none /sys/fs/cgroup",
    });
  const stray = layout.hybrid?.controllers ?? [];
  if (stray.length === 0) return layout;
  const mended: string[] = [];
  for (const controller of stray) {
    const path = `/sys/fs/cgroup/${controller}`;
    try {
      mkdirSync(path, { recursive: true });
      if (deps.libc) deps.libc.mount("cgroup", path, "cgroup", 0, controller);
      else await mustRun(deps.run, "mount", ["-t", "cgroup", "-o", controller, "cgroup", path]);
      mended.push(controller);
    } catch {
      // busy or refused: crun can't be used then, which findRuntimes sees and says
    }
  }
  if (mended.length > 0) notices.push(`hybrid cgroups: mounted ${mended.join(", ")} as version 1, which crun needs`);
  return readCgroupLayout(readFileSync("/proc/self/mountinfo", "utf8")) ?? layout;
}

/** Only a matter of speed, so a kernel that does not know it is no fault. */
function speedUpMoves(libc: Libc, notices: string[]): void {
  const change = fasterMoves(readFileSync("/proc/self/mountinfo", "utf8"));
  if (!change) return;
  const kept = { nosuid: MS.NOSUID, nodev: MS.NODEV, noexec: MS.NOEXEC, ro: MS.RDONLY, relatime: MS.RELATIME };
  let flags: number = MS.REMOUNT;
  for (const [name, flag] of Object.entries(kept)) if (change.flags.includes(name)) flags |= flag;
  try {
    libc.mount("none", change.path, null, flags, change.options);
  } catch (error) {
    notices.push(
      `containers start some 10 ms later than they could: ${change.path} does not take favordynmods (${messageOf(error)})`,
    );
  }
}

function findRuntimes(
  cgroups: CgroupLayout,
  { preferred, directories }: { preferred: string | undefined; directories: readonly string[] },
  notices: string[],
): Map<string, string> {
  const runtimes = new Map<string, string>();
  const crun = findProgram("crun", directories);
  const runc = findProgram("runc", directories);
  if (crun && (cgroups.hybrid?.controllers.length ?? 0) > 0)
    notices.push(
      `crun refuses this hybrid cgroup host (${cgroups.hybrid?.controllers.join(", ")} on version 2 only): runc is used`,
    );
  else if (crun) runtimes.set("crun", crun);
  if (runc) runtimes.set("runc", runc);
  if (preferred !== undefined) {
    const name = preferred.split("/").at(-1)!;
    const path = preferred.startsWith("/")
      ? preferred
      : (runtimes.get(preferred) ?? findProgram(preferred, directories));
    if (path === undefined)
      throw new EngineError("unknown-runtime", `the container runtime ${preferred} is not installed`, {
        hint: `apt-get install ${preferred}`,
      });
    return new Map([[name, path], ...[...runtimes].filter(([other]) => other !== name)]);
  }
  if (runtimes.size === 0)
    throw new EngineError("unsupported", "no usable container runtime", { hint: "apt-get install crun runc" });
  return runtimes;
}

/** Numbers of the capabilities in `CapBnd` of a /proc/PID/status text. */
export function boundingSet(status: string): Set<number> {
  const mask = BigInt(`0x${/^CapBnd:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  const found = new Set<number>();
  for (let i = 0; i < 64; i++) if ((mask >> BigInt(i)) & 1n) found.add(i);
  return found;
}

/** The MTU of the interface with the default route; 1500 without one. */
function uplinkMtu(): number {
  const lines = readIfThere("/proc/net/route")?.split("\n").slice(1) ?? [];
  const name = lines.map((line) => line.split("\t")).find((fields) => fields[1] === "00000000")?.[0];
  return Number(readIfThere(`/sys/class/net/${name}/mtu`) ?? 1500) || 1500;
}
