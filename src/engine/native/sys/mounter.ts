import { closeSync, existsSync, lstatSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hasCode, messageOf } from "#base";
import { EngineError } from "../../errors.ts";
import type { Mounts } from "../../port.ts";
import { type Libc, MNT_DETACH, MS, O_PATH } from "./libc.ts";
import { mustRun, type Run } from "./run.ts";

export interface Overlay {
  /** Layer directories, lowest first. */
  readonly layers: readonly string[];
  /** Where changes go; absent: read-only. */
  readonly upper?: string;
  readonly work?: string;
}

/** Makes mounts: by mount(2) where koffi is there, else by the program. */
export interface Mounter extends Mounts {
  overlay(target: string, overlay: Overlay): Promise<void>;
  /** Binds what the descriptor holds, whatever its path leads to by now. */
  bindDescriptor(fd: number, target: string): Promise<void>;
  /**
   * Unmounts everything at and below `path`, then deletes it. Deletes nothing while a mount is left: it could hold others' data. `points`
   * are the only paths below at which there can be mounts; told, the table of all mounts need not be read.
   */
  removeTree(path: string, points?: readonly string[]): Promise<void>;
  /** Unmounts what is mounted at these points, each as often as it takes. */
  release(points: readonly string[]): Promise<void>;
}

/** mount(2) takes one page of options, with room for the zero at the end. */
const MAX_OPTIONS = 4095;

export function createMounter(libc: Libc | undefined, run: Run, options: { volatile?: boolean } = {}): Mounter {
  const { volatile = true } = options;
  const mount = async (source: string, target: string, fstype: string | null, flags: number, data: string) => {
    if (libc) return libc.mount(source, target, fstype, flags, data === "" ? null : data);
    const options = [
      data,
      flags & MS.RDONLY ? "ro" : "",
      flags & MS.NOSUID ? "nosuid" : "",
      flags & MS.NODEV ? "nodev" : "",
      flags & MS.NOEXEC ? "noexec" : "",
      flags & MS.REMOUNT ? "remount" : "",
      flags & MS.BIND ? (flags & MS.REC ? "rbind" : "bind") : "",
    ];
    const text = options.filter(Boolean).join(",");
    await mustRun(run, "mount", [
      ...(fstype === null ? [] : ["-t", fstype]),
      ...(text === "" ? [] : ["-o", text]),
      source,
      target,
    ]);
  };
  const bindReadOnly = (target: string) => mount("none", target, null, MS.BIND | MS.REMOUNT | MS.RDONLY, "");
  const unmountOne = async (path: string) => {
    if (!libc) return void (await run("umount", ["-l", path])); // may be gone meanwhile; `removeTree` looks whether it is
    try {
      libc.umount(path, MNT_DETACH);
    } catch (error) {
      if (!hasCode(error, "EINVAL", "ENOENT")) throw error; // gone meanwhile
    }
  };
  /** EINVAL is the kernel's word that nothing is mounted there; any other failure is thrown, so nothing is deleted after it. */
  const release = (points: readonly string[]) => {
    for (const point of points) {
      try {
        for (;;) libc!.umount(point, MNT_DETACH);
      } catch (error) {
        if (!hasCode(error, "EINVAL", "ENOENT")) throw error;
      }
    }
  };
  const unmount = async (path: string) => {
    for (const point of mountsUnder(path)) await unmountOne(point);
  };
  return {
    async removeTree(path, points) {
      if (!existsSync(path)) return;
      if (points && libc) {
        release(points);
      } else {
        await unmount(path);
        const left = mountsUnder(path);
        if (left.length > 0) throw new Error(`${left.join(", ")} can't be unmounted`);
      }
      await rm(path, { recursive: true, force: true });
    },
    async release(points) {
      if (libc) return release(points);
      for (const point of points) await unmount(point);
    },
    async tmpfs(path, { sizeBytes, mode, gid }) {
      mkdirSync(path, { recursive: true });
      const options = [
        `mode=${mode.toString(8)}`,
        sizeBytes === undefined ? "" : `size=${sizeBytes}`,
        gid === undefined ? "" : `gid=${gid}`,
      ];
      await mount("tmpfs", path, "tmpfs", MS.NOSUID | MS.NODEV, options.filter(Boolean).join(","));
    },
    async bind(source, path, options = {}) {
      makeMountPoint(source, path);
      await mount(source, path, null, MS.BIND | MS.REC, "");
      if (options.readOnly) await bindReadOnly(path);
    },
    async bindDescriptor(fd, target) {
      makeMountPoint(`/proc/self/fd/${fd}`, target, true);
      await mount(`/proc/${process.pid}/fd/${fd}`, target, null, MS.BIND | MS.REC, "");
    },
    async overlay(target, overlay) {
      mkdirSync(target, { recursive: true });
      if (overlay.upper === undefined && overlay.layers.length === 1) {
        await mount(overlay.layers[0]!, target, null, MS.BIND, "");
        return bindReadOnly(target);
      }
      const plain = overlayOptions(overlay, volatile);
      if (plain.length <= MAX_OPTIONS && ![...overlay.layers, overlay.upper ?? ""].some((path) => /[:,\\]/.test(path)))
        return mount("overlay", target, "overlay", 0, plain);
      await withDescriptors(overlay, (short) =>
        mount("overlay", target, "overlay", 0, overlayOptions(short, volatile)),
      );
    },
    unmount,
    async under(path) {
      return mountsUnder(path);
    },
  };
}

