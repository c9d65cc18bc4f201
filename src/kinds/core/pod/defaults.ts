import type {
  Container,
  EphemeralContainer,
  EnvVar,
  LifecycleHandler,
  Pod,
  PodSpec,
  Probe,
  Volume,
} from "../../generated/types.ts";
import { setPodLevelDefaults } from "./pod-level-defaults.ts";

/**
 * Defaults of a Pod itself, on top of those of every pod spec.
 * https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
 */
export function setPodDefaults(pod: Pod): void {
  setPodSpecDefaults(pod.spec);
  for (const container of [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])]) {
    const { resources } = container;
    if (!resources?.limits) continue;
    resources.requests = { ...resources.limits, ...resources.requests };
  }
  setPodLevelDefaults(pod);
  pod.spec.enableServiceLinks ??= true;
  if (pod.spec.hostNetwork) {
    for (const container of [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])]) {
      for (const port of container.ports ?? []) port.hostPort ||= port.containerPort;
    }
  }
}

/** Defaults of a pod spec, in Pods and in the templates of workloads alike. */
export function setPodSpecDefaults(spec: PodSpec): void {
  spec.dnsPolicy ||= "ClusterFirst";
  spec.restartPolicy ||= "Always";
  spec.securityContext ??= {};
  spec.terminationGracePeriodSeconds ??= 30;
  spec.schedulerName ||= "default-scheduler";
  syncServiceAccount(spec);
  for (const volume of spec.volumes ?? []) setVolumeDefaults(volume);
  for (const container of spec.initContainers ?? []) setContainerDefaults(container);
  for (const container of spec.containers ?? []) setContainerDefaults(container);
  for (const container of spec.ephemeralContainers ?? []) setContainerDefaults(container);
}

/** `serviceAccount` is the old name of `serviceAccountName`; both are always shown. */
export function syncServiceAccount(spec: PodSpec): void {
  const name = spec.serviceAccountName || spec.serviceAccount;
  if (!name) return;
  spec.serviceAccountName = name;
  spec.serviceAccount = name;
}

function setContainerDefaults(container: Container | EphemeralContainer): void {
  container.imagePullPolicy ||= pullPolicyOf(container.image ?? "");
  container.terminationMessagePath ||= "/dev/termination-log";
  container.terminationMessagePolicy ||= "File";
  for (const variable of container.env ?? []) setEnvDefaults(variable);
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe) setProbeDefaults(probe);
  }
  setHandlerDefaults(container.lifecycle?.postStart);
  setHandlerDefaults(container.lifecycle?.preStop);
}

function setEnvDefaults(variable: EnvVar): void {
  const reference = variable.valueFrom?.fieldRef;
  if (reference) reference.apiVersion ||= "v1";
}

function setProbeDefaults(probe: Probe): void {
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  setHandlerDefaults(probe);
}

function setHandlerDefaults(handler: LifecycleHandler | undefined): void {
  const request = handler?.httpGet;
  if (!request) return;
  request.path ||= "/";
  request.scheme ||= "HTTP";
}

/** `Always` for the tag `latest`, written or implied; a digest alone counts as no tag. */
export function pullPolicyOf(image: string): "Always" | "IfNotPresent" {
  const [name = "", digest] = image.split("@");
  const tag = /:([^/]*)$/.exec(name)?.[1];
  const latest = tag === "latest" || (tag === undefined && digest === undefined);
  return latest && isImageReference(name) ? "Always" : "IfNotPresent";
}

/** An image that cannot be parsed has no tag, so it isn't `latest`. */
function isImageReference(name: string): boolean {
  return /^[\w.:-]+(\/[\w.:-]+)*$/.test(name) && !/[A-Z]/.test(name.replace(/^[^/]*\//, "").replace(/:[^/]*$/, ""));
}

function setVolumeDefaults(volume: Volume): void {
  const sources = Object.keys(volume).filter((key) => key !== "name");
  if (sources.length === 0) volume.emptyDir = {};
  if (volume.hostPath) volume.hostPath.type ??= "";
  if (volume.secret) volume.secret.defaultMode ??= 0o644;
  if (volume.configMap) volume.configMap.defaultMode ??= 0o644;
  if (volume.image) volume.image.pullPolicy ||= pullPolicyOf(volume.image.reference ?? "");
  if (volume.ephemeral?.volumeClaimTemplate) volume.ephemeral.volumeClaimTemplate.spec.volumeMode ??= "Filesystem";
  if (volume.downwardAPI) {
    volume.downwardAPI.defaultMode ??= 0o644;
    for (const { fieldRef } of volume.downwardAPI.items ?? []) if (fieldRef) fieldRef.apiVersion ||= "v1";
  }
  if (volume.projected) {
    volume.projected.defaultMode ??= 0o644;
    for (const source of volume.projected.sources ?? []) {
      for (const { fieldRef } of source.downwardAPI?.items ?? []) if (fieldRef) fieldRef.apiVersion ||= "v1";
      if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= 3600;
    }
  }
}
