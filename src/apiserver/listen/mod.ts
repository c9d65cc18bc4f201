export { DEFAULT_LIMITS, type InFlightLimits } from "./in-flight.ts";
export {
  createListener,
  type Credentials,
  type Listener,
  type ListenerDeps,
  type ListenerOptions,
  type ReadSession,
  type TlsOptions,
  type UpgradeRequest,
} from "./listener.ts";
export type { Peer } from "./peer.ts";
