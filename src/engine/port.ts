import type { Duplex, Readable, Writable } from "node:stream";

/**
 * The container engine. Verbs and states follow the Container Runtime Interface (CRI v1): sandboxes hold a pod's
 * namespaces, containers run in them, images are content-addressed.
 *
 * - Every call is idempotent where its outcome can be: stopping what is stopped and removing what is gone succeed.
 * - State survives the process: a new engine on the same directories knows every sandbox, container and image again, and
 *   running containers go on untouched.
 * - Calls for one sandbox may come at the same time; the engine orders them.
 * - Nothing here knows Pods: labels and annotations are opaque and given back.
 */
export interface Engine extends AsyncDisposable {
  readonly info: EngineInfo;
  readonly images: Images;

  /** Creates the sandbox: namespaces, network, pod cgroup, pause container. Resolves when its IPs are known. */
  runSandbox(config: SandboxConfig): Promise<SandboxStatus>;
  /** Stops all its containers (KILL) and its network. */
  stopSandbox(id: string): Promise<void>;
  /** Stops it, then removes it with everything in it. */
  removeSandbox(id: string): Promise<void>;
  sandboxes(): readonly SandboxStatus[];

  /** Root file system, bundle and log file are made; nothing runs. @throws EngineError `image-not-found`, `invalid-config`, … */
  createContainer(sandboxId: string, config: ContainerConfig): Promise<string>;
  /** @throws EngineError `start-failed`; the container is then `exited` with `reason: "StartError"`, exit code 128. */
  startContainer(id: string): Promise<void>;
  /** Sends the image's or config's stop signal (default TERM), then KILL after `graceMs`. Resolves when it has exited. */
  stopContainer(id: string, options: { graceMs: number; signal?: string }): Promise<void>;
  /** Sends a signal and returns. */
  signalContainer(id: string, signal: string): Promise<void>;
  /** Kills it if it runs, then removes root, bundle and state; the log stays where `logPath` is. */
  removeContainer(id: string): Promise<void>;
  containers(): readonly ContainerStatus[];
  container(id: string): ContainerStatus | undefined;
  /** Changes cgroup limits of a running container. */
  updateContainer(id: string, resources: LinuxResources): Promise<void>;
  updateSandbox(id: string, resources: LinuxResources): Promise<void>;
  stats(id: string): Promise<ContainerStats>;
  /** Rotates the log: the current file was renamed by the caller; output goes on into a new file at `logPath`. */
  reopenLog(id: string): Promise<void>;

  /**
   * Interactive exec. A command that cannot be run rejects `done` with `start-failed` (`exec: "x": executable file not found in $PATH`);
   * `execSync` rejects so.
   */
  exec(id: string, options: EngineExecOptions): Promise<EngineSession>;
  /** Exec to the end: for probes and hooks. Output is cut at `maxOutput` bytes (default 16 KiB); the process is killed at the timeout. */
  execSync(
    id: string,
    options: { command: readonly string[]; timeoutMs: number; maxOutput?: number },
  ): Promise<ExecResult>;
  attach(id: string, options: { stdin: boolean; tty: boolean }): Promise<EngineSession>;
  /** A connection to a port in the sandbox's network, on loopback, IPv4 first. */
  connect(sandboxId: string, port: number, host?: string): Promise<Duplex>;

  /** Calls `listener` after a state changed. Only a hint: the state is in `containers()` and `sandboxes()`. */
  onEvent(listener: (event: EngineEvent) => void): Disposable;

  /** Mounts for volumes; absent where the engine has no kernel to ask (fake). */
  readonly mounts: Mounts;

  /** Stops and removes all that this instance ever made: containers, mounts, interfaces, cgroups. */
  purge(): Promise<void>;
}

export interface EngineInfo {
  readonly name: string;
  readonly version: string;
  /** `containerID` prefix without `://`: `slim`. */
  readonly scheme: string;
  readonly cgroupVersion: 1 | 2 | 0;
  /** Runtime handlers: `crun`, `runc`; the first is the default. */
  readonly runtimes: readonly string[];
  /** Degradations that were found and mended or worked round, each one sentence. */
  readonly notices: readonly string[];
}

