export { createClient } from "./client.ts";
export { createDiscovery, type Discovery, groupVersionOf, type ServedResource } from "./discovery.ts";
export { type HostTarget, hostTarget, trusted } from "./host-target.ts";
export { createHttpTransport, type HttpTransport, type HttpTransportOptions } from "./http-transport.ts";
export { createQueue, type IterateOptions, iterateWatch } from "./iterate.ts";
export { createInformer, type InformerDeps, type InformerFilter, keyOf } from "./informer.ts";
export { createInformers } from "./informers.ts";
export { type Kubeconfig, type KubeconfigTarget, parseKubeconfig, targetOf } from "./kubeconfig.ts";
export { parseManifest } from "./manifest.ts";
export { createMapper, type Mapper } from "./mapper.ts";
export { type CommandQuery, createPodStreams, type PodLogQuery, type PodStreams } from "./pod-streams.ts";
export { pathOf, queryOf } from "./paths.ts";
export type * from "./port.ts";
export type { Transport } from "./transport.ts";
export {
  createRecorder,
  type EventOptions,
  type EventTarget,
  type Recorder,
  type RecorderOptions,
  referenceTo,
} from "./recorder.ts";
