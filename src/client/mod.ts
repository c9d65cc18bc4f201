export { createClient } from "./client.ts";
export { createHttpTransport, type HttpTransportOptions } from "./http-transport.ts";
export { createInformer, type InformerDeps, type InformerFilter, keyOf } from "./informer.ts";
export { createInformers } from "./informers.ts";
export { type Kubeconfig, type KubeconfigTarget, parseKubeconfig, targetOf } from "./kubeconfig.ts";
export { createMapper, type Mapper } from "./mapper.ts";
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
