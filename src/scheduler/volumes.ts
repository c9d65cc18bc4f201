import type { Clock, DeepReadonly } from "#base";
import type { Client, Informer } from "#client";
import {
  findMatchingVolume,
  matchesNodeSelector,
  type PersistentVolume as MutablePersistentVolume,
  type PersistentVolumeClaim as MutableClaim,
  type Pod as MutablePod,
  resources,
  type StorageClass as MutableStorageClass,
} from "#kinds";
import type { NodeInfo } from "./node-info.ts";
import {
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Refusal,
  refuse,
} from "./types.ts";

const BIND_COMPLETED = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller";
const SELECTED_NODE = "volume.kubernetes.io/selected-node";
const NO_PROVISIONER = "kubernetes.io/no-provisioner";
/** How long a pod waits for its claims to be bound before it is scheduled afresh. */
const BIND_TIMEOUT = 600_000;

export interface VolumeDeps {
  client: Client;
  clock: Clock;
  claims: Informer<MutableClaim>;
  volumes: Informer<MutablePersistentVolume>;
  classes: Informer<MutableStorageClass>;
  pods: Informer<MutablePod>;
}

/** What a pod's claims demand of the node. */
export interface PodVolumes {
  filter(node: NodeInfo): Refusal | undefined;
  /** Binds or has provisioned what waits for a node; resolves when every claim is bound. */
  bind(node: Node, signal: AbortSignal): Promise<void>;
}

export interface Volumes {
  /** A refusal that holds for every node, or the demands; undefined for a pod without claims. */
  prepare(pod: Pod): { refusal: string } | { volumes: PodVolumes } | undefined;
}

/**
 * Claims of pods: bound ones tie the pod to where the volume is, unbound ones of WaitForFirstConsumer classes are bound once
 * the node is chosen. https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode
 */
export function createVolumes(deps: VolumeDeps): Volumes {
  deps.pods.addIndex("claims", (pod) => (pod.spec.nodeName ? claimKeys(pod) : []));
  const delayed = (claim: PersistentVolumeClaim) =>
    classOf(deps, claim)?.volumeBindingMode === "WaitForFirstConsumer" && !claim.spec.volumeName;

  return {
    prepare(pod) {
      const found = claimsOf(deps, pod);
      if (typeof found === "string") return { refusal: found };
      if (found.length === 0) return undefined;
      const shared = found.find(
        (claim) => claim.spec.accessModes?.includes("ReadWriteOncePod") && inUse(deps, pod, claim),
      );
      if (found.some((claim) => !isBound(claim) && !delayed(claim))) {
        return { refusal: "pod has unbound immediate PersistentVolumeClaims" };
      }
      const bound = found.filter(isBound);
      const waiting = found.filter((claim) => !isBound(claim));
      return {
        volumes: {
          filter(node) {
            if (shared) {
              return refuse(
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
              );
            }
            return filterBound(deps, bound, node) ?? filterWaiting(deps, waiting, node);
          },
          bind: (node, signal) => bindWaiting(deps, waiting, node, signal),
        },
      };
    },
  };
}

/** Claims by volume, generic ephemeral volumes having claims of their own: `<pod>-<volume>`. */
type ClaimName = { name: string; ephemeral: boolean };

function claimNames(pod: Pod): ClaimName[] {
  return (pod.spec.volumes ?? []).flatMap((volume): ClaimName[] => {
    if (volume.persistentVolumeClaim) return [{ name: volume.persistentVolumeClaim.claimName, ephemeral: false }];
    return volume.ephemeral ? [{ name: `${pod.metadata.name}-${volume.name}`, ephemeral: true }] : [];
  });
}

const claimKeys = (pod: Pod): string[] => claimNames(pod).map(({ name }) => `${pod.metadata.namespace}/${name}`);

function claimsOf(deps: VolumeDeps, pod: Pod): PersistentVolumeClaim[] | string {
  const result: PersistentVolumeClaim[] = [];
  for (const { name, ephemeral } of claimNames(pod)) {
    const claim = deps.claims.get(pod.metadata.namespace, name);
    if (!claim) {
      return ephemeral
        ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`
        : `persistentvolumeclaim "${name}" not found`;
    }
    if (claim.status?.phase === "Lost") {
      return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${claim.spec.volumeName}"`;
    }
    if (claim.metadata.deletionTimestamp) return `persistentvolumeclaim "${name}" is being deleted`;
    if (ephemeral && !claim.metadata.ownerReferences?.some(({ uid }) => uid === pod.metadata.uid)) {
      return `PVC ${pod.metadata.namespace}/${name} was not created for pod ${pod.metadata.namespace}/${pod.metadata.name} (pod is not owner)`;
    }
    result.push(claim);
  }
  return result;
}

const isBound = (claim: PersistentVolumeClaim): boolean =>
  Boolean(claim.spec.volumeName) && claim.metadata.annotations?.[BIND_COMPLETED] !== undefined;

