import type { DeepReadonly } from "#base";
import type { Pod } from "#kinds";

/** Secrets, ConfigMaps, claims and the account that a pod names, as `<resource>/<name>` in its namespace. */
export function podReferences(pod: DeepReadonly<Pod>): ReadonlySet<string> {
  const known = cache.get(pod);
  if (known) return known;
  const found = new Set<string>();
  const add = (resource: string, name: string | undefined) => {
    if (name) found.add(`${resource}/${name}`);
  };
  const { spec } = pod;
  add("serviceaccounts", spec.serviceAccountName);
  for (const { name } of spec.imagePullSecrets ?? []) add("secrets", name);
  for (const container of [
    ...(spec.containers ?? []),
    ...(spec.initContainers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ]) {
    for (const { valueFrom } of container.env ?? []) {
      add("secrets", valueFrom?.secretKeyRef?.name);
      add("configmaps", valueFrom?.configMapKeyRef?.name);
    }
    for (const { secretRef, configMapRef } of container.envFrom ?? []) {
      add("secrets", secretRef?.name);
      add("configmaps", configMapRef?.name);
    }
  }
  for (const volume of spec.volumes ?? []) addVolume(volume, pod.metadata.name, add);
  for (const claim of spec.resourceClaims ?? []) add("resourceclaims", claim.resourceClaimName);
  for (const claim of pod.status?.resourceClaimStatuses ?? []) add("resourceclaims", claim.resourceClaimName);
  cache.set(pod, found);
  return found;
}

/** Objects of the store are never changed, so what was found stays true. */
const cache = new WeakMap<object, ReadonlySet<string>>();

type Volume = NonNullable<DeepReadonly<Pod>["spec"]["volumes"]>[number];

function addVolume(volume: Volume, podName: string, add: (resource: string, name: string | undefined) => void): void {
  add("secrets", volume.secret?.secretName);
  add("configmaps", volume.configMap?.name);
  add("persistentvolumeclaims", volume.persistentVolumeClaim?.claimName);
  if (volume.ephemeral) add("persistentvolumeclaims", `${podName}-${volume.name}`);
  for (const source of volume.projected?.sources ?? []) {
    add("secrets", source.secret?.name);
    add("configmaps", source.configMap?.name);
  }
  const withSecret = volume.csi?.nodePublishSecretRef ?? volume.iscsi?.secretRef ?? volume.rbd?.secretRef;
  add("secrets", withSecret?.name ?? volume.cephfs?.secretRef?.name ?? volume.azureFile?.secretName);
  add("secrets", volume.flexVolume?.secretRef?.name ?? volume.scaleIO?.secretRef?.name);
  add("secrets", volume.storageos?.secretRef?.name);
}
