import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { hasCode, messageOf } from "#base";
import type { ContainerConfig } from "#engine";
import { resources } from "#kinds";
import { containerEnvironment } from "../env/environment.ts";
import { expand } from "../env/expand.ts";
import { type DnsConfig, parseResolvConf, podDns } from "../hosts/dns.ts";
import { podHostname } from "../hosts/hostname.ts";
import { hostNetworkHostsFile, podHostsFile } from "../hosts/hosts-file.ts";
import { containerLogPath } from "../logs/layout.ts";
import {
  type AnyContainer,
  type ConfigBuilder,
  ContainerConfigError,
  type ContainerConfigRequest,
  type NodeServices,
  type ReadonlyPod,
} from "../ports.ts";
import type { ObjectCache } from "../volumes/object-cache.ts";
import { podDirectory } from "../volumes/pod-directory.ts";
import type { PodVolumeManager } from "../volumes/volume-manager.ts";
import { securityRefusal } from "./admission.ts";
import { containerAnnotations, containerLabels } from "./labels.ts";
import { containerResources, type MachineFacts, podCgroupResources, withoutNoQuota } from "./linux-resources.ts";
import { sandboxConfig } from "./sandbox-config.ts";
import { checkRunAsNonRoot, securityConfig } from "./security.ts";

export interface ConfigBuilderOptions {
  /** Directory of all pods: `<data>/pods`. */
  readonly podsRoot: string;
  /** Directory of all pods' logs. */
  readonly logsRoot: string;
  /** `cluster.local` */
  readonly clusterDomain: string;
  readonly clusterDNS: readonly string[];
  /** The host's resolv.conf. Default `/etc/resolv.conf`. */
  readonly resolvConf?: string;
  /** Directory of `Localhost` seccomp profiles. */
  readonly seccompRoot: string;
  readonly machine: MachineFacts;
  readonly allowedUnsafeSysctls?: readonly string[];
  /** Whether the host enforces AppArmor profiles. */
  readonly apparmor: boolean;
}

/** From pods to the engine's configurations; writes the hosts file and the termination log on the way. */
export function createConfigBuilder(
  services: NodeServices & { readonly objects: ObjectCache; readonly volumes: PodVolumeManager },
  options: ConfigBuilderOptions,
): ConfigBuilder {
  const dnsOf = async (pod: ReadonlyPod) =>
    podDns(pod, {
      clusterDNS: options.clusterDNS,
      clusterDomain: options.clusterDomain,
      host: await hostDns(options.resolvConf ?? "/etc/resolv.conf"),
    });
  return {
    async sandbox(pod, { attempt, runtimeHandler }) {
      return sandboxConfig(pod, {
        attempt,
        clusterDomain: options.clusterDomain,
        dns: await dnsOf(pod),
        logsRoot: options.logsRoot,
        machine: options.machine,
        ...(runtimeHandler ? { runtimeHandler } : {}),
      });
    },
    async container(pod, container, request) {
      try {
        return await containerConfig(pod, container, request, services, options);
      } catch (error) {
        if (error instanceof ContainerConfigError) throw error;
        throw new ContainerConfigError(messageOf(error), { cause: error });
      }
    },
    async warnings(pod) {
      return (await dnsOf(pod)).warnings.map((warning) => ({ type: "Warning", ...warning }));
    },
    refusal: (pod) =>
      securityRefusal(pod, {
        apparmor: options.apparmor,
        ...(options.allowedUnsafeSysctls ? { allowedUnsafeSysctls: options.allowedUnsafeSysctls } : {}),
      }),
    resources: (pod, container) => containerResources(pod, container, options.machine),
    podResources: (pod) => podCgroupResources(pod, options.machine),
    terminationLogPath: (pod, container, attempt) =>
      podDirectory(options.podsRoot, pod.uid).terminationLog(container, attempt),
  };
}

