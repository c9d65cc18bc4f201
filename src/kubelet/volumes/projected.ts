import type { DeepReadonly } from "#base";
import { type ConfigMap, isStatus, type Pod, resources, type Secret, type VolumeProjection } from "#kinds";
import { effectiveSecurityContext } from "../container-config/security.ts";
import { type FileProjection, writeAtomically } from "./atomic-writer.ts";
import { makeNestedMountPoints } from "./nested-mount-points.ts";
import { memoryDirectory, memorySize, openDirectory } from "./empty-dir.ts";
import type { ObjectUse } from "./object-cache.ts";
import { giveToGroup } from "./ownership.ts";
import { configMapFiles, downwardFiles, secretFiles } from "./payload.ts";
import type { MountedVolume } from "./port.ts";
import type { MakeVolume, VolumeDeps, VolumeSource } from "./sources.ts";

/** Files from the API: what `configMap`, `secret`, `downwardAPI` and `projected` volumes are made of. */
interface FilesOf {
  readonly type: string;
  /** Kept in memory: secrets must not reach the disk. */
  readonly memory: boolean;
  readonly followsPod: boolean;
  files(pod: DeepReadonly<Pod>): Promise<Map<string, FileProjection>>;
  renewAt?(): number | undefined;
  dispose?(): void;
}

const DEFAULT_MODE = 0o644;

/** Source: https://kubernetes.io/docs/concepts/storage/volumes/#configmap */
export const configMapVolume: MakeVolume = (context, deps) => {
  const { name = "", items, optional = false, defaultMode = DEFAULT_MODE } = context.volume.configMap ?? {};
  const use = deps.objects.use(CONFIG_MAPS, context.pod.metadata.namespace ?? "", name, context.changed);
  return volumeOfFiles(context, deps, {
    type: "configmap",
    memory: false,
    followsPod: false,
    files: async () => configMapFiles(await present(use, optional), { items, defaultMode, optional }),
    dispose: () => use[Symbol.dispose](),
  });
};

/** Source: https://kubernetes.io/docs/concepts/storage/volumes/#secret */
export const secretVolume: MakeVolume = (context, deps) => {
  const { secretName = "", items, optional = false, defaultMode = DEFAULT_MODE } = context.volume.secret ?? {};
  const use = deps.objects.use(SECRETS, context.pod.metadata.namespace ?? "", secretName, context.changed);
  return volumeOfFiles(context, deps, {
    type: "secret",
    memory: true,
    followsPod: false,
    files: async () => secretFiles(await present(use, optional), { items, defaultMode, optional }),
    dispose: () => use[Symbol.dispose](),
  });
};

/** Source: https://kubernetes.io/docs/concepts/storage/volumes/#downwardapi */
export const downwardVolume: MakeVolume = (context, deps) => {
  const { items = [], defaultMode = DEFAULT_MODE } = context.volume.downwardAPI ?? {};
  return volumeOfFiles(context, deps, {
    type: "downward-api",
    memory: true,
    followsPod: true,
    files: async (pod) => downwardFiles(items, pod, { defaultMode, allocatable: deps.allocatable() }),
  });
};

/** Source: https://kubernetes.io/docs/concepts/storage/projected-volumes/ */
export const projectedVolume: MakeVolume = (context, deps) => {
  const { sources = [], defaultMode = DEFAULT_MODE } = context.volume.projected ?? {};
  const parts = sources.map((source) => projectedPart(source, context, deps, defaultMode));
  return volumeOfFiles(context, deps, {
    type: "projected",
    memory: true,
    followsPod: sources.some((source) => source.downwardAPI),
    async files(pod) {
      const results = await Promise.allSettled(parts.map((part) => part.files(pod)));
      const faults = results.flatMap((result) => (result.status === "rejected" ? [text(result.reason)] : []));
      if (faults.length > 0) throw new Error(aggregate(faults));
      return new Map(results.flatMap((result) => (result.status === "fulfilled" ? [...result.value] : [])));
    },
    renewAt: () => {
      const times = parts.flatMap((part) => part.renewAt?.() ?? []);
      return times.length > 0 ? Math.min(...times) : undefined;
    },
    dispose: () => {
      for (const part of parts) part.dispose?.();
    },
  });
};

type Part = Pick<FilesOf, "files" | "renewAt" | "dispose">;

