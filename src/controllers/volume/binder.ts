import { type DeepReadonly, deepEqual, messageOf } from "#base";
import {
  findMatchingVolume,
  isPodTerminal,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  satisfiesClaim,
  type StorageClass,
} from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, keyOf, timestamp, writeStatus } from "../runtime/objects.ts";
import { claimsOf } from "./protection.ts";
import type { Provisioner } from "./local-path.ts";

type Claim = DeepReadonly<PersistentVolumeClaim>;
type Volume = DeepReadonly<PersistentVolume>;

export const BIND_COMPLETED = "pv.kubernetes.io/bind-completed";
export const BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller";
export const PROVISIONED_BY = "pv.kubernetes.io/provisioned-by";
export const SELECTED_NODE = "volume.kubernetes.io/selected-node";
const STORAGE_PROVISIONER = [
  "volume.beta.kubernetes.io/storage-provisioner",
  "volume.kubernetes.io/storage-provisioner",
];
const NO_PROVISIONER = "kubernetes.io/no-provisioner";
const VOLUME = "volume:";
/** How often claims that are not bound are looked at, milliseconds. */
const RESYNC = 15_000;

/** Binds claims and volumes, provisions and reclaims. https://kubernetes.io/docs/concepts/storage/persistent-volumes/#lifecycle-of-a-volume-and-claim */
export function createVolumeBinder(deps: ControllerDeps, provisioner: Provisioner | undefined): Controller {
  const { client, clock } = deps;
  const claims = deps.informers.for(resources.persistentVolumeClaims);
  const volumes = deps.informers.for(resources.persistentVolumes);
  const classes = deps.informers.for(resources.storageClasses);
  const nodes = deps.informers.for(resources.nodes);
  const pods = deps.informers.for(resources.pods);
  const recorder = deps.recorder("persistentvolume-controller");
  pods.addIndex("claimsOfPods", claimsOf);
  volumes.addIndex("claim", ({ spec: { claimRef } }) => (claimRef ? [`${claimRef.namespace}/${claimRef.name}`] : []));

  async function syncClaim(claim: Claim): Promise<void> {
    if (claim.metadata.annotations?.[BIND_COMPLETED]) return syncBoundClaim(claim);
    const { volumeName } = claim.spec;
    if (volumeName) return syncNamedClaim(claim, volumeName);
    const usable = volumes.list();
    const storageClass = claim.spec.storageClassName ? classes.get(undefined, claim.spec.storageClassName) : undefined;
    const waits =
      storageClass?.volumeBindingMode === "WaitForFirstConsumer" && !claim.metadata.annotations?.[SELECTED_NODE];
    const prebound = volumes.byIndex("claim", keyOf(claim));
    const found = findMatchingVolume(claim, waits ? prebound : usable);
    if (found) return bind(claim, found);
    await pending(claim);
    if (claim.spec.storageClassName === undefined && (await takeDefaultClass(claim))) return;
    if (waits) return tellWaiting(claim);
    if (!claim.spec.storageClassName) {
      const message = "no persistent volumes available for this claim and no storage class is set";
      recorder.event(claim, "Normal", "FailedBinding", message);
      return;
    }
    if (!storageClass) {
      const message = `storageclass.storage.k8s.io "${claim.spec.storageClassName}" not found`;
      recorder.event(claim, "Warning", "ProvisioningFailed", message);
      return;
    }
    await provision(claim, storageClass.provisioner);
  }

  /** A claim that names no class gets the default one as soon as there is one. */
  async function takeDefaultClass(claim: Claim): Promise<boolean> {
    const found = defaultStorageClass(classes.list());
    if (!found) return false;
    const copy = copyOf(resources.persistentVolumeClaims, claim);
    const spec = { ...copy.spec, storageClassName: found.metadata.name };
    await client.update(resources.persistentVolumeClaims, { ...copy, spec });
    return true;
  }

  function tellWaiting(claim: Claim): void {
    const names = pods.byIndex("claimsOfPods", keyOf(claim)).flatMap((pod) => {
      return pod.spec.nodeName || isPodTerminal(pod) ? [] : [pod.metadata.name];
    });
    if (names.length === 0) {
      const message = "waiting for first consumer to be created before binding";
      recorder.event(claim, "Normal", "WaitForFirstConsumer", message);
      return;
    }
    const message = `waiting for ${names.length === 1 ? "pod" : "pods"} ${names.join(",")} to be scheduled`;
    recorder.event(claim, "Normal", "WaitForPodScheduled", message);
  }

  async function syncNamedClaim(claim: Claim, name: string): Promise<void> {
    const volume = volumes.get(undefined, name);
    if (!volume) return pending(claim);
    const ref = volume.spec.claimRef;
    const ours = ref && ref.namespace === claim.metadata.namespace && ref.name === claim.metadata.name;
    if (ref && (!ours || (ref.uid && ref.uid !== claim.metadata.uid))) {
      recorder.event(claim, "Warning", "FailedBinding", `volume "${name}" already bound to a different claim.`);
      return pending(claim);
    }
    if (!ref && !satisfiesClaim(claim, volume)) {
      const message = `Cannot bind to requested volume "${name}": ${mismatch(claim, volume)}`;
      recorder.event(claim, "Warning", "VolumeMismatch", message);
      return pending(claim);
    }
    await bind(claim, volume);
  }

  async function syncBoundClaim(claim: Claim): Promise<void> {
    const volume = claim.spec.volumeName ? volumes.get(undefined, claim.spec.volumeName) : undefined;
    if (volume?.spec.claimRef?.uid === claim.metadata.uid) {
      if (claim.status?.phase !== "Bound") await bind(claim, volume!);
      return;
    }
    const fresh =
      volume ??
      (claim.spec.volumeName && (await ignoreNotFound(client.get(resources.persistentVolumes, claim.spec.volumeName))));
    if (fresh && (!fresh.spec.claimRef?.uid || fresh.spec.claimRef.uid === claim.metadata.uid))
      return bind(claim, fresh);
    if (claim.status?.phase === "Lost") return;
    await writeStatus(client, resources.persistentVolumeClaims, claim, { phase: "Lost" });
    const message = fresh
      ? "Two claims are bound to the same volume, this one is bound incorrectly"
      : "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    recorder.event(claim, "Warning", fresh ? "ClaimMisbound" : "ClaimLost", message);
  }

  async function pending(claim: Claim): Promise<void> {
    if (claim.status?.phase === "Pending") return;
    await writeStatus(client, resources.persistentVolumeClaims, claim, {
      ...(claim.status as PersistentVolumeClaim["status"]),
      phase: "Pending",
    });
  }

  /** In an order that a crash may interrupt anywhere: the volume's claim, its phase, the claim's volume, its phase. */
  async function bind(claim: Claim, given: Volume): Promise<void> {
    let volume = given;
    const { namespace = "", name, uid = "", resourceVersion = "" } = claim.metadata;
    if (volume.spec.claimRef?.uid !== uid) {
      const copy = copyOf(resources.persistentVolumes, volume);
      const own = volume.spec.claimRef ? {} : { [BOUND_BY_CONTROLLER]: "yes" };
      volume = await client.update(resources.persistentVolumes, {
        ...copy,
        metadata: { ...copy.metadata, annotations: { ...copy.metadata.annotations, ...own } },
        spec: {
          ...copy.spec,
          claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid, resourceVersion },
        },
      });
    }
    await setPhase(volume, "Bound");
    let bound = claim;
    const annotations = {
      ...claim.metadata.annotations,
      [BIND_COMPLETED]: "yes",
      ...(claim.spec.volumeName ? {} : { [BOUND_BY_CONTROLLER]: "yes" }),
    };
    if (claim.spec.volumeName !== volume.metadata.name || !claim.metadata.annotations?.[BIND_COMPLETED]) {
      const copy = copyOf(resources.persistentVolumeClaims, claim);
      bound = await client.update(resources.persistentVolumeClaims, {
        ...copy,
        metadata: { ...copy.metadata, annotations },
        spec: { ...copy.spec, volumeName: volume.metadata.name },
      });
    }
    const { accessModes, capacity } = copyOf(resources.persistentVolumes, volume).spec;
    const status = {
      ...(bound.status as PersistentVolumeClaim["status"]),
      phase: "Bound",
      ...(accessModes ? { accessModes } : {}),
      ...(capacity ? { capacity } : {}),
    };
    if (!deepEqual(status, bound.status)) await writeStatus(client, resources.persistentVolumeClaims, bound, status);
  }

  async function setPhase(volume: Volume, phase: string, reason?: string, message?: string): Promise<void> {
    if (volume.status?.phase === phase) return;
    const status = {
      phase,
      ...(message ? { message } : {}),
      ...(reason ? { reason } : {}),
      lastPhaseTransitionTime: timestamp(clock),
    };
    await writeStatus(client, resources.persistentVolumes, volume, status);
  }

  /** Tells on the claim who is to make its volume; the binder's role has no `patch` of claims. */
  async function named(claim: Claim, provisionerName: string): Promise<Claim> {
    if (STORAGE_PROVISIONER.every((key) => claim.metadata.annotations?.[key] === provisionerName)) return claim;
    const copy = copyOf(resources.persistentVolumeClaims, claim);
    const annotations = {
      ...copy.metadata.annotations,
      ...Object.fromEntries(STORAGE_PROVISIONER.map((key) => [key, provisionerName])),
    };
    return client.update(resources.persistentVolumeClaims, { ...copy, metadata: { ...copy.metadata, annotations } });
  }

  async function provision(found: Claim, name: string): Promise<void> {
    if (name === NO_PROVISIONER) return;
    const claim = await named(found, name);
    if (provisioner?.name !== name) {
      const message = `Waiting for a volume to be created either by the external provisioner '${name}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`;
      recorder.event(claim, "Normal", "ExternalProvisioning", message);
      return;
    }
    const storageClass = classes.get(undefined, claim.spec.storageClassName!)!;
    const chosen = claim.metadata.annotations?.[SELECTED_NODE] ?? nodes.list()[0]?.metadata.name;
    const node = chosen ? nodes.get(undefined, chosen) : undefined;
    try {
      await provisioner.provision(claim, storageClass, node);
    } catch (error) {
      const message = `failed to provision volume with StorageClass "${storageClass.metadata.name}": ${messageOf(error)}`;
      recorder.event(claim, "Warning", "ProvisioningFailed", message);
      throw error;
    }
  }

  async function syncVolume(volume: Volume): Promise<void> {
    const { claimRef, persistentVolumeReclaimPolicy = "Retain" } = volume.spec;
    if (!claimRef?.uid) return setPhase(volume, "Available");
    let claim: Claim | undefined = claims.get(claimRef.namespace, claimRef.name ?? "");
    if (claim?.metadata.uid !== claimRef.uid) {
      claim = await ignoreNotFound(
        client.get(resources.persistentVolumeClaims, claimRef.name ?? "", { namespace: claimRef.namespace }),
      );
    }
    if (claim && claim.metadata.uid === claimRef.uid) return;
    if (volume.status?.phase !== "Failed") await setPhase(volume, "Released");
    if (persistentVolumeReclaimPolicy !== "Delete" || volume.metadata.deletionTimestamp) return;
    const owner = volume.metadata.annotations?.[PROVISIONED_BY];
    if (owner && owner !== provisioner?.name) return;
    try {
      if (!owner)
        throw new Error(
          `error getting deleter volume plugin for volume "${volume.metadata.name}": no volume plugin matched`,
        );
      await provisioner!.reclaim(volume);
    } catch (error) {
      const latest = await ignoreNotFound(client.get(resources.persistentVolumes, volume.metadata.name));
      if (!latest || latest.status?.phase === "Failed") return;
      await setPhase(latest, "Failed", undefined, messageOf(error));
      recorder.event(volume, "Warning", "VolumeFailedDelete", messageOf(error));
      return;
    }
    await ignoreNotFound(client.delete(resources.persistentVolumes, volume.metadata.name));
  }

  return createController(deps, {
    name: "persistentvolume-binder",
    concurrency: 1,
    watch({ on, needs, enqueue }) {
      needs(nodes);
      needs(pods);
      const look = (claim: Claim) => enqueue(keyOf(claim));
      const waiting = () => {
        for (const claim of claims.list()) if (claim.status?.phase !== "Bound") look(claim);
      };
      on(claims, {
        add: look,
        update: look,
        delete(claim) {
          for (const volume of volumes.byIndex("claim", keyOf(claim))) enqueue(VOLUME + volume.metadata.name);
        },
      });
      const volumeChanged = (volume: Volume) => {
        enqueue(VOLUME + volume.metadata.name);
        const ref = volume.spec.claimRef;
        if (ref) enqueue(`${ref.namespace}/${ref.name}`);
        else waiting();
      };
      on(volumes, {
        add: volumeChanged,
        update: volumeChanged,
        delete: ({ spec: { claimRef } }) => void (claimRef && enqueue(`${claimRef.namespace}/${claimRef.name}`)),
      });
      on(classes, { add: waiting, update: waiting });
    },
    async reconcile(key) {
      if (key.startsWith(VOLUME)) {
        const volume = volumes.get(undefined, key.slice(VOLUME.length));
        if (volume) await syncVolume(volume);
        return undefined;
      }
      const claim = fromCache(claims, key);
      if (!claim || (claim.metadata.deletionTimestamp && claim.status?.phase !== "Bound" && !claim.spec.volumeName))
        return undefined;
      await syncClaim(claim);
      // what it waits for is told again and again
      return claim.metadata.annotations?.[BIND_COMPLETED] ? undefined : { requeueAfterMs: RESYNC };
    },
  });
}

const IS_DEFAULT = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/** The newest of those that say they are the default; of equally old ones the first by name. */
export function defaultStorageClass(
  classes: readonly DeepReadonly<StorageClass>[],
): DeepReadonly<StorageClass> | undefined {
  const made = ({ metadata }: DeepReadonly<StorageClass>) => metadata.creationTimestamp ?? "";
  return classes
    .filter(({ metadata }) => IS_DEFAULT.some((key) => metadata.annotations?.[key] === "true"))
    .toSorted((a, b) =>
      made(a) === made(b) ? (a.metadata.name < b.metadata.name ? -1 : 1) : made(a) < made(b) ? 1 : -1,
    )[0];
}

function mismatch(claim: Claim, volume: Volume): string {
  if ((volume.spec.storageClassName ?? "") !== (claim.spec.storageClassName ?? ""))
    return "storageClassName does not match";
  if ((volume.spec.volumeMode ?? "Filesystem") !== (claim.spec.volumeMode ?? "Filesystem"))
    return "incompatible volumeMode";
  if (!(claim.spec.accessModes ?? []).every((mode) => volume.spec.accessModes?.includes(mode)))
    return "incompatible accessMode";
  return "requested PV is too small";
}
