import type { DeepReadonly } from "#base";
import type * as types from "./generated/types.ts";
import { compareQuantity } from "./quantity.ts";
import { matchesSelector } from "./selector.ts";

type Volume = DeepReadonly<types.PersistentVolume>;
type Claim = DeepReadonly<types.PersistentVolumeClaim>;

/**
 * The smallest volume that a claim can have: one that was bound to it beforehand, else a free one that satisfies it.
 * https://kubernetes.io/docs/concepts/storage/persistent-volumes/#binding
 */
export function findMatchingVolume(
  claim: Claim,
  volumes: readonly Volume[],
  usable: (volume: Volume) => boolean = () => true,
): Volume | undefined {
  let best: Volume | undefined;
  for (const volume of volumes) {
    if (volume.metadata.deletionTimestamp || !usable(volume)) continue;
    const ref = volume.spec.claimRef;
    if (ref) {
      const its = ref.namespace === claim.metadata.namespace && ref.name === claim.metadata.name;
      if (its && (!ref.uid || ref.uid === claim.metadata.uid) && fits(claim, volume)) return volume;
      continue;
    }
    if (volume.status?.phase !== "Available" || !satisfiesClaim(claim, volume)) continue;
    if (!best || compareQuantity(capacity(volume), capacity(best)) < 0) best = volume;
  }
  return best;
}

/** Size, access modes, class, mode and selector. */
export function satisfiesClaim(claim: Claim, volume: Volume): boolean {
  if ((volume.spec.storageClassName ?? "") !== (claim.spec.storageClassName ?? "")) return false;
  if (claim.spec.selector && !matchesSelector(claim.spec.selector, volume.metadata.labels)) return false;
  return fits(claim, volume) && (claim.spec.accessModes ?? []).every((mode) => volume.spec.accessModes?.includes(mode));
}

function fits(claim: Claim, volume: Volume): boolean {
  if ((volume.spec.volumeMode ?? "Filesystem") !== (claim.spec.volumeMode ?? "Filesystem")) return false;
  return compareQuantity(capacity(volume), claim.spec.resources?.requests?.storage ?? "0") >= 0;
}

const capacity = (volume: Volume): string => volume.spec.capacity?.storage ?? "0";