async function containerConfig(
  pod: ReadonlyPod,
  container: AnyContainer,
  request: ContainerConfigRequest,
  services: Parameters<typeof createConfigBuilder>[0],
  options: ConfigBuilderOptions,
): Promise<ContainerConfig> {
  const { name: podName, namespace = "", uid = "" } = pod.metadata;
  const env = await environmentOf(pod, container, request, services);
  checkRunAsNonRoot(pod, container, request.image);
  const values = new Map(env.map(({ name, value }) => [name, value]));
  const expanded = (list: readonly string[] | undefined) =>
    list?.length ? { list: list.map((text) => expand(text, (name) => values.get(name))) } : undefined;
  const command = expanded(container.command);
  const args = expanded(container.args);
  const mounts = await mountsOf(pod, container, request, values, services, options);
  const logPath = containerLogPath(
    options.logsRoot,
    { namespace, name: podName, uid },
    container.name,
    request.attempt,
  );
  await mkdir(dirname(logPath), { recursive: true, mode: 0o755 });
  const volumes = services.volumes.volumes(uid);
  const stopSignal = container.lifecycle?.stopSignal;
  return {
    name: container.name,
    attempt: request.attempt,
    image: request.image.id,
    imageRef: container.image ?? "",
    ...(command ? { command: command.list } : {}),
    ...(args ? { args: args.list } : {}),
    ...(container.workingDir ? { workingDir: container.workingDir } : {}),
    env,
    mounts,
    devices: (container.volumeDevices ?? []).map(({ name, devicePath }) => {
      const { device, readOnly } = volumes.get(name) ?? {};
      if (!device) throw new Error(`cannot find volume "${name}" to pass into container "${container.name}"`);
      return { hostPath: device, containerPath: devicePath, permissions: readOnly ? "r" : "mrw" };
    }),
    labels: containerLabels(pod, container),
    annotations: containerAnnotations(pod, container, request.restartCount),
    logPath,
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    resources: withoutNoQuota(containerResources(pod, container, options.machine)),
    security: securityConfig(pod, container, {
      seccompRoot: options.seccompRoot,
      extraGroups: [...volumes.values()].flatMap(({ group }) => (group === undefined ? [] : [group])),
    }),
    ...(stopSignal ? { stopSignal } : {}),
    ...(request.targetContainerId ? { targetContainerId: request.targetContainerId } : {}),
  };
}

async function environmentOf(
  pod: ReadonlyPod,
  container: AnyContainer,
  request: ContainerConfigRequest,
  { services, objects, volumes, node }: Parameters<typeof createConfigBuilder>[0],
): Promise<{ name: string; value: string }[]> {
  await services.synced();
  const read = async <T>(use: { get(): Promise<T> } & Disposable): Promise<T> => {
    using held = use;
    return await held.get();
  };
  return containerEnvironment(pod, container, {
    podIPs: request.podIPs,
    hostIPs: request.hostIPs,
    services: services.list(),
    allocatable: node()?.status?.allocatable ?? {},
    configMap: (namespace, name) => read(objects.use(resources.configMaps, namespace, name)),
    secret: (namespace, name) => read(objects.use(resources.secrets, namespace, name)),
    volumeFile: (volume, path) => volumes.readFile(pod, volume, path),
  });
}

/** Volumes, then the hosts file (unless a volume is mounted over it) and the termination log. */
async function mountsOf(
  pod: ReadonlyPod,
  container: AnyContainer,
  request: ContainerConfigRequest,
  environment: ReadonlyMap<string, string>,
  { volumes }: { volumes: PodVolumeManager },
  options: ConfigBuilderOptions,
): Promise<ContainerConfig["mounts"]> {
  const directory = podDirectory(options.podsRoot, pod.metadata.uid ?? "");
  const mounts = [...(await volumes.mountsFor(pod, container, environment))];
  for (const { name } of container.volumeMounts ?? []) {
    const { hostPath, createMissing } = volumes.volumes(pod.metadata.uid ?? "").get(name) ?? {};
    if (hostPath && createMissing) await makeMissing(hostPath);
  }
  const plain = (hostPath: string, containerPath: string) =>
    ({ hostPath, containerPath, readOnly: false, propagation: "private" }) as const;
  const overHosts = container.volumeMounts?.some(({ mountPath }) => mountPath === "/etc/hosts");
  if (!overHosts && (request.podIPs.length > 0 || pod.spec.hostNetwork)) {
    await writeHosts(directory.etcHosts, pod, request, options.clusterDomain);
    mounts.push(plain(directory.etcHosts, "/etc/hosts"));
  }
  const message = container.terminationMessagePath ?? "/dev/termination-log";
  if (message) {
    const path = directory.terminationLog(container.name, request.attempt);
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    await writeFile(path, "");
    // Also for processes that are not root.
    await chmod(path, 0o666);
    mounts.push(plain(path, message));
  }
  return mounts;
}

/** A path of the host that is not there becomes a directory, as container runtimes do. */
async function makeMissing(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o755 });
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

async function writeHosts(
  path: string,
  pod: ReadonlyPod,
  request: ContainerConfigRequest,
  clusterDomain: string,
): Promise<void> {
  const aliases = pod.spec.hostAliases ?? [];
  const text = pod.spec.hostNetwork
    ? hostNetworkHostsFile(await readFile("/etc/hosts", "utf8"), aliases)
    : podHostsFile({ podIPs: request.podIPs, ...podHostname(pod, clusterDomain), aliases });
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  await writeFile(path, text);
  await chmod(path, 0o644);
}

async function hostDns(path: string): Promise<DnsConfig> {
  try {
    return parseResolvConf(await readFile(path, "utf8"));
  } catch (error) {
    if (hasCode(error, "ENOENT")) return { servers: [], searches: [], options: [] };
    throw error;
  }
}
