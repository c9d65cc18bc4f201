import type { DeepReadonly } from "#base";
import {
  controllerReference,
  isPodAvailable,
  isPodReady,
  type PersistentVolumeClaim,
  type Pod,
  type PodTemplateSpec,
  resources,
  type StatefulSet,
} from "#kinds";
import { podFromTemplate } from "../runtime/pod-control.ts";

export type S = DeepReadonly<StatefulSet>;
export type P = DeepReadonly<Pod>;
export type Claim = DeepReadonly<PersistentVolumeClaim>;

export const REVISION = "controller-revision-hash";
const POD_NAME = "statefulset.kubernetes.io/pod-name";
const POD_INDEX = "apps.kubernetes.io/pod-index";

export const startOf = (set: S): number => set.spec.ordinals?.start ?? 0;
export const replicasOf = (set: S): number => set.spec.replicas ?? 1;

/** The ordinal of a pod; undefined when it is not named as the set's pods are. */
export function ordinalOf(set: S, pod: P): number | undefined {
  const match = /^(.*)-(\d+)$/.exec(pod.metadata.name);
  return match && match[1] === set.metadata.name ? Number(match[2]) : undefined;
}

export const inRange = (set: S, ordinal: number): boolean =>
  ordinal >= startOf(set) && ordinal < startOf(set) + replicasOf(set);

export const revisionOf = (pod: P): string => pod.metadata.labels?.[REVISION] ?? "";
export const isTerminating = (pod: P): boolean => pod.metadata.deletionTimestamp !== undefined;
export const isRunningAndReady = (pod: P): boolean => pod.status?.phase === "Running" && isPodReady(pod);
export const isRunningAndAvailable = (set: S, pod: P, now: number): boolean =>
  pod.status?.phase === "Running" && isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now);

const claimName = (set: S, template: Claim, ordinal: number): string =>
  `${template.metadata.name}-${set.metadata.name}-${ordinal}`;

/** The pod of an ordinal, of a revision's template. https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#pod-identity */
export function podOf(set: S, ordinal: number, template: DeepReadonly<PodTemplateSpec>, revision: string): Pod {
  const name = `${set.metadata.name}-${ordinal}`;
  const pod = podFromTemplate(template, set, resources.statefulSets, { name, generateName: `${set.metadata.name}-` });
  const templates = set.spec.volumeClaimTemplates ?? [];
  const claimed = templates.map((one) => ({
    name: one.metadata.name,
    persistentVolumeClaim: { claimName: claimName(set, one, ordinal) },
  }));
  const others = (pod.spec.volumes ?? []).filter(
    (volume) => !templates.some((one) => one.metadata.name === volume.name),
  );
  const volumes = [...claimed, ...others];
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: { ...pod.metadata.labels, [POD_NAME]: name, [POD_INDEX]: String(ordinal), [REVISION]: revision },
    },
    spec: {
      ...pod.spec,
      hostname: name,
      ...(set.spec.serviceName ? { subdomain: set.spec.serviceName } : {}),
      ...(volumes.length ? { volumes } : {}),
    },
  };
}

/** Labels that a pod must have to be found by its name; undefined when it has them. */
export function missingLabels(set: S, pod: P): Record<string, string> | undefined {
  const wanted = { [POD_NAME]: pod.metadata.name, [POD_INDEX]: String(ordinalOf(set, pod)) };
  const has = Object.entries(wanted).every(([key, value]) => pod.metadata.labels?.[key] === value);
  return has ? undefined : wanted;
}

/** The claims of an ordinal, as they are to be created. */
export function claimsOf(set: S, ordinal: number): PersistentVolumeClaim[] {
  return (set.spec.volumeClaimTemplates ?? []).map((template) => {
    const { labels, annotations } = template.metadata;
    return {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: {
        name: claimName(set, template, ordinal),
        ...(set.metadata.namespace ? { namespace: set.metadata.namespace } : {}),
        labels: { ...labels, ...set.spec.selector.matchLabels },
        ...(annotations ? { annotations: { ...annotations } } : {}),
      },
      spec: template.spec as PersistentVolumeClaim["spec"],
    };
  });
}

/**
 * The owners that a claim is to have by persistentVolumeClaimRetentionPolicy: the set, the pod once it is condemned, or
 * neither; owners that are not ours are kept.
 */
export function claimOwners(
  set: S,
  claim: Claim,
  pod: P | undefined,
  ordinal: number,
): NonNullable<PersistentVolumeClaim["metadata"]["ownerReferences"]> {
  const { whenDeleted = "Retain", whenScaled = "Retain" } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  const others = (claim.metadata.ownerReferences ?? []).filter(
    ({ kind, name }) =>
      !(kind === "StatefulSet" && name === set.metadata.name) &&
      !(kind === "Pod" && name === `${set.metadata.name}-${ordinal}`),
  );
  const condemned = !inRange(set, ordinal);
  const owned = [...others] as NonNullable<PersistentVolumeClaim["metadata"]["ownerReferences"]>;
  if (whenScaled === "Delete" && condemned && pod) {
    owned.push({ apiVersion: "v1", kind: "Pod", name: pod.metadata.name, uid: pod.metadata.uid ?? "" });
  } else if (whenDeleted === "Delete") owned.push(controllerReference(set, resources.statefulSets));
  return owned;
}
