export { CONFIG_VARIABLES, flagOf, type InstanceConfig, instanceIdOf, readConfig } from "./config.ts";
export { type Instance, type InstanceDeps, lockPathOf, startInstance } from "./instance.ts";
export { holderOf } from "./instance-lock.ts";
export { type Applied, applyObjects, parseManifest, readManifests } from "./manifests.ts";
export { purgeInstance, stopDaemon } from "./purge.ts";
