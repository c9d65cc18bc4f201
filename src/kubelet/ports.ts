import type { DeepReadonly, Random, Clock, Logger } from "#base";
import type { Client, Informer } from "#client";
import type {
  ContainerConfig,
  ContainerStatus,
  Engine,
  ImageStatus,
  LinuxResources,
  Mount,
  SandboxConfig,
  SandboxStatus,
} from "#engine";
import type { Container, EphemeralContainer, Node, NodeConnector, Pod, PodRef, Service } from "#kinds";

/**
 * The seams inside the kubelet: the core (workers, plan, status, probes) on one side; volumes, container configuration
 * and streaming on the other.
 */

export type ReadonlyPod = DeepReadonly<Pod>;
/** Init, main and ephemeral containers are configured alike. */
export type AnyContainer = DeepReadonly<Container> | DeepReadonly<EphemeralContainer>;

/** An event to record on the pod. */
export interface PodEvent {
  readonly type: "Normal" | "Warning";
  /** `FailedMount`, … */
  readonly reason: string;
  readonly message: string;
}

/** Volumes of the pods of one node: set up before the containers, kept current while they run, removed after them. */
export interface VolumeManager extends AsyncDisposable {
  /**
   * Sets up all volumes of the pod; cheap and without effect when they stand. Called before the first container is
   * created and again when `onChange` named the pod or `retryAfterMs` has passed.
   */
  prepare(pod: ReadonlyPod): Promise<VolumesOutcome>;
  /** The pod's volumes follow its changed metadata (downward API); content of config maps and secrets follows by itself. */
  refresh(pod: ReadonlyPod): void;
  /** Unmounts and removes everything of the pod. Succeeds when nothing is there; also for pods of an earlier process. */
  teardown(uid: string): Promise<void>;
  /**
   * Mounts of one container (`volumeMounts`, not the hosts file or the termination log). Only after `prepare` was ready.
   * `environment` is the container's, for `subPathExpr`.
   * @throws {ContainerConfigError} for a subPath that cannot be had
   */
  mountsFor(
    pod: ReadonlyPod,
    container: AnyContainer,
    environment?: ReadonlyMap<string, string>,
  ): Promise<readonly Mount[]>;
  /** What is told of a scratch volume that holds more than its `sizeLimit`: the pod must go. Undefined: all is well. */
  overLimit?(pod: ReadonlyPod): Promise<string | undefined>;
  /** Text of a file in a volume of the pod, never leaving it (`fileKeyRef`). */
  readFile?(pod: ReadonlyPod, volume: string, path: string): Promise<{ path: string; text: string }>;
  /** UIDs of all pods that have anything on disk. */
  listPodUIDs(): Promise<readonly string[]>;
  /** Calls `listener` when a pod that waited for its volumes should be looked at again. */
  onChange(listener: (uid: string) => void): Disposable;
}

export type VolumesOutcome =
  | { readonly state: "ready" }
  /** Containers stay `ContainerCreating`; `events` are recorded (aggregated by the recorder). */
  | { readonly state: "waiting"; readonly events: readonly PodEvent[]; readonly retryAfterMs: number }
  /** Can never succeed; the pod's containers wait with this. */
  | { readonly state: "failed"; readonly events: readonly PodEvent[] };

/** The container's configuration cannot be made (yet): its state is `waiting` with this reason and message. */
export class ContainerConfigError extends Error {
  readonly reason: "CreateContainerConfigError" | "CreateContainerError";
  constructor(
    message: string,
    options: { reason?: "CreateContainerConfigError" | "CreateContainerError"; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ContainerConfigError";
    this.reason = options.reason ?? "CreateContainerConfigError";
  }
}

/** What a container is made for; the rest the implementation was given when it was created. */
export interface ContainerConfigRequest {
  /** How often it ran before; names its log file. */
  readonly attempt: number;
  /** `status.containerStatuses[].restartCount`; at least `attempt`. */
  readonly restartCount: number;
  readonly image: ImageStatus;
  readonly sandbox: SandboxStatus;
  readonly podIPs: readonly string[];
  readonly hostIPs: readonly string[];
  /** An ephemeral container's target. */
  readonly targetContainerId?: string;
}

/** From pod to engine configuration: environment, security, resources, hosts file, DNS, termination log, mounts. */
export interface ConfigBuilder {
  /** @throws {ContainerConfigError} e.g. `configmap "x" not found`, `container has runAsNonRoot and image will run as root …` */
  container(pod: ReadonlyPod, container: AnyContainer, request: ContainerConfigRequest): Promise<ContainerConfig>;
  /** @throws Error whose message becomes `FailedCreatePodSandBox` */
  sandbox(pod: ReadonlyPod, request: { attempt: number; runtimeHandler?: string }): Promise<SandboxConfig>;
  /** cgroup settings of one container, and of the pod as a whole, as they are set on what runs already. */
  resources(pod: ReadonlyPod, container: AnyContainer): LinuxResources;
  podResources(pod: ReadonlyPod): LinuxResources;
  /** Sysctls, AppArmor …: the reason why this node refuses the pod for good, for `status.reason` and `status.message`. */
  refusal(pod: ReadonlyPod): { reason: string; message: string } | undefined;
  /** What to tell about the pod's DNS settings when its sandbox is made: limits exceeded (`DNSConfigForming`), no cluster DNS. */
  warnings?(pod: ReadonlyPod): Promise<readonly PodEvent[]>;
  /** Host path of the file that is mounted at the container's `terminationMessagePath`. */
  terminationLogPath(pod: PodRef, container: string, attempt: number): string;
}

/** Dependencies shared by the volume manager and the builder. */
export interface NodeServices {
  readonly client: Client;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Services of all namespaces, for environment variables. */
  readonly services: Informer<Service>;
  /** This node's object as it is now; undefined before it is registered. */
  node(): DeepReadonly<Node> | undefined;
}

/** What the connector asks the core: which engine container stands for a pod's container. */
export interface PodRuntime {
  /** The pod as the API server or the runtime has it; undefined: not on this node. */
  pod(ref: PodRef): ReadonlyPod | undefined;
  pods(): readonly ReadonlyPod[];
  sandbox(uid: string): SandboxStatus | undefined;
  /** The newest run; with `previous`, the one before. Undefined: none. */
  container(uid: string, name: string, options?: { previous?: boolean }): ContainerStatus | undefined;
}

/** Deps of `createNodeConnector(deps, options)`. */
export interface ConnectorDeps {
  readonly engine: Engine;
  readonly runtime: PodRuntime;
  readonly clock: Clock;
  readonly logger: Logger;
}

export type { NodeConnector };
