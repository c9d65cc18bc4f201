import { compareQuantity, type PersistentVolumeClaim, resources } from "#kinds";
import type { AdmissionPlugin, Reader } from "../ports.ts";
import { isAbout, objectOf, oldOf, refuse } from "./support.ts";

/**
 * A claim grows only when it is bound and its class allows it.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#persistentvolumeclaimresize
 */
export function createPersistentVolumeClaimResize({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "PersistentVolumeClaimResize",
    handles: (attributes) => attributes.operation === "UPDATE" && isAbout(attributes, resources.persistentVolumeClaims),
    validate(attributes) {
      const claim = objectOf<PersistentVolumeClaim>(attributes);
      const old = oldOf<PersistentVolumeClaim>(attributes);
      const size = ({ spec }: PersistentVolumeClaim) => spec?.resources?.requests?.storage ?? "0";
      if (compareQuantity(size(claim), size(old)) <= 0) return;
      if (old.status?.phase !== "Bound")
        throw refuse(attributes, "Only bound persistent volume claims can be expanded");
      const name = claim.spec?.storageClassName;
      const known = name && name === old.spec?.storageClassName;
      if (known && reader.get(resources.storageClasses, undefined, name)?.allowVolumeExpansion) return;
      throw refuse(
        attributes,
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
      );
    },
  };
}
