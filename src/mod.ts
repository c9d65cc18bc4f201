/**
 * slim, embedded: a Kubernetes cluster as a library.
 *
 * ```ts
 * await using cluster = await startCluster({ engine: "fake" });
 * await cluster.apply(yaml);
 * await cluster.waitFor("deployment/web");
 * ```
 *
 * @module
 */
export {
  type Clock,
  CodedError,
  createFakeClock,
  createLogger,
  createSeededRandom,
  type DeepReadonly,
  type FakeClock,
  type Logger,
  type Random,
  systemClock,
} from "#base";
export type {
  Client,
  DeleteOptions,
  Discovery,
  GetOptions,
  Informer,
  Informers,
  IterateOptions,
  List,
  ListOptions,
  Patch,
  PodLogQuery,
  ServedResource,
  WatchOptions,
  WriteOptions,
} from "#client";
export {
  type ApplyOptions,
  type Cluster,
  type ClusterMetrics,
  type ClusterOptions,
  type ExecOptions,
  type ExecOutcome,
  type ForwardOptions,
  type LoadedImage,
  type Manifest,
  type ObjectRef,
  type PodOptions,
  type PortForward,
  startCluster,
  type Usage,
  WaitError,
  type WaitOptions,
} from "#cluster";
export type { About, Cause, CauseCode, Diagnosis } from "#diagnosis";
export type { Engine } from "#engine";
export type {
  FakeContainer,
  FakeEngine,
  FakeEngineOptions,
  FakeExec,
  FakeImage,
  FakeMoment,
  FakePull,
  FakeScript,
} from "#engine/fake";
export { type ApiObject, isStatus, type Resource, resources, type Status, StatusError, type WatchEvent } from "#kinds";
/** The types of the built-in kinds: `kinds.Pod`, `kinds.Deployment`, … */
export type * as kinds from "./kinds/generated/types.ts";
