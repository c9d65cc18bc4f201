import type { DeepReadonly } from "#base";
import {
  isStatus,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type StorageClass,
} from "#kinds";
import type { ControllerDeps } from "../runtime/controller.ts";
import { PROVISIONED_BY } from "./binder.ts";

/** Makes and unmakes volumes of the classes that name it. */
export interface Provisioner {
  readonly name: string;
  /** Makes the volume of a claim, on a node. Doing it again is harmless. */
  provision(
    claim: DeepReadonly<PersistentVolumeClaim>,
    storageClass: DeepReadonly<StorageClass>,
    node: DeepReadonly<Node> | undefined,
  ): Promise<void>;
  /** Removes the data of a released volume. */
  reclaim(volume: DeepReadonly<PersistentVolume>): Promise<void>;
}

/** Where volumes of the class `local-path` live. */
export interface LocalPathOptions {
  /** Absolute; each volume has a directory in it, which the node makes when a pod first uses it. */
  root: string;
  /** Removes such a directory with all in it; absent ones are no error. Only ever called with a path below `root`. */
  removeDirectory(path: string): Promise<void>;
}

const NAME = "rancher.io/local-path";

/** The default class: a directory on the node where the first pod runs. */
export const localPathClass: StorageClass = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "local-path", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
  provisioner: NAME,
  reclaimPolicy: "Delete",
  volumeBindingMode: "WaitForFirstConsumer",
};

export function createLocalPathProvisioner(deps: ControllerDeps, options: LocalPathOptions): Provisioner {
  const recorder = deps.recorder(NAME);
  return {
    name: NAME,
    async provision(claim, storageClass, node) {
      if (!node) throw new Error("configuration error, no node was specified");
      if (claim.spec.selector) throw new Error("claim.Spec.Selector is not supported");
      if (claim.spec.volumeMode === "Block") throw new Error(`${NAME} does not support block volume provisioning`);
      const { namespace = "", name, uid = "", resourceVersion = "" } = claim.metadata;
      recorder.event(
        claim,
        "Normal",
        "Provisioning",
        `External provisioner is provisioning volume for claim "${namespace}/${name}"`,
      );
      const hostname = node.metadata.labels?.["kubernetes.io/hostname"] ?? node.metadata.name;
      const volumeName = `pvc-${uid}`;
      const volume: PersistentVolume = {
        apiVersion: "v1",
        kind: "PersistentVolume",
        metadata: { name: volumeName, annotations: { [PROVISIONED_BY]: NAME } },
        spec: {
          capacity: { storage: claim.spec.resources?.requests?.storage ?? "0" },
          accessModes: [...(claim.spec.accessModes ?? [])],
          claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid, resourceVersion },
          persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? "Delete",
          storageClassName: storageClass.metadata.name,
          volumeMode: "Filesystem",
          hostPath: { path: `${options.root}/${volumeName}_${namespace}_${name}`, type: "DirectoryOrCreate" },
          nodeAffinity: {
            required: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [hostname] }] },
              ],
            },
          },
        },
      };
      try {
        await deps.client.create(resources.persistentVolumes, volume);
      } catch (error) {
        if (isStatus(error, "AlreadyExists")) return;
        throw error;
      }
      recorder.event(claim, "Normal", "ProvisioningSucceeded", `Successfully provisioned volume ${volumeName}`);
    },
    async reclaim(volume) {
      const path = volume.spec.hostPath?.path ?? "";
      const inside =
        path.startsWith(`${options.root}/`) &&
        !path.slice(options.root.length + 1).includes("/") &&
        !path.endsWith("..");
      if (!inside) throw new Error(`path ${path} of volume ${volume.metadata.name} is not below ${options.root}`);
      await options.removeDirectory(path);
    },
  };
}

/** Makes the class when the cluster has none of its name. */
export async function ensureLocalPathClass(deps: ControllerDeps): Promise<void> {
  try {
    await deps.client.create(resources.storageClasses, localPathClass);
  } catch (error) {
    if (!isStatus(error, "AlreadyExists")) throw error;
  }
}
