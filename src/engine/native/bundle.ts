import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { release } from "node:os";
import { isAbsolute, join } from "node:path";
import { messageOf } from "#base";
import { EngineError } from "../errors.ts";
import type { ContainerConfig, ImageConfig } from "../port.ts";
import type { Context } from "./context.ts";
import { mountsFor, rootPropagationOf } from "./mounts.ts";
import { capabilitiesOf } from "./oci/capabilities.ts";
import { defaultSeccompProfile } from "./oci/default-seccomp.ts";
import { devicesOf } from "./oci/devices.ts";
import { type DockerSeccompProfile, seccompFor, thisArch } from "./oci/seccomp.ts";
import { commandOf, type SpecInput, specOf } from "./oci/spec.ts";
import { type ResolvedUser, resolveUser } from "./oci/user.ts";
import type { SandboxRecord } from "./records.ts";
import { readIfThere, writeAtomically } from "./sys/files.ts";
import { makeDirectoryInRoot, readInRoot } from "./sys/in-root.ts";
import { sha256Hex } from "./sys/digest.ts";

export interface BundleRequest {
  readonly id: string;
  readonly sandbox: SandboxRecord;
  readonly config: ContainerConfig;
  readonly image: { readonly layers: readonly string[]; readonly config: ImageConfig };
  readonly cgroup: string;
  readonly isPause: boolean;
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
    mounts: await mountsFor(context, { ...request, rootfs, imageVolumes: Object.keys(image.config.Volumes ?? {}) }),
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
  await context.mounter.removeTree(bundle, mountPoints(bundle));
  await rm(context.paths.layer(id), { recursive: true, force: true });
}

/** Unmounts the root and the volumes of a container that has ended. */
export function releaseBundle(context: Context, id: string): Promise<void> {
  return context.mounter.release(mountPoints(context.paths.bundle(id)));
}

/** The only places in a bundle at which there can be mounts. */
function mountPoints(bundle: string): string[] {
  const staged = ["mounts", "volumes"].map((name) => join(bundle, name)).filter((directory) => existsSync(directory));
  return [
    ...staged.flatMap((directory) => readdirSync(directory).map((name) => join(directory, name))),
    join(bundle, "rootfs"),
  ];
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
