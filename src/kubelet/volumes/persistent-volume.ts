import { stat } from "node:fs/promises";
import { type DeepReadonly, hasCode, messageOf } from "#base";
import { type PersistentVolume, type PersistentVolumeClaim, type Pod, resources, type Volume } from "#kinds";
import { checkHostPath } from "./host-path.ts";
import { nodeMatches } from "./node-affinity.ts";
import { giveToGroup } from "./ownership.ts";
import type { MountedVolume } from "./port.ts";
import { type MakeVolume, MountStepError, type VolumeDeps } from "./sources.ts";

/** The claim of a volume cannot be used: told in the kubelet's words for the pod as a whole. */
export class ClaimError extends Error {
  override name = "ClaimError";
}

const GID_ANNOTATION = "pv.beta.kubernetes.io/gid";

/**
 * A volume behind a claim, or behind the claim made for an ephemeral volume. Its persistent volume must be of this machine:
 * `hostPath` or `local`.
 *
 * Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/
 */
export const persistentVolume: MakeVolume = ({ pod: first, volume }, deps) => {
  const namespace = first.metadata.namespace ?? "";
  const ephemeral = volume.ephemeral !== undefined;
  const claimName = ephemeral
    ? `${first.metadata.name}-${volume.name}`
    : (volume.persistentVolumeClaim?.claimName ?? "");
  const readOnly = volume.persistentVolumeClaim?.readOnly ?? false;
  // Read when it is needed: a node may read claims by name, and neither list nor watch them.
  const readClaim = () => deps.client.get(resources.persistentVolumeClaims, claimName, { namespace });
  return {
    async setUp(pod) {
      const bound = await boundVolume(pod, claimName, { ephemeral, readClaim }, deps);
      const mode = bound.spec.volumeMode ?? "Filesystem";
      checkMode(pod, volume, mode);
      const mounted = await open(bound, mode, pod, deps);
      const group = Number(bound.metadata.annotations?.[GID_ANNOTATION] ?? Number.NaN);
      return { ...mounted, readOnly: readOnly || mounted.readOnly, ...(Number.isInteger(group) ? { group } : {}) };
    },
  };
};

async function boundVolume(
  pod: DeepReadonly<Pod>,
  claimName: string,
  source: { ephemeral: boolean; readClaim(): Promise<DeepReadonly<PersistentVolumeClaim>> },
  deps: VolumeDeps,
): Promise<DeepReadonly<PersistentVolume>> {
  const where = `error processing PVC ${pod.metadata.namespace}/${claimName}`;
  const claim = await source.readClaim().catch((error: unknown) => {
    throw new ClaimError(`${where}: failed to fetch PVC from API server: ${messageOf(error)}`, { cause: error });
  });
  const fault = claimFault(claim);
  if (fault) throw new ClaimError(`${where}: ${fault}`);
  if (source.ephemeral && !isOwnedBy(claim, pod)) {
    throw new ClaimError(
      `PVC ${pod.metadata.namespace}/${claimName} was not created for pod ${pod.metadata.namespace}/${pod.metadata.name} (pod is not owner)`,
    );
  }
  const name = claim.spec.volumeName ?? "";
  const bound = await deps.client.get(resources.persistentVolumes, name).catch((error: unknown) => {
    throw new ClaimError(`${where}: failed to fetch PV ${name} from API server: ${messageOf(error)}`, { cause: error });
  });
  const reference = bound.spec.claimRef;
  if (!reference) {
    throw new ClaimError(
      `${where}: found PV object ${name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`,
    );
  }
  if (reference.uid !== claim.metadata.uid) {
    throw new ClaimError(
      `${where}: found PV object ${name} but its pv.Spec.ClaimRef.UID ${reference.uid} does not point to claim.UID ${claim.metadata.uid}`,
    );
  }
  return bound;
}

function claimFault(claim: DeepReadonly<PersistentVolumeClaim>): string | undefined {
  const { deletionTimestamp, finalizers = [] } = claim.metadata;
  if (deletionTimestamp && !finalizers.includes("kubernetes.io/pvc-protection")) return "PVC is being deleted";
  if (claim.status?.phase !== "Bound") return "PVC is not bound";
  return claim.spec.volumeName ? undefined : "PVC has empty pvc.Spec.VolumeName";
}

const isOwnedBy = (claim: DeepReadonly<PersistentVolumeClaim>, pod: DeepReadonly<Pod>) =>
  (claim.metadata.ownerReferences ?? []).some((owner) => owner.controller && owner.uid === pod.metadata.uid);

function checkMode(pod: DeepReadonly<Pod>, volume: DeepReadonly<Volume>, mode: string): void {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers, ...(pod.spec.ephemeralContainers ?? [])];
  const wrong = mode === "Block" ? "volumeMounts" : "volumeDevices";
  if (all.some((container) => (container[wrong] ?? []).some(({ name }) => name === volume.name))) {
    throw new ClaimError(`volume ${volume.name} has volumeMode ${mode}, but is specified in ${wrong}`);
  }
}

async function open(
  bound: DeepReadonly<PersistentVolume>,
  mode: string,
  pod: DeepReadonly<Pod>,
  deps: VolumeDeps,
): Promise<MountedVolume> {
  const { hostPath, local, nodeAffinity } = bound.spec;
  const name = bound.metadata.name;
  const node = deps.nodeLabels();
  if (nodeAffinity?.required && !nodeMatches(nodeAffinity.required, node)) {
    throw new MountStepError("MountVolume.NodeAffinity check failed", name, "no matching NodeSelectorTerms");
  }
  if (hostPath) {
    await checkHostPath(hostPath.path, hostPath.type ?? "").catch((error: unknown) => {
      throw new MountStepError("MountVolume.SetUp failed", name, messageOf(error), { cause: error });
    });
    return { hostPath: hostPath.path, readOnly: false, createMissing: !hostPath.type };
  }
  if (local) return openLocal(local.path, name, mode, pod, deps);
  const type = Object.keys(bound.spec).find((field) => !PLAIN_FIELDS.has(field)) ?? "unknown";
  throw new MountStepError("MountVolume.SetUp failed", name, `volumes of type ${type} are not supported on this node`);
}

async function openLocal(
  path: string,
  name: string,
  mode: string,
  pod: DeepReadonly<Pod>,
  deps: VolumeDeps,
): Promise<MountedVolume> {
  const found = await stat(path).catch((error: unknown) => {
    const why = hasCode(error, "ENOENT") ? `path "${path}" does not exist` : messageOf(error);
    throw new MountStepError("MountVolume.NewMounter initialization failed", name, why, { cause: error });
  });
  if (mode === "Block") {
    if (found.isBlockDevice()) return { device: path, readOnly: false };
    throw new MountStepError("MapVolume.SetUpDevice failed", name, `${path} is not a block device`);
  }
  if (!found.isDirectory()) {
    throw new MountStepError("MountVolume.SetUp failed", name, `local volume ${path} is not a directory`);
  }
  const { fsGroup: group, fsGroupChangePolicy: policy } = pod.spec.securityContext ?? {};
  if (group !== undefined) {
    await giveToGroup(path, { group, readOnly: false, logger: deps.logger, ...(policy ? { policy } : {}) });
  }
  return { hostPath: path, readOnly: false };
}

/** Fields of a persistent volume's spec that name no type. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  "accessModes",
  "capacity",
  "claimRef",
  "mountOptions",
  "nodeAffinity",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "volumeAttributesClassName",
  "volumeMode",
]);