export interface SandboxConfig {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly attempt: number;
  readonly hostname: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly logDirectory: string;
  /** Absent: a copy of the host's. */
  readonly dns?: { servers: readonly string[]; searches: readonly string[]; options: readonly string[] };
  /** `pod`: own namespace; `node`: the host's. `container` for pid: each container has its own (default). */
  readonly namespaces: { network: "pod" | "node"; pid: "container" | "pod" | "node"; ipc: "pod" | "node" };
  readonly sysctls: Readonly<Record<string, string>>;
  readonly portMappings: readonly {
    hostPort: number;
    containerPort: number;
    protocol: "TCP" | "UDP" | "SCTP";
    hostIP?: string;
  }[];
  /** `Guaranteed` | `Burstable` | `BestEffort`: decides the parent cgroup. */
  readonly qosClass: string;
  readonly resources: LinuxResources;
  /** Default runtime when absent. @throws EngineError `unknown-runtime` */
  readonly runtimeHandler?: string;
  /** Bytes of the shared /dev/shm; default 64 MiB. */
  readonly shmSizeBytes?: number;
}

export interface SandboxStatus {
  readonly id: string;
  readonly config: SandboxConfig;
  readonly state: "ready" | "not-ready";
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** First IPv4, then IPv6. Empty for the host's network. */
  readonly ips: readonly string[];
  /** PID namespace of a shared process namespace, network namespace file: for adapters and tests. */
  readonly netnsPath?: string;
  /** The pause container, once it was made: `container(pauseId)` gives its state; `containers()` does not list it. */
  readonly pauseId?: string;
}

export interface ContainerConfig {
  readonly name: string;
  readonly attempt: number;
  /** Image id (`sha256:…`) or a reference that is in the store. */
  readonly image: string;
  /** What `status.containerStatuses[].image` shall show. */
  readonly imageRef: string;
  /** Overrides the image's ENTRYPOINT / CMD; absent = the image's. As in Kubernetes: command given and args absent drops CMD. */
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  /** Added to the image's; later wins. */
  readonly env: readonly { name: string; value: string }[];
  readonly mounts: readonly Mount[];
  readonly devices?: readonly { hostPath: string; containerPath: string; permissions: string }[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Absolute path of the CRI-format log. */
  readonly logPath: string;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
  readonly tty: boolean;
  readonly resources: LinuxResources;
  readonly security: SecurityConfig;
  /** Overrides the image's STOPSIGNAL. */
  readonly stopSignal?: string;
  /** Join the PID namespace of this container (ephemeral containers). */
  readonly targetContainerId?: string;
}

export interface Mount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly readOnly: boolean;
  readonly recursiveReadOnly?: boolean;
  /** OCI: `private` (default) | `rslave` | `rshared`. */
  readonly propagation?: "private" | "rslave" | "rshared";
  /** A path below hostPath, resolved without leaving it (symlinks that point outside fail). `createAs` makes a missing directory. */
  readonly subPath?: string;
  /** Mount this image's root instead of hostPath (image volumes). */
  readonly image?: string;
}

/** cgroup settings; absent = not set. */
export interface LinuxResources {
  /** cpu.shares scale (2…262144). */
  readonly cpuShares?: number;
  /** Microseconds a period; -1 = none. */
  readonly cpuQuota?: number;
  /** Microseconds, default 100000. */
  readonly cpuPeriod?: number;
  readonly memoryLimitBytes?: number;
  readonly memoryRequestBytes?: number;
  readonly pidsLimit?: number;
  readonly oomScoreAdj?: number;
  readonly cpusetCpus?: string;
  readonly hugepageLimits?: readonly { pageSize: string; limit: number }[];
}

export interface SecurityConfig {
  readonly privileged: boolean;
  /** Numeric, or absent = the image's USER. */
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly runAsUsername?: string;
  readonly supplementalGroups: readonly number[];
  /** `Merge` (default): add the image's /etc/group memberships; `Strict`: only those given. */
  readonly supplementalGroupsPolicy?: "Merge" | "Strict";
  readonly addCapabilities: readonly string[];
  readonly dropCapabilities: readonly string[];
  readonly readOnlyRootfs: boolean;
  readonly noNewPrivileges: boolean;
  /** `runtime-default` | `unconfined` | absolute path of a profile in Docker's JSON format. */
  readonly seccomp: string;
  readonly apparmor?: string;
  readonly maskedPaths?: readonly string[];
  readonly readonlyPaths?: readonly string[];
}

