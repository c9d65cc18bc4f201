import { messageOf } from "#base";
import { controllerReference, isPodTerminal, type PersistentVolumeClaim, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { fromCache, keyOf } from "../runtime/objects.ts";

/** Makes the claims of generic ephemeral volumes. https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#generic-ephemeral-volumes */
export function createEphemeralVolumeController(deps: ControllerDeps): Controller {
  const pods = deps.informers.for(resources.pods);
  const claims = deps.informers.for(resources.persistentVolumeClaims);
  const recorder = deps.recorder("ephemeral_volume");
  return createController(deps, {
    name: "ephemeral-volume",
    watch({ on, enqueue }) {
      on(pods, {
        add(pod) {
          if (!isPodTerminal(pod) && pod.spec.volumes?.some(({ ephemeral }) => ephemeral)) enqueue(keyOf(pod));
        },
      });
      on(claims, {
        delete({ metadata }) {
          const owner = metadata.ownerReferences?.find(({ kind, controller }) => controller && kind === "Pod");
          if (owner) enqueue(`${metadata.namespace}/${owner.name}`);
        },
      });
    },
    async reconcile(key) {
      const pod = fromCache(pods, key);
      if (!pod || pod.metadata.deletionTimestamp) return;
      const { namespace } = pod.metadata;
      for (const volume of pod.spec.volumes ?? []) {
        const template = volume.ephemeral?.volumeClaimTemplate;
        if (!template) continue;
        const name = `${pod.metadata.name}-${volume.name}`;
        const found = claims.get(namespace, name);
        try {
          if (!found) {
            const { labels, annotations } = template.metadata ?? {};
            const ownerReferences = [controllerReference(pod, resources.pods)];
            const claim: PersistentVolumeClaim = {
              apiVersion: "v1",
              kind: "PersistentVolumeClaim",
              metadata: {
                name,
                ...(namespace ? { namespace } : {}),
                ...(labels ? { labels: { ...labels } } : {}),
                ...(annotations ? { annotations: { ...annotations } } : {}),
                ownerReferences,
              },
              spec: template.spec as PersistentVolumeClaim["spec"],
            };
            await deps.client.create(resources.persistentVolumeClaims, claim);
          } else if (
            !found.metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === pod.metadata.uid)
          ) {
            throw new Error(
              `PVC ${namespace}/${name} was not created for pod ${namespace}/${pod.metadata.name} (pod is not owner)`,
            );
          }
        } catch (error) {
          recorder.event(pod, "Warning", "FailedBinding", `ephemeral volume ${volume.name}: ${messageOf(error)}`);
          throw error;
        }
      }
    },
  });
}
