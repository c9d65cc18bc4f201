export { CONFIG_VARIABLES, flagOf, type InstanceConfig, instanceIdOf, readConfig } from "./config.ts";
export { type Instance, type InstanceDeps, lockPathOf, startInstance } from "./instance.ts";
export { readHostToken, renewHostToken } from "./host-token.ts";
export { holderOf } from "./instance-lock.ts";
export { type Applied, applyObjects, readManifests } from "./manifests.ts";
export { purgeInstance, stopDaemon } from "./purge.ts";
export type {
  ApplyOptions,
  Cluster,
  ExecOptions,
  ExecOutcome,
  ForwardOptions,
  LoadedImage,
  Manifest,
  PodOptions,
} from "./embedding/cluster.ts";
export type { ClusterMetrics, Usage } from "./embedding/metrics.ts";
export { listenForward, type PortForward } from "./embedding/port-forward.ts";
export type { ObjectRef } from "./embedding/reference.ts";
export { type ClusterOptions, startCluster } from "./embedding/start-cluster.ts";
export { WaitError, type WaitOptions } from "./embedding/wait-for.ts";
