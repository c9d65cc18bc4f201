import { join } from "node:path";
import type { ContainerConfig, SandboxConfig } from "../../src/engine/mod.ts";
import {
  containerResources,
  podCgroupResources,
  withoutNoQuota,
} from "../../src/kubelet/container-config/linux-resources.ts";
import { containerAnnotations, containerLabels, sandboxLabels } from "../../src/kubelet/container-config/labels.ts";
import {
  type AnyContainer,
  type ConfigBuilder,
  ContainerConfigError,
  type ReadonlyPod,
  type VolumeManager,
  type VolumesOutcome,
} from "../../src/kubelet/ports.ts";

/** Volumes that stand at once unless the test says otherwise. */
export interface TestVolumes extends VolumeManager {
  outcome(pod: ReadonlyPod): VolumesOutcome;
  readonly tornDown: string[];
  wake(uid: string): void;
}

export function testVolumes(): TestVolumes {
  const listeners = new Set<(uid: string) => void>();
  const volumes: TestVolumes = {
    tornDown: [],
    outcome: () => ({ state: "ready" }),
    prepare: async (pod) => volumes.outcome(pod),
    refresh() {},
    async teardown(uid) {
      volumes.tornDown.push(uid);
    },
    mountsFor: async () => [],
    listPodUIDs: async () => [],
    onChange(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    wake: (uid) => {
      for (const listener of listeners) listener(uid);
    },
    async [Symbol.asyncDispose]() {},
  };
  return volumes;
}

const MACHINE = { memoryBytes: 8 * 1024 ** 3 };

/** Configurations with what the core relies on; the real builder has tests of its own. */
export function testConfigs(dataDir: string, errors: Map<string, string>): ConfigBuilder {
  const terminationLogPath = (pod: { uid: string }, container: string, attempt: number) =>
    join(dataDir, pod.uid, `${container}-${attempt}`);
  return {
    async container(pod, container, request): Promise<ContainerConfig> {
      const error = errors.get(container.name);
      if (error) throw new ContainerConfigError(error);
      const spec = container as AnyContainer & { command?: readonly string[]; args?: readonly string[] };
      return {
        name: container.name,
        attempt: request.attempt,
        image: request.image.id,
        imageRef: request.image.tags[0] ?? request.image.id,
        ...(spec.command ? { command: spec.command } : {}),
        ...(spec.args ? { args: spec.args } : {}),
        env: [],
        mounts: [
          {
            hostPath: terminationLogPath({ uid: pod.metadata?.uid ?? "" }, container.name, request.attempt),
            containerPath: container.terminationMessagePath ?? "/dev/termination-log",
            readOnly: false,
          },
        ],
        labels: containerLabels(pod, container as never),
        annotations: containerAnnotations(pod, container as never, request.restartCount),
        logPath: join(dataDir, "logs", pod.metadata?.uid ?? "", container.name, `${request.attempt}.log`),
        stdin: false,
        stdinOnce: false,
        tty: false,
        resources: withoutNoQuota(containerResources(pod, container, MACHINE)),
        security: {
          privileged: false,
          supplementalGroups: [],
          addCapabilities: [],
          dropCapabilities: [],
          readOnlyRootfs: false,
          noNewPrivileges: false,
          seccomp: "unconfined",
        },
      };
    },
    async sandbox(pod, request): Promise<SandboxConfig> {
      return {
        name: pod.metadata?.name ?? "",
        namespace: pod.metadata?.namespace ?? "",
        uid: pod.metadata?.uid ?? "",
        attempt: request.attempt,
        hostname: pod.metadata?.name ?? "",
        labels: sandboxLabels(pod),
        annotations: {},
        logDirectory: join(dataDir, "logs", pod.metadata?.uid ?? ""),
        namespaces: { network: pod.spec?.hostNetwork ? "node" : "pod", pid: "container", ipc: "pod" },
        sysctls: {},
        portMappings: [],
        qosClass: "BestEffort",
        resources: withoutNoQuota(podCgroupResources(pod, MACHINE)),
        ...(request.runtimeHandler ? { runtimeHandler: request.runtimeHandler } : {}),
      };
    },
    resources: (pod, container) => containerResources(pod, container, MACHINE),
    podResources: (pod) => podCgroupResources(pod, MACHINE),
    refusal: () => undefined,
    terminationLogPath,
    warnings: async () => [],
  } as ConfigBuilder;
}
