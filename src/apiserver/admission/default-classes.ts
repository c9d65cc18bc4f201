import { type Ingress, type IngressClass, type PersistentVolumeClaim, resources, type StorageClass } from "#kinds";
import type { AdmissionPlugin, Reader } from "../ports.ts";
import { isAbout, objectOf } from "./support.ts";

const STORAGE_DEFAULT = "storageclass.kubernetes.io/is-default-class";
const STORAGE_DEFAULT_BETA = "storageclass.beta.kubernetes.io/is-default-class";
const STORAGE_CLASS_BETA = "volume.beta.kubernetes.io/storage-class";
const INGRESS_DEFAULT = "ingressclass.kubernetes.io/is-default-class";
const INGRESS_CLASS = "kubernetes.io/ingress.class";

/**
 * Claims that name no class get the default one.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#defaultstorageclass
 */
export function createDefaultStorageClass({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "DefaultStorageClass",
    handles: (attributes) => attributes.operation === "CREATE" && isAbout(attributes, resources.persistentVolumeClaims),
    admit(attributes) {
      const claim = objectOf<PersistentVolumeClaim>(attributes);
      const asked = claim.spec?.storageClassName !== undefined || claim.metadata.annotations?.[STORAGE_CLASS_BETA];
      if (asked || !claim.spec) return;
      const found = newest<StorageClass>(
        reader.list(resources.storageClasses),
        ({ metadata: { annotations } }) =>
          annotations?.[STORAGE_DEFAULT] === "true" || annotations?.[STORAGE_DEFAULT_BETA] === "true",
      );
      if (found) claim.spec.storageClassName = found.metadata.name!;
    },
  };
}

/**
 * Ingresses that name no class get the default one.
 * @see https://kubernetes.io/docs/concepts/services-networking/ingress/#default-ingress-class
 */
export function createDefaultIngressClass({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "DefaultIngressClass",
    handles: (attributes) => attributes.operation === "CREATE" && isAbout(attributes, resources.ingresses),
    admit(attributes) {
      const ingress = objectOf<Ingress>(attributes);
      if (ingress.spec?.ingressClassName !== undefined || ingress.metadata.annotations?.[INGRESS_CLASS] !== undefined)
        return;
      const found = newest<IngressClass>(
        reader.list(resources.ingressClasses),
        ({ metadata }) => metadata?.annotations?.[INGRESS_DEFAULT] === "true",
      );
      if (found) ingress.spec = { ...ingress.spec, ingressClassName: found.metadata!.name! };
    },
  };
}

/** Of several defaults the newest counts, then the first by name. */
function newest<T extends { metadata?: { name?: string; creationTimestamp?: string | null } }>(
  classes: readonly T[],
  isDefault: (one: T) => boolean,
): T | undefined {
  const time = (one: T) => Date.parse(one.metadata?.creationTimestamp ?? "") || 0;
  const byName = (a: T, b: T) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1);
  return classes.filter(isDefault).sort((a, b) => time(b) - time(a) || byName(a, b))[0];
}
