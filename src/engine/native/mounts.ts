import { closeSync, constants, existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { hasCode, messageOf } from "#base";
import { EngineError } from "../errors.ts";
import type { ContainerConfig, Mount } from "../port.ts";
import type { Context } from "./context.ts";
import type { OCIMount } from "./oci/spec.ts";
import type { SandboxRecord } from "./records.ts";
import { checkedPath, makeDirectoryInRoot, openBeneath, openInRoot } from "./sys/in-root.ts";
import { O_PATH } from "./sys/libc.ts";

/** What is asked of the mounts of one container. */
export interface MountRequest {
  readonly id: string;
  readonly sandbox: SandboxRecord;
  readonly config: ContainerConfig;
  readonly isPause: boolean;
  readonly rootfs: string;
  /** Paths that the image declares as volumes. */
  readonly imageVolumes: readonly string[];
}

/** The pod's own files, then what the image declares, then what was asked for, which wins. Sources are safe to bind as they are. */
export async function mountsFor(context: Context, request: MountRequest): Promise<OCIMount[]> {
  const directory = context.paths.sandbox(request.sandbox.id);
  const readOnly = request.config.security.readOnlyRootfs ? "ro" : "rw";
  const file = (name: string, destination: string): OCIMount => ({
    destination,
    source: join(directory, name),
    options: ["bind", "rprivate", readOnly],
  });
  const shm = request.sandbox.config.namespaces.ipc === "pod" ? join(directory, "shm") : "/dev/shm";
  const ours: OCIMount[] = [
    file("hosts", "/etc/hosts"),
    file("resolv.conf", "/etc/resolv.conf"),
    file("hostname", "/etc/hostname"),
    { destination: "/dev/shm", source: shm, options: ["bind", "rprivate", "nosuid", "nodev", "noexec", "rw"] },
  ];
  const asked: OCIMount[] = [];
  for (const [index, mount] of request.config.mounts.entries())
    asked.push(await volumeMount(context, request.id, mount, index));
  if (request.isPause) return ours.slice(3); // its root has no /etc
  const mine = [...ours, ...(await imageVolumes(context, request))];
  for (const { destination } of asked) makeParent(context, request.rootfs, destination, asked);
  const taken = new Set(asked.map((mount) => mount.destination));
  return [...mine.filter((mount) => !taken.has(mount.destination)), ...asked];
}

/** What leads to a mount is made here, with the usual mode, where the image has it not; runtimes differ in the mode that they give. */
function makeParent(context: Context, rootfs: string, destination: string, mounts: readonly OCIMount[]): void {
  const parent = dirname(destination);
  if (
    parent === "/" ||
    mounts.some((mount) => parent === mount.destination || parent.startsWith(`${mount.destination}/`))
  )
    return;
  try {
    makeDirectoryInRoot(context.libc, rootfs, parent);
  } catch (error) {
    // A file or a loop of links is in the way: the runtime says so when it mounts.
    if (!hasCode(error, "ENOTDIR", "EEXIST", "ELOOP", "EXDEV", "ENXIO")) throw error;
  }
}

/** A path that the image declares as a volume stays writable when the root is read-only; it holds what the image has there. */
async function imageVolumes(
  context: Context,
  { id, config, rootfs, imageVolumes: paths }: MountRequest,
): Promise<OCIMount[]> {
  const { libc } = context;
  if (!config.security.readOnlyRootfs || !libc) return [];
  const mounts: OCIMount[] = [];
  for (const [index, path] of paths.entries()) {
    if (!isAbsolute(path) || normalize(path) === "/") continue;
    makeDirectoryInRoot(libc, rootfs, path);
    const source = join(context.paths.bundle(id), "volumes", String(index));
    const fd = openInRoot(libc, rootfs, path, O_PATH | constants.O_DIRECTORY);
    try {
      await context.mounter.bindDescriptor(fd, source);
    } finally {
      closeSync(fd);
    }
    mounts.push({ destination: normalize(path).replace(/(.)\/$/, "$1"), source, options: ["rbind", "rprivate", "rw"] });
  }
  return mounts;
}

async function volumeMount(context: Context, id: string, mount: Mount, index: number): Promise<OCIMount> {
  const destination = normalize(mount.containerPath).replace(/(.)\/$/, "$1");
  if (!isAbsolute(destination))
    throw new EngineError("invalid-config", `mount path ${JSON.stringify(mount.containerPath)} is not absolute`);
  try {
    const source = await sourceOf(context, mount, {
      staged: join(context.paths.bundle(id), "mounts", String(index)),
      holder: mountHolder(id, index),
    });
    if (mount.propagation === "rshared") demandShared(source);
    const propagation =
      mount.propagation === undefined || mount.propagation === "private" ? "rprivate" : mount.propagation;
    const access = mount.image !== undefined || mount.readOnly ? (mount.recursiveReadOnly ? "rro" : "ro") : "rw";
    return { destination, source, options: ["rbind", propagation, access] };
  } catch (error) {
    if (error instanceof EngineError) throw error;
    const what = mount.subPath === undefined ? mount.hostPath : `${mount.hostPath} (subPath ${mount.subPath})`;
    throw new EngineError(
      "create-failed",
      `failed to prepare mount of ${what} at ${destination}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/** A path that can be bound as it is. Sub-paths and images are mounted at `staged` first. */
async function sourceOf(
  context: Context,
  mount: Mount,
  { staged, holder }: { staged: string; holder: string },
): Promise<string> {
  let base = mount.hostPath;
  if (mount.image !== undefined) {
    const image = context.images.get(mount.image);
    if (!image) throw new EngineError("image-not-found", `image ${mount.image} is not present`);
    context.images.hold(image.id, holder);
    base = `${staged}-image`;
    await context.mounter.overlay(base, { layers: context.images.rootfs(image.id).layers });
  } else if (!existsSync(base)) {
    throw new EngineError(
      "create-failed",
      `failed to generate spec: failed to stat "${base}": stat ${base}: no such file or directory`,
    );
  }
  if (mount.subPath === undefined || mount.subPath === "") return base;
  if (!context.libc) return checkedPath(base, mount.subPath);
  const fd = openBeneath(context.libc, base, mount.subPath);
  try {
    await context.mounter.bindDescriptor(fd, staged);
  } finally {
    closeSync(fd);
  }
  return staged;
}

/** Under which name an image volume keeps its image from being removed. */
export function mountHolder(id: string, index: number): string {
  return `${id}/${index}`;
}

/** A mount made in the container can only reach the host where the host's own mount is shared. */
function demandShared(path: string): void {
  const real = realpathSync(path);
  const lines = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" "));
  const holding = lines.filter(
    ([, , , , point]) => point !== undefined && (real === point || real.startsWith(point === "/" ? "/" : `${point}/`)),
  );
  const mount = holding.toSorted((a, b) => a[4]!.length - b[4]!.length).at(-1);
  if (mount && !mount.slice(6, mount.indexOf("-")).some((field) => field.startsWith("shared:")))
    throw new EngineError(
      "create-failed",
      `path ${JSON.stringify(path)} is mounted on ${JSON.stringify(mount[4])} but it is not a shared mount`,
    );
}

/** A mount can only pass events on if the root lets them through. */
export function rootPropagationOf(mounts: readonly Mount[]): { rootPropagation?: string } {
  if (mounts.some((mount) => mount.propagation === "rshared")) return { rootPropagation: "rshared" };
  return mounts.some((mount) => mount.propagation === "rslave") ? { rootPropagation: "rslave" } : {};
}