const classOf = (deps: VolumeDeps, claim: PersistentVolumeClaim): DeepReadonly<MutableStorageClass> | undefined =>
  claim.spec.storageClassName ? deps.classes.get(undefined, claim.spec.storageClassName) : undefined;

function inUse(deps: VolumeDeps, pod: Pod, claim: PersistentVolumeClaim): boolean {
  const users = deps.pods.byIndex("claims", `${claim.metadata.namespace}/${claim.metadata.name}`);
  return users.some(
    (other) =>
      other.metadata.uid !== pod.metadata.uid &&
      other.status?.phase !== "Succeeded" &&
      other.status?.phase !== "Failed",
  );
}

const reachable = (volume: PersistentVolume, node: Node): boolean =>
  !volume.spec.nodeAffinity?.required || matchesNodeSelector(volume.spec.nodeAffinity.required, node);

function filterBound(
  deps: VolumeDeps,
  claims: readonly PersistentVolumeClaim[],
  { node }: NodeInfo,
): Refusal | undefined {
  for (const claim of claims) {
    const volume = deps.volumes.get(undefined, claim.spec.volumeName!);
    if (!volume) return refuse("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", true);
    if (!reachable(volume, node!)) return refuse("node(s) didn't match PersistentVolume's node affinity", true);
  }
  return undefined;
}

function filterWaiting(
  deps: VolumeDeps,
  claims: readonly PersistentVolumeClaim[],
  { node }: NodeInfo,
): Refusal | undefined {
  if (claims.length === 0) return undefined;
  const volumes = deps.volumes.list();
  for (const claim of claims) {
    const chosen = claim.metadata.annotations?.[SELECTED_NODE];
    const provisionable = classOf(deps, claim)?.provisioner !== NO_PROVISIONER;
    if (chosen && chosen !== node!.metadata.name && provisionable) {
      return refuse("node(s) didn't find available persistent volumes to bind", true);
    }
    if (findMatchingVolume(claim, volumes, (volume) => reachable(volume, node!))) continue;
    if (!provisionable) return refuse("node(s) didn't find available persistent volumes to bind", true);
  }
  return undefined;
}

async function bindWaiting(
  deps: VolumeDeps,
  claims: readonly PersistentVolumeClaim[],
  node: Node,
  signal: AbortSignal,
): Promise<void> {
  const taken = new Set<string>();
  for (const claim of claims) {
    const usable = (volume: PersistentVolume) => reachable(volume, node) && !taken.has(volume.metadata.name);
    const volume = findMatchingVolume(claim, deps.volumes.list(), usable);
    if (volume) {
      taken.add(volume.metadata.name);
      await reserve(deps, claim, volume);
    } else {
      const { namespace, name } = claim.metadata;
      const body = { metadata: { annotations: { [SELECTED_NODE]: node.metadata.name } } };
      await deps.client.patch(resources.persistentVolumeClaims, name, { type: "merge", body }, { namespace });
    }
  }
  for (const claim of claims) await untilBound(deps, claim, signal);
}

async function reserve(deps: VolumeDeps, claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> {
  if (volume.spec.claimRef?.uid) return;
  const { namespace, name, uid, resourceVersion } = claim.metadata;
  const claimRef = { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid, resourceVersion };
  const body = {
    metadata: {
      resourceVersion: volume.metadata.resourceVersion,
      ...(volume.spec.claimRef ? {} : { annotations: { [BOUND_BY_CONTROLLER]: "yes" } }),
    },
    spec: { claimRef },
  };
  await deps.client.patch(resources.persistentVolumes, volume.metadata.name, { type: "merge", body });
}

function untilBound(deps: VolumeDeps, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const { namespace, name, uid } = claim.metadata;
  return new Promise((resolve, reject) => {
    const end = (error?: Error) => {
      subscription[Symbol.dispose]();
      timer.clear();
      signal.removeEventListener("abort", abort);
      if (error) reject(error);
      else resolve();
    };
    const look = () => {
      const now = deps.claims.get(namespace, name);
      if (!now || now.metadata.uid !== uid) return end(new Error(`persistentvolumeclaim "${name}" not found`));
      if (isBound(now)) return end();
      if (now.metadata.annotations?.[SELECTED_NODE] === undefined && claim.metadata.annotations?.[SELECTED_NODE]) {
        return end(new Error(`provisioning failed for PVC "${name}"`));
      }
    };
    const abort = () => end(signal.reason as Error);
    const timer = deps.clock.setTimer(() => end(new Error("binding volumes: context deadline exceeded")), BIND_TIMEOUT);
    const mine = (other: PersistentVolumeClaim) =>
      other.metadata.name === name && other.metadata.namespace === namespace;
    let subscription: Disposable = { [Symbol.dispose]() {} };
    signal.addEventListener("abort", abort, { once: true });
    subscription = deps.claims.onChange({
      update: (other) => void (mine(other) && look()),
      delete: (other) => void (mine(other) && look()),
    });
    look();
  });
}
