import { messageOf } from "#base";
import type { MakeVolume } from "./sources.ts";

/**
 * The files of an image, read-only.
 *
 * Source: https://kubernetes.io/docs/tasks/configure-pod-container/image-volumes/, KEP-4639
 */
export const imageVolume: MakeVolume = ({ volume }, deps) => {
  const { reference = "", pullPolicy = "" } = volume.image ?? {};
  let pulled = false;
  return {
    async setUp(pod) {
      const present = deps.images.get(reference) !== undefined;
      if (pullPolicy === "Never" && !present) {
        throw new Error(`Container image "${reference}" is not present with pull policy of Never`);
      }
      const always = pullPolicy === "Always" || (pullPolicy === "" && isLatest(reference));
      if (!present || (always && !pulled)) {
        try {
          await (deps.pullImage ? deps.pullImage(pod, reference) : deps.images.pull(reference));
        } catch (error) {
          throw new Error(`failed to pull and unpack image "${reference}": ${messageOf(error)}`, { cause: error });
        }
      }
      pulled = true;
      return { image: reference, readOnly: true };
    },
  };
};

/** Without a tag or digest, or with the tag `latest`, the policy is Always. */
function isLatest(reference: string): boolean {
  if (reference.includes("@")) return false;
  const tag = /:([^/:]+)$/.exec(reference)?.[1];
  return tag === undefined || tag === "latest";
}