function overlayOptions({ layers, upper, work }: Overlay, volatile: boolean): string {
  const lower = `lowerdir=${layers.toReversed().join(":")}`;
  // volatile: no sync of the whole disk at unmount; a container's own layer never outlives a crash of the machine
  return upper === undefined ? lower : `${lower},upperdir=${upper},workdir=${work}${volatile ? ",volatile" : ""}`;
}

/**
 * A mounter that makes overlays as well as this kernel and the file system of `directory` allow: `volatile` is of Linux 5.10.
 * @throws EngineError `unsupported` where no overlay can be made
 */
export async function probeMounter(libc: Libc | undefined, run: Run, directory: string): Promise<Mounter> {
  const base = join(directory, "overlay-probe");
  const [lower, upper, work, root] = ["lower", "upper", "work", "root"].map((name) => join(base, name)) as [
    string,
    string,
    string,
    string,
  ];
  let failure: unknown;
  for (const volatile of [true, false]) {
    const mounter = createMounter(libc, run, { volatile });
    try {
      await mounter.removeTree(base, [root]);
      for (const path of [lower, upper, work]) mkdirSync(path, { recursive: true, mode: 0o700 });
      await mounter.overlay(root, { layers: [lower], upper, work });
      return mounter;
    } catch (error) {
      failure ??= error;
    } finally {
      await mounter.removeTree(base, [root]);
    }
  }
  throw new EngineError("unsupported", `no overlay file system can be made in ${directory}: ${messageOf(failure)}`, {
    cause: failure,
    hint: "choose a data directory on ext4, xfs, btrfs or tmpfs, and see that the kernel has overlayfs (modprobe overlay)",
  });
}

/** Names directories by descriptors: a few characters each, so hundreds of layers fit into one page. */
async function withDescriptors(overlay: Overlay, work: (short: Overlay) => Promise<void>): Promise<void> {
  const open: number[] = [];
  const short = (path: string) => {
    const fd = openSync(path, O_PATH);
    open.push(fd);
    return `/proc/${process.pid}/fd/${fd}`;
  };
  try {
    const layers = overlay.layers.map(short);
    await work(
      overlay.upper === undefined ? { layers } : { layers, upper: short(overlay.upper), work: short(overlay.work!) },
    );
  } finally {
    for (const fd of open) closeSync(fd);
  }
}

/** A bind mount needs a directory on a directory and a file on anything else. */
function makeMountPoint(source: string, target: string, isDescriptor = false): void {
  const directory = isDescriptor ? isDirectory(source) : lstatSync(source).isDirectory();
  mkdirSync(directory ? target : dirname(target), { recursive: true });
  if (!directory) writeFileSync(target, "", { flag: "a" });
}

function isDirectory(path: string): boolean {
  try {
    closeSync(openSync(path, 0o200000 /* O_DIRECTORY */ | O_PATH));
    return true;
  } catch (error) {
    if (hasCode(error, "ENOTDIR")) return false;
    throw error;
  }
}

/** Mount points at and below `path`, deepest first, from /proc/self/mountinfo. */
export function mountsUnder(path: string): string[] {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4])
    .filter((point) => point !== undefined)
    .map((point) =>
      point.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8))),
    );
  return points.filter((point) => point === path || point.startsWith(`${path}/`)).reverse();
}
