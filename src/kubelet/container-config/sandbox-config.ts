import type { DeepReadonly } from "#base";
import type { SandboxConfig } from "#engine";
import type { Pod } from "#kinds";
import type { DnsConfig } from "../hosts/dns.ts";
import { kernelHostname } from "../hosts/hostname.ts";
import { podLogDirectory } from "../logs/layout.ts";
import { sysctlName } from "./admission.ts";
import { sandboxLabels } from "./labels.ts";
import { type MachineFacts, podCgroupResources, withoutNoQuota } from "./linux-resources.ts";
import { qosClassOf } from "./qos.ts";

export interface SandboxConfigOptions {
  readonly attempt: number;
  readonly clusterDomain: string;
  readonly dns: DnsConfig;
  /** Directory of all pods' logs. */
  readonly logsRoot: string;
  readonly machine: MachineFacts;
  /** The runtime class's handler; absent = the default runtime. */
  readonly runtimeHandler?: string;
}

/**
 * What the engine needs to make a pod's sandbox.
 *
 * @throws Error when the pod's names make no host name, or it wants a user namespace, which the engine cannot give
 */
export function sandboxConfig(pod: DeepReadonly<Pod>, options: SandboxConfigOptions): SandboxConfig {
  const { metadata, spec } = pod;
  const { name = "", namespace = "", uid = "" } = metadata ?? {};
  if (spec.hostUsers === false) {
    throw new Error("can't set `spec.hostUsers: false`, runtime does not support user namespaces");
  }
  return {
    name,
    namespace,
    uid,
    attempt: options.attempt,
    hostname: spec?.hostNetwork ? "" : kernelHostname(pod, options.clusterDomain),
    labels: sandboxLabels(pod),
    annotations: { ...metadata?.annotations },
    logDirectory: podLogDirectory(options.logsRoot, { namespace, name, uid }),
    dns: { servers: options.dns.servers, searches: options.dns.searches, options: options.dns.options },
    namespaces: {
      network: spec?.hostNetwork ? "node" : "pod",
      pid: spec?.hostPID ? "node" : spec?.shareProcessNamespace ? "pod" : "container",
      ipc: spec?.hostIPC ? "node" : "pod",
    },
    sysctls: Object.fromEntries(
      (spec?.securityContext?.sysctls ?? []).map((sysctl) => [sysctlName(sysctl.name), sysctl.value]),
    ),
    portMappings: portMappings(pod),
    qosClass: qosClassOf(pod),
    resources: withoutNoQuota(podCgroupResources(pod, options.machine)),
    ...(options.runtimeHandler ? { runtimeHandler: options.runtimeHandler } : {}),
  };
}

/** Host ports of the containers, sidecars included; a pod in the host's network needs none. */
function portMappings(pod: DeepReadonly<Pod>): SandboxConfig["portMappings"] {
  if (pod.spec?.hostNetwork) return [];
  const sidecars = (pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === "Always");
  return [...(pod.spec?.containers ?? []), ...sidecars].flatMap((container) =>
    (container.ports ?? []).flatMap((port) =>
      port.hostPort
        ? [
            {
              hostPort: port.hostPort,
              containerPort: port.containerPort,
              protocol: port.protocol === "UDP" || port.protocol === "SCTP" ? port.protocol : "TCP",
              ...(port.hostIP ? { hostIP: port.hostIP } : {}),
            } as const,
          ]
        : [],
    ),
  );
}
