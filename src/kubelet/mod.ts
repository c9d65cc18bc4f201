export { createConfigBuilder, type ConfigBuilderOptions } from "./container-config/config-builder.ts";
export { createKubelet, type Kubelet, type KubeletDeps, type KubeletOptions } from "./kubelet.ts";
export { createLogManager, type LogManager, type LogManagerOptions } from "./logs/log-manager.ts";
export { readLog, type ReadLogOptions } from "./logs/log-reader.ts";
export type { Dial } from "./probes/dial.ts";
export type { ConfigBuilder, NodeServices, PodRuntime, VolumeManager } from "./ports.ts";
export { createNodeConnector } from "./streaming/node-connector.ts";
export { createObjectCache, type ObjectCache } from "./volumes/object-cache.ts";
export { createVolumeManager, type VolumeManagerOptions } from "./volumes/volume-manager.ts";
