import { resources } from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin } from "../ports.ts";
import { isAbout } from "./support.ts";

/**
 * Volumes, claims and attribute classes begin with the finalizer that keeps them while they are in use.
 * @see https://kubernetes.io/docs/concepts/storage/persistent-volumes/#storage-object-in-use-protection
 */
export function createStorageObjectInUseProtection(): AdmissionPlugin {
  return {
    name: "StorageObjectInUseProtection",
    handles: (attributes) => attributes.operation === "CREATE" && finalizerFor(attributes) !== undefined,
    admit(attributes) {
      const finalizer = finalizerFor(attributes)!;
      const { metadata } = attributes.object!;
      if (!metadata.finalizers?.includes(finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), finalizer];
    },
  };
}

function finalizerFor(attributes: AdmissionAttributes): string | undefined {
  if (isAbout(attributes, resources.persistentVolumes)) return "kubernetes.io/pv-protection";
  if (isAbout(attributes, resources.persistentVolumeClaims)) return "kubernetes.io/pvc-protection";
  return isAbout(attributes, resources.volumeAttributesClasses) ? "kubernetes.io/vac-protection" : undefined;
}