export interface ContainerStatus {
  readonly id: string;
  readonly sandboxId: string;
  readonly config: ContainerConfig;
  readonly state: "created" | "running" | "exited" | "unknown";
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  readonly exitCode?: number;
  /** `Completed` | `Error` | `OOMKilled` | `StartError` | `ContainerStatusUnknown` | … */
  readonly reason?: string;
  readonly message?: string;
  /** Image id, `sha256:…` of the config. */
  readonly imageId: string;
  /** Main process on the host; 0 when not running. */
  readonly pid: number;
  /** What the process got: uid, gid, supplemental groups. */
  readonly user?: { uid: number; gid: number; supplementalGroups: readonly number[] };
  /** What is in force now. */
  readonly resources: LinuxResources;
}

export interface ContainerStats {
  readonly cpuUsageNanoseconds: number;
  readonly memoryWorkingSetBytes: number;
  readonly memoryUsageBytes: number;
  readonly memoryRssBytes: number;
  readonly pids: number;
}

export interface EngineExecOptions {
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
  readonly signal?: AbortSignal;
}

/** Same shape as the API's ExecSession. */
export interface EngineSession {
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  resize(size: { width: number; height: number }): void;
  readonly done: Promise<{ exitCode: number }>;
  close(): void;
}

export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

export interface EngineEvent {
  readonly type:
    | "container-started"
    | "container-exited"
    | "container-removed"
    | "sandbox-ready"
    | "sandbox-stopped"
    | "sandbox-removed";
  readonly sandboxId: string;
  readonly containerId?: string;
}

export interface Mounts {
  /** A tmpfs at `path` (made if missing). */
  tmpfs(path: string, options: { sizeBytes?: number; mode: number; gid?: number }): Promise<void>;
  bind(source: string, path: string, options?: { readOnly?: boolean }): Promise<void>;
  /** Unmounts everything at and below `path`, lazily if busy; succeeds when nothing is mounted. */
  unmount(path: string): Promise<void>;
  /** Mount points at and below `path`, deepest first. */
  under(path: string): Promise<readonly string[]>;
}

export interface Images {
  list(): readonly ImageStatus[];
  /** By reference (normalized as Docker does: `busybox` = `docker.io/library/busybox:latest`), `name@sha256:…`, or id. */
  get(reference: string): ImageStatus | undefined;
  /** @throws EngineError `invalid-reference`, `pull-denied`, `pull-not-found`, `pull-failed`, `no-platform` */
  pull(reference: string, options?: PullOptions): Promise<ImageStatus>;
  /** docker-archive or OCI layout (tar or directory), plain, gzip or zstd. @throws EngineError `invalid-archive` */
  load(source: string | Readable, options?: { signal?: AbortSignal }): Promise<readonly ImageStatus[]>;
  /** Removes a reference; with the last one the image. @throws EngineError `image-in-use` */
  remove(reference: string): Promise<void>;
  /** Removes images that no container uses, least recently used first, until `bytes` are freed (default: all). */
  prune(options?: {
    bytes?: number;
    keep?: (image: ImageStatus) => boolean;
  }): Promise<{ removed: readonly string[]; freedBytes: number }>;
  /** Disk use of the image store and the file system below it. */
  usage(): Promise<{ usedBytes: number; capacityBytes: number; availableBytes: number }>;
}

export interface PullOptions {
  /** Tried in order, then anonymously. */
  readonly auths?: readonly { username?: string; password?: string; registryToken?: string; identityToken?: string }[];
  readonly signal?: AbortSignal;
}

export interface ImageStatus {
  /** `sha256:…` of the config. */
  readonly id: string;
  /** `docker.io/library/busybox:latest` */
  readonly tags: readonly string[];
  /** `docker.io/library/busybox@sha256:…` */
  readonly digests: readonly string[];
  /** Bytes of the unpacked layers. */
  readonly size: number;
  /** From the image's USER: one of both. */
  readonly uid?: number;
  readonly username?: string;
  readonly createdAt: number;
  readonly pinned: boolean;
  readonly config: ImageConfig;
}

/** OCI image config, `config` part. */
export interface ImageConfig {
  readonly Env?: readonly string[];
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly WorkingDir?: string;
  readonly User?: string;
  readonly StopSignal?: string;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly ExposedPorts?: Readonly<Record<string, unknown>>;
  readonly Volumes?: Readonly<Record<string, unknown>>;
}

export type EngineErrorCode =
  | "not-found"
  | "image-not-found"
  | "image-in-use"
  | "invalid-reference"
  | "invalid-archive"
  | "invalid-config"
  | "no-platform"
  | "pull-denied"
  | "pull-not-found"
  | "pull-failed"
  | "unknown-runtime"
  | "sandbox-failed"
  | "create-failed"
  | "start-failed"
  | "not-running"
  | "unsupported"
  | "disk-full";
