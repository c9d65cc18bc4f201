import type { Clock, Logger, Random } from "#base";
import type { EngineEvent, ImageConfig, Images, ImageStatus } from "../port.ts";
import type { Cgroups } from "./cgroups.ts";
import type { Host } from "./host.ts";
import type { PodNetwork } from "./net/pod-network.ts";
import type { Paths } from "./paths.ts";
import type { ContainerRecord, Records, SandboxRecord } from "./records.ts";
import type { Launcher } from "./sys/launcher.ts";
import type { Libc } from "./sys/libc.ts";
import type { KeyedLock, Semaphore } from "./sys/locks.ts";
import type { Mounter } from "./sys/mounter.ts";
import type { Namespaces } from "./sys/namespaces.ts";
import type { Run } from "./sys/run.ts";

/** The part of the image store that the engine needs. */
export interface ImageRoots extends Images {
  /** Layer directories, lowest first, and the config of an image that is there. @throws EngineError `image-not-found` */
  rootfs(imageId: string): { readonly layers: readonly string[]; readonly config: ImageConfig };
  /** Marks the image as used by the container; it can't be removed until `release`. */
  hold(imageId: string, containerId: string): void;
  release(containerId: string): void;
}

export type { ImageStatus };

/** What every part of the engine works with. */
export interface Context {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly libc: Libc | undefined;
  readonly run: Run;
  readonly launcher: Launcher;
  readonly host: Host;
  readonly cgroups: Cgroups;
  readonly namespaces: Namespaces;
  readonly mounter: Mounter;
  readonly network: PodNetwork;
  readonly images: ImageRoots;
  readonly paths: Paths;
  /** Control group above all of this instance's, with a leading slash. */
  readonly cgroupParent: string;
  readonly pauseImage: string;
  readonly bootId: string;
  readonly sandboxes: Records<SandboxRecord>;
  readonly containers: Records<ContainerRecord>;
  /** Orders what changes a sandbox or its containers; keyed by the sandbox's id. */
  readonly sandboxLock: KeyedLock;
  /** Caps work that spawns programs: more at once only makes each slower. */
  readonly gate: Semaphore;
  emit(event: EngineEvent): void;
  /** Aborted when the engine is closed: another one may work on the same directories from then on, so nothing is touched any more. */
  readonly closed: AbortSignal;
}
