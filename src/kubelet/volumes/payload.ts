import { normalize } from "node:path";
import type { DeepReadonly } from "#base";
import type { ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret } from "#kinds";
import { metadataField } from "../env/field-path.ts";
import { containerNamed, resourceField } from "../env/resource-field.ts";
import type { FileProjection } from "./atomic-writer.ts";

/**
 * Files of a config map: all keys under their own names, or the `items` at their paths.
 *
 * @throws Error `configmap references non-existent config key: …`
 */
export function configMapFiles(
  configMap: DeepReadonly<ConfigMap> | undefined,
  options: ProjectionOptions,
): Map<string, FileProjection> {
  const data = new Map<string, Buffer>();
  for (const [key, text] of Object.entries(configMap?.data ?? {})) data.set(key, Buffer.from(text));
  for (const [key, base64] of Object.entries(configMap?.binaryData ?? {})) data.set(key, Buffer.from(base64, "base64"));
  return select(data, options, "configmap references non-existent config key");
}

/**
 * Files of a secret.
 *
 * @throws Error `references non-existent secret key: …`
 */
export function secretFiles(
  secret: DeepReadonly<Secret> | undefined,
  options: ProjectionOptions,
): Map<string, FileProjection> {
  const data = new Map(
    Object.entries(secret?.data ?? {}).map(([key, base64]) => [key, Buffer.from(base64, "base64")] as const),
  );
  return select(data, options, "references non-existent secret key");
}

export interface ProjectionOptions {
  readonly items?: readonly DeepReadonly<KeyToPath>[] | undefined;
  readonly defaultMode: number;
  /** Missing keys are left out. */
  readonly optional: boolean;
}

function select(
  data: ReadonlyMap<string, Buffer>,
  { items = [], defaultMode, optional }: ProjectionOptions,
  missing: string,
): Map<string, FileProjection> {
  const files = new Map<string, FileProjection>();
  if (items.length === 0) {
    for (const [key, value] of data) files.set(key, { data: value, mode: defaultMode });
    return files;
  }
  for (const { key, path, mode } of items) {
    const value = data.get(key);
    if (value !== undefined) files.set(path, { data: value, mode: mode ?? defaultMode });
    else if (!optional) throw new Error(`${missing}: ${key}`);
  }
  return files;
}

/**
 * Files of the downward API.
 *
 * @throws Error for a field that there is not
 */
export function downwardFiles(
  items: readonly DeepReadonly<DownwardAPIVolumeFile>[],
  pod: DeepReadonly<Pod>,
  options: { defaultMode: number; allocatable: Readonly<Record<string, string>> },
): Map<string, FileProjection> {
  const files = new Map<string, FileProjection>();
  for (const { path, fieldRef, resourceFieldRef, mode } of items) {
    const text = fieldRef
      ? metadataField(pod, fieldRef.fieldPath)
      : resourceFieldRef
        ? resourceField(
            resourceFieldRef,
            pod,
            containerNamed(pod, resourceFieldRef.containerName ?? ""),
            options.allocatable,
          )
        : "";
    files.set(normalize(path), { data: Buffer.from(text), mode: mode ?? options.defaultMode });
  }
  return files;
}
