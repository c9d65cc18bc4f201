import type { DeepReadonly } from "#base";
import type { Volume } from "#kinds";
import { emptyDir } from "./empty-dir.ts";
import { hostPath } from "./host-path.ts";
import { imageVolume } from "./image-volume.ts";
import { persistentVolume } from "./persistent-volume.ts";
import { configMapVolume, downwardVolume, projectedVolume, secretVolume } from "./projected.ts";
import type { MakeVolume } from "./sources.ts";

/** Who makes a volume, by its type. A volume without a type is an emptyDir. */
export function makerOf(volume: DeepReadonly<Volume>): MakeVolume {
  const type = Object.keys(volume).find((field) => field !== "name") ?? "emptyDir";
  return MAKERS[type] ?? unsupported(type);
}

const MAKERS: Readonly<Record<string, MakeVolume>> = {
  configMap: configMapVolume,
  downwardAPI: downwardVolume,
  emptyDir,
  ephemeral: persistentVolume,
  hostPath,
  image: imageVolume,
  persistentVolumeClaim: persistentVolume,
  projected: projectedVolume,
  secret: secretVolume,
};

/** Types that need a driver, which this node has none of. */
const unsupported =
  (type: string): MakeVolume =>
  ({ volume }) => ({
    async setUp() {
      throw new Error(
        type === "csi"
          ? `kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name ${volume.csi?.driver} not found in the list of registered CSI drivers`
          : `volumes of type ${type} are not supported on this node`,
      );
    },
  });
