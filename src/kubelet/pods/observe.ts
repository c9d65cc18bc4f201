import type { LinuxResources, SandboxStatus } from "#engine";

/** One run of a container, as the engine has it. */
export interface ObservedContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly name: string;
  readonly state: "created" | "running" | "exited" | "unknown";
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  readonly exitCode: number;
  readonly reason: string;
  /** The engine's, or the termination message that was read. */
  readonly message: string;
  readonly restartCount: number;
  readonly hash: string;
  /** As `status.containerStatuses[]` shows them. */
  readonly image: string;
  readonly imageID: string;
  readonly user?: { readonly uid: number; readonly gid: number; readonly supplementalGroups: readonly number[] };
  readonly resources: LinuxResources;
}

/** What there is of one pod: newest first. */
export interface ObservedPod {
  readonly sandboxes: readonly SandboxStatus[];
  readonly containers: readonly ObservedContainer[];
}

export const nothingObserved: ObservedPod = { sandboxes: [], containers: [] };

/** The newest run of a container. */
export const newest = (observed: ObservedPod, name: string): ObservedContainer | undefined =>
  observed.containers.find((container) => container.name === name);
