import type { Duplex, Readable } from "node:stream";
import type { DeepReadonly } from "#base";
import type { Client, Discovery, Informers, IterateOptions, PodLogQuery } from "#client";
import type { Diagnosis } from "#diagnosis";
import type { Engine } from "#engine";
import type { FakeEngine } from "#engine/fake";
import type { ApiObject, Event, ExecSession, Resource, WatchEvent } from "#kinds";
import type { ClusterMetrics } from "./metrics.ts";
import type { PortForward } from "./port-forward.ts";
import type { ObjectRef } from "./reference.ts";
import type { WaitOptions } from "./wait-for.ts";

/** YAML or JSON text with any number of documents, objects, or a file, directory or http(s) URL of such texts. */
export type Manifest = string | object | readonly object[] | { readonly file: string };

export interface ApplyOptions {
  /** Of objects that name none. Default `default`. */
  readonly namespace?: string;
  /** Owner of the fields. Default `slim`. */
  readonly fieldManager?: string;
}

export interface PodOptions {
  /** Of references that name none. Default `default`. */
  readonly namespace?: string;
  /** Default: the pod's default container. */
  readonly container?: string;
}

export interface ExecOptions extends PodOptions {
  /** Sent to the command, then its input ends. */
  readonly stdin?: string | Uint8Array;
  readonly signal?: AbortSignal;
}

export interface ExecOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ForwardOptions {
  readonly namespace?: string;
  /** A container's port, or that of a Service. */
  readonly port: number;
  /** Default 0: a free one. */
  readonly localPort?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
}

export interface LoadedImage {
  readonly id: string;
  readonly tags: readonly string[];
}

/**
 * A Kubernetes cluster in this process, or a view of one elsewhere (`join`). It prints nothing and keeps no process alive, but
 * for the calls that are pending. Failures of the API are `StatusError`s (`code`, `reason`, `message` as Kubernetes has them).
 */
export interface Cluster extends AsyncDisposable {
  /** Text of an admin's kubeconfig, for `kubectl` and any client library; undefined without a listener. */
  readonly kubeconfig: string | undefined;
  /** `https://127.0.0.1:34567`; undefined without a listener. */
  readonly server: string | undefined;
  /** Everything of the API, typed: `client.list(resources.pods, { namespace })`. Calls stay in the process. */
  readonly client: Client;
  readonly discovery: Discovery;
  /** Caches that follow the API: `informers.for(resources.pods)`. Ended with the cluster. */
  readonly informers: Informers;
  /** Engines by node; empty for a joined cluster. */
  readonly engines: ReadonlyMap<string, Engine>;
  /** The same where they are fake. */
  readonly fakeEngines: ReadonlyMap<string, FakeEngine>;

  /**
   * Server-side apply, namespaces and definitions first. A kind that a CustomResourceDefinition of the same call brings is
   * waited for. Gives the objects as the server has them, in the order in which they were applied.
   * @throws StatusError of the first object that is refused
   */
  apply(manifest: Manifest, options?: ApplyOptions): Promise<readonly DeepReadonly<ApiObject>[]>;
  /** Deletes what a manifest names; what is not there is no fault. */
  delete(manifest: Manifest, options?: { readonly namespace?: string }): Promise<void>;
  /** Waits until an object is ready, has a condition, or is gone. @throws WaitError that names the cause */
  waitFor(ref: ObjectRef, options?: WaitOptions): Promise<DeepReadonly<ApiObject> | undefined>;
  /** What is wrong with an object, in words (`text`) and as data. */
  why(ref: ObjectRef, options?: { readonly namespace?: string }): Promise<Diagnosis & { readonly text: string }>;
  /** Lines of a container's log, of a pod or the first pod of a workload; with `follow` until the container ends. */
  logs(ref: ObjectRef, options?: PodOptions & Omit<PodLogQuery, "container">): AsyncIterable<string>;
  /** Runs a command in a container to its end. */
  exec(ref: ObjectRef, command: readonly string[], options?: ExecOptions): Promise<ExecOutcome>;
  /** Runs a command and gives its streams. */
  execStream(
    ref: ObjectRef,
    command: readonly string[],
    options?: PodOptions & { readonly stdin?: boolean; readonly tty?: boolean },
  ): Promise<ExecSession>;
  /** A connection to a port of a pod, without a local port. */
  connect(ref: ObjectRef, port: number, options?: { readonly namespace?: string }): Promise<Duplex>;
  /** A local port whose connections end at a port of a pod. Ended with the cluster at the latest. */
  portForward(ref: ObjectRef, options: ForwardOptions): Promise<PortForward>;
  /** Events as they come, after those that are there. */
  events(options?: { readonly namespace?: string; readonly signal?: AbortSignal }): AsyncIterable<DeepReadonly<Event>>;
  /** A watch as a loop; without `resourceVersion` what is there comes first, as ADDED. */
  watch<T>(resource: Resource<T>, options?: IterateOptions): AsyncIterable<WatchEvent<DeepReadonly<T>>>;
  /** CPU and memory of nodes, pods and containers. */
  metrics(): Promise<ClusterMetrics>;
  /** Loads a docker-archive or OCI layout into the image store of every node. @throws EngineError of the engine `unsupported` for the fake one */
  loadImage(archive: string | Readable): Promise<readonly LoadedImage[]>;
}
