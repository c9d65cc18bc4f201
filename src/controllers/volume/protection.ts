import type { DeepReadonly } from "#base";
import type { Informer } from "#client";
import { isPodTerminal, type ObjectMeta, type Pod, type Resource, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, keyOf } from "../runtime/objects.ts";

/** Claims that a pod's volumes name, generic ephemeral ones included: `namespace/name`. */
export function claimsOf(pod: DeepReadonly<Pod>): string[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    if (volume.persistentVolumeClaim) return [`${pod.metadata.namespace}/${volume.persistentVolumeClaim.claimName}`];
    return volume.ephemeral ? [`${pod.metadata.namespace}/${pod.metadata.name}-${volume.name}`] : [];
  });
}

/** Claims stay until no pod uses them. https://kubernetes.io/docs/concepts/storage/persistent-volumes/#storage-object-in-use-protection */
export function createClaimProtection(deps: ControllerDeps): Controller {
  const claims = deps.informers.for(resources.persistentVolumeClaims);
  const pods = deps.informers.for(resources.pods);
  pods.addIndex("claimUsers", (pod) => (isPodTerminal(pod) ? [] : claimsOf(pod)));
  const inUse = (key: string) => pods.byIndex("claimUsers", key).length > 0;
  return createController(deps, {
    name: "persistentvolumeclaim-protection",
    watch({ on, enqueue }) {
      on(claims, { add: (claim) => enqueue(keyOf(claim)), update: (claim) => enqueue(keyOf(claim)) });
      const released = (pod: DeepReadonly<Pod>) => {
        for (const key of claimsOf(pod)) enqueue(key);
      };
      on(pods, {
        update: (pod, before) => void (isPodTerminal(pod) && !isPodTerminal(before) && released(pod)),
        delete: released,
      });
    },
    reconcile: (key) =>
      protect(deps, claims, resources.persistentVolumeClaims, key, "kubernetes.io/pvc-protection", () => inUse(key)),
  });
}

/** Volumes stay while a claim is bound to them. */
export function createVolumeProtection(deps: ControllerDeps): Controller {
  const volumes = deps.informers.for(resources.persistentVolumes);
  return createController(deps, {
    name: "persistentvolume-protection",
    watch({ on, enqueue }) {
      on(volumes, { add: (volume) => enqueue(keyOf(volume)), update: (volume) => enqueue(keyOf(volume)) });
    },
    reconcile: (key) =>
      protect(
        deps,
        volumes,
        resources.persistentVolumes,
        key,
        "kubernetes.io/pv-protection",
        (volume) => volume.status?.phase === "Bound",
      ),
  });
}

async function protect<T extends { metadata: ObjectMeta }>(
  deps: ControllerDeps,
  informer: Informer<T>,
  resource: Resource<T>,
  key: string,
  finalizer: string,
  inUse: (object: T) => boolean,
): Promise<void> {
  const found = fromCache(informer, key) as T | undefined;
  if (!found) return;
  const { deletionTimestamp, finalizers = [] } = found.metadata;
  const has = finalizers.includes(finalizer);
  if (deletionTimestamp ? !has || inUse(found) : has) return;
  const next = deletionTimestamp ? finalizers.filter((one) => one !== finalizer) : [...finalizers, finalizer];
  // an update and no patch: the roles of these controllers have no `patch`
  const copy = copyOf(resource, found as DeepReadonly<T>);
  await ignoreNotFound(deps.client.update(resource, { ...copy, metadata: { ...copy.metadata, finalizers: next } }));
}
