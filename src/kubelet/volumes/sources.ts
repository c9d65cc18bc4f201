import type { Clock, DeepReadonly, Logger, Random } from "#base";
import type { Client } from "#client";
import type { Images, ImageStatus, Mounts } from "#engine";
import type { Pod, Volume } from "#kinds";
import type { ObjectCache } from "./object-cache.ts";
import type { MountedVolume } from "./port.ts";
import type { PodDirectory } from "./pod-directory.ts";
import type { TokenManager } from "./tokens.ts";
import type { TrustBundles } from "./trust-bundles.ts";

/** What the makers of volumes work with. */
export interface VolumeDeps {
  readonly client: Client;
  readonly objects: ObjectCache;
  readonly tokens: TokenManager;
  readonly trustBundles: TrustBundles;
  /** Absent: volumes that need a mount are plain directories (an engine without a kernel). */
  readonly mounts?: Mounts;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** `status.allocatable` of the node. */
  allocatable(): Readonly<Record<string, string>>;
  readonly images: Images;
  /** Pulls with the pod's credentials; absent = anonymously. */
  pullImage?(pod: DeepReadonly<Pod>, reference: string): Promise<ImageStatus>;
  /** Name and labels of the node, for the affinity of persistent volumes. */
  nodeLabels(): { readonly name: string; readonly labels: Readonly<Record<string, string>> };
}

/** One volume of one pod. */
export interface VolumeSource {
  /** Makes it, or brings it up to date; may be called again at any time, never twice at once. */
  setUp(pod: DeepReadonly<Pod>): Promise<MountedVolume>;
  /** When `setUp` must be called again although nothing was reported, milliseconds since the epoch. */
  renewAt?(): number | undefined;
  /** Whether a changed pod can change it. */
  readonly followsPod?: boolean;
  /** Ends what it watches. */
  dispose?(): void;
}

export type MakeVolume = (
  context: {
    readonly pod: DeepReadonly<Pod>;
    readonly volume: DeepReadonly<Volume>;
    readonly directory: PodDirectory;
    /** Something that the volume shows has changed. */
    changed(): void;
  },
  deps: VolumeDeps,
) => VolumeSource;

/** An error whose event text is not `MountVolume.SetUp failed for volume …`. */
export class MountStepError extends Error {
  /** `MountVolume.NewMounter initialization failed` */
  readonly step: string;
  /** The name of the volume in the text: that of the persistent volume, where there is one. */
  readonly volume: string;
  constructor(step: string, volume: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "MountStepError";
    this.step = step;
    this.volume = volume;
  }
}