function projectedPart(
  source: DeepReadonly<VolumeProjection>,
  context: Parameters<MakeVolume>[0],
  deps: VolumeDeps,
  defaultMode: number,
): Part {
  const namespace = context.pod.metadata.namespace ?? "";
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle } = source;
  if (configMap) {
    const { name = "", items, optional = false } = configMap;
    const use = deps.objects.use(CONFIG_MAPS, namespace, name, context.changed);
    return {
      files: async () => configMapFiles(await present(use, optional), { items, defaultMode, optional }),
      dispose: () => use[Symbol.dispose](),
    };
  }
  if (secret) {
    const { name = "", items, optional = false } = secret;
    const use = deps.objects.use(SECRETS, namespace, name, context.changed);
    return {
      files: async () => secretFiles(await present(use, optional), { items, defaultMode, optional }),
      dispose: () => use[Symbol.dispose](),
    };
  }
  if (downwardAPI) {
    const items = downwardAPI.items ?? [];
    return { files: async (pod) => downwardFiles(items, pod, { defaultMode, allocatable: deps.allocatable() }) };
  }
  if (serviceAccountToken) return tokenPart(serviceAccountToken, deps, defaultMode);
  if (clusterTrustBundle) {
    return {
      async files(pod) {
        const data = Buffer.from(await deps.trustBundles.anchors(clusterTrustBundle));
        return new Map([[clusterTrustBundle.path, credential(data, pod, defaultMode)]]);
      },
    };
  }
  return {
    files: () =>
      Promise.reject(new Error(`projections of ${Object.keys(source).join(", ")} are not supported on this node`)),
  };
}

function tokenPart(
  request: DeepReadonly<NonNullable<VolumeProjection["serviceAccountToken"]>>,
  deps: VolumeDeps,
  defaultMode: number,
): Part {
  let renewAt: number | undefined;
  return {
    async files(pod) {
      const token = await deps.tokens.token(pod, request);
      renewAt = token.renewAt;
      return new Map([[request.path, credential(Buffer.from(token.token), pod, defaultMode)]]);
    },
    renewAt: () => renewAt,
  };
}

/** A credential is only for the pod's user or group, where the pod says which that is. */
function credential(data: Buffer, pod: DeepReadonly<Pod>, defaultMode: number): FileProjection {
  const user = commonUser(pod);
  const narrow = user !== undefined || pod.spec.securityContext?.fsGroup !== undefined;
  return { data, mode: narrow ? 0o600 : defaultMode, ...(user === undefined ? {} : { user }) };
}

/** The user of all containers, when every one of them names the same. */
function commonUser(pod: DeepReadonly<Pod>): number | undefined {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const users = [...initContainers, ...containers, ...ephemeralContainers].map(
    (container) => effectiveSecurityContext(pod, container).runAsUser,
  );
  return users.every((user) => user === users[0]) ? users[0] : undefined;
}

function volumeOfFiles(
  { pod: first, volume, directory }: Parameters<MakeVolume>[0],
  deps: VolumeDeps,
  source: FilesOf,
): VolumeSource {
  const path = directory.volume(source.type, volume.name);
  return {
    followsPod: source.followsPod,
    async setUp(pod): Promise<MountedVolume> {
      const files = await source.files(pod);
      if (source.memory)
        await memoryDirectory(path, memorySize(pod, undefined, deps.allocatable().memory), deps.mounts);
      else await openDirectory(path);
      await makeNestedMountPoints(volume.name, path, first);
      const group = pod.spec.securityContext?.fsGroup;
      const own = async () => {
        if (group !== undefined) await giveToGroup(path, { group, readOnly: true, logger: deps.logger });
      };
      const written = await writeAtomically(path, files, {
        clock: deps.clock,
        random: deps.random,
        beforePublish: own,
      });
      // The links made after publishing belong to the group too.
      if (written) await own();
      return { hostPath: path, readOnly: true };
    },
    ...(source.renewAt ? { renewAt: source.renewAt } : {}),
    ...(source.dispose ? { dispose: source.dispose } : {}),
  };
}

/** Undefined: it is not there and need not be. */
async function present<T>(use: ObjectUse<T>, optional: boolean): Promise<DeepReadonly<T> | undefined> {
  try {
    return await use.get();
  } catch (error) {
    if (optional && isStatus(error, "NotFound")) return undefined;
    throw error;
  }
}

/** Several errors as one text: `[a, b]`, each once. */
function aggregate(faults: readonly string[]): string {
  const once = [...new Set(faults)];
  return once.length === 1 ? (once[0] as string) : `[${once.join(", ")}]`;
}

const text = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** The generated types are closed; the cache wants objects that may have any field. */
const CONFIG_MAPS = resources.configMaps as typeof resources.configMaps & { object?: ConfigMap };
const SECRETS = resources.secrets as typeof resources.secrets & { object?: Secret };
