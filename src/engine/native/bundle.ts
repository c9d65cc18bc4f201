import { closeSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { release } from "node:os";
import { isAbsolute, join, normalize } from "node:path";
import { messageOf } from "#base";
import { EngineError } from "../errors.ts";
import type { ContainerConfig, ImageConfig, Mount } from "../port.ts";
import type { Context } from "./context.ts";
import { capabilitiesOf } from "./oci/capabilities.ts";
import { defaultSeccompProfile } from "./oci/default-seccomp.ts";
import { devicesOf } from "./oci/devices.ts";
import { type DockerSeccompProfile, seccompFor, thisArch } from "./oci/seccomp.ts";
import { commandOf, type OCIMount, type SpecInput, specOf } from "./oci/spec.ts";
import { type ResolvedUser, resolveUser } from "./oci/user.ts";
import type { SandboxRecord } from "./records.ts";
import { readIfThere, writeAtomically } from "./sys/files.ts";
import { checkedPath, makeDirectoryInRoot, openBeneath, readInRoot } from "./sys/in-root.ts";
import { sha256Hex } from "./sys/digest.ts";

export interface BundleRequest {
  readonly id: string;
  readonly sandbox: SandboxRecord;
  readonly config: ContainerConfig;
  readonly image: { readonly layers: readonly string[]; readonly config: ImageConfig };
  readonly cgroup: string;
  readonly runtime: string;
  readonly pidNamespace: SpecInput["namespaces"]["pid"];
}

/** Mounts the root, resolves user and mounts, writes `config.json`. The caller removes it all with `removeBundle` when this fails. */
export async function makeBundle(
  context: Context,
  request: BundleRequest,
): Promise<{ user: ResolvedUser; command: string[] }> {
  const { config, image } = request;
  const command = commandOf(config, image.config);
  if (command.length === 0) throw new EngineError("invalid-config", "no command specified");
  const rootfs = await mountRoot(context, request);
  const read = (path: string) => readInRoot(context.libc, rootfs, path);
  const user = resolveUser(image.config.User ?? "", config.security, {
    passwd: read("/etc/passwd"),
    group: read("/etc/group"),
  });
  makeDirectoryInRoot(context.libc, rootfs, config.workingDir || image.config.WorkingDir || "/");
  const spec = specOf({
    sandbox: request.sandbox.config,
    container: config,
    image: image.config,
    user,
    namespaces: {
      ...sandboxNamespaces(context, request.sandbox),
      ...(request.pidNamespace === undefined ? {} : { pid: request.pidNamespace }),
    },
    mounts: await mountsFor(context, request),
    rootfs,
    ...rootPropagationOf(config.mounts),
    cgroupsPath: request.cgroup,
    cgroupVersion: context.cgroups.version,
    bounding: context.host.capabilities,
    leastOomScore: context.host.leastOomScore,
    ...seccompOf(context, config),
    devices: devicesOf(config),
  });
  writeAtomically(join(context.paths.bundle(request.id), "config.json"), JSON.stringify(spec));
  return { user, command };
}

/** Unmounts and deletes what `makeBundle` made, in whole or in part. */
export async function removeBundle(context: Context, id: string): Promise<void> {
  const bundle = context.paths.bundle(id);
  if (existsSync(bundle)) {
    await context.mounter.unmount(bundle);
    rmSync(bundle, { recursive: true, force: true });
  }
  rmSync(context.paths.layer(id), { recursive: true, force: true });
}

async function mountRoot(context: Context, { id, image }: BundleRequest): Promise<string> {
  const layer = context.paths.layer(id);
  const rootfs = join(context.paths.bundle(id), "rootfs");
  const [upper, work] = [join(layer, "upper"), join(layer, "work")];
  for (const directory of [context.paths.bundle(id), layer]) mkdirSync(directory, { recursive: true, mode: 0o700 });
  mkdirSync(upper, { mode: 0o755 }); // it is the mode of the container's "/"
  mkdirSync(work, { mode: 0o700 });
  await context.mounter.overlay(rootfs, { layers: image.layers, upper, work });
  return rootfs;
}

/** Where the sandbox's namespaces are pinned; none for those that it shares with the host. */
export function sandboxNamespaces(
  context: Context,
  sandbox: SandboxRecord,
): { net?: string; uts?: string; ipc?: string } {
  const directory = context.paths.sandbox(sandbox.id);
  const { network, ipc } = sandbox.config.namespaces;
  return {
    ...(network === "pod" ? { net: join(directory, "net"), uts: join(directory, "uts") } : {}),
    ...(ipc === "pod" ? { ipc: join(directory, "ipc") } : {}),
  };
}

async function mountsFor(context: Context, request: BundleRequest): Promise<OCIMount[]> {
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
  const taken = new Set(asked.map((mount) => mount.destination));
  return [
    ...(request.config.name === PAUSE ? ours.slice(3) : ours).filter((mount) => !taken.has(mount.destination)),
    ...asked,
  ];
}

/** Name of the container that holds a sandbox; its root has no /etc to mount into. */
export const PAUSE = "pause";

async function volumeMount(context: Context, id: string, mount: Mount, index: number): Promise<OCIMount> {
  const destination = normalize(mount.containerPath).replace(/(.)\/$/, "$1");
  if (!isAbsolute(destination))
    throw new EngineError("invalid-config", `mount path ${JSON.stringify(mount.containerPath)} is not absolute`);
  try {
    const source = await sourceOf(context, mount, join(context.paths.bundle(id), "mounts", String(index)));
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
async function sourceOf(context: Context, mount: Mount, staged: string): Promise<string> {
  let base = mount.hostPath;
  if (mount.image !== undefined) {
    const image = context.images.get(mount.image);
    if (!image) throw new EngineError("image-not-found", `image ${mount.image} is not present`);
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

/** A mount can only pass events on if the root lets them through. */
function rootPropagationOf(mounts: readonly Mount[]): { rootPropagation?: string } {
  if (mounts.some((mount) => mount.propagation === "rshared")) return { rootPropagation: "rshared" };
  return mounts.some((mount) => mount.propagation === "rslave") ? { rootPropagation: "rslave" } : {};
}

function seccompOf(context: Context, { security }: ContainerConfig): Pick<SpecInput, "seccomp"> {
  if (security.privileged || security.seccomp === "unconfined" || security.seccomp === "") return {};
  const source = security.seccomp === "runtime-default" ? defaultSeccompProfile : readProfile(security.seccomp);
  const profile = seccompFor(source, capabilitiesOf(security, context.host.capabilities), {
    arch: thisArch,
    kernel: release(),
  });
  const compiled = readIfThere(compiledFilter(context, profile));
  return { seccomp: { profile, ...(compiled === undefined ? {} : { compiled }) } };
}

function readProfile(path: string): DockerSeccompProfile {
  try {
    if (!isAbsolute(path)) throw new Error("not an absolute path");
    return JSON.parse(readFileSync(path, "utf8")) as DockerSeccompProfile;
  } catch (error) {
    throw new EngineError("create-failed", `cannot load seccomp profile ${JSON.stringify(path)}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function compiledFilter(context: Context, profile: unknown): string {
  return join(context.paths.seccompCache, `${sha256Hex(JSON.stringify(profile))}.b64`);
}

/** After a start: keeps the filter that crun compiled, so that the next container with this profile starts 20 ms sooner. */
export function keepCompiledFilter(context: Context, id: string, runtime: string): void {
  if (runtime !== "crun") return;
  const spec = JSON.parse(readFileSync(join(context.paths.bundle(id), "config.json"), "utf8")) as {
    annotations?: Record<string, string>;
    linux: { seccomp?: unknown };
  };
  if (spec.linux.seccomp === undefined || spec.annotations?.["run.oci.seccomp_bpf_data"] !== undefined) return;
  const path = join(context.paths.runtimeRoot(runtime), id, "seccomp.bpf");
  if (existsSync(path))
    writeAtomically(compiledFilter(context, spec.linux.seccomp), readFileSync(path).toString("base64"));
}
