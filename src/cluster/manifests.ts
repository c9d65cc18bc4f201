import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { CodedError, type DeepReadonly, messageOf } from "#base";
import { type Client, createMapper, type Mapper, parseManifest } from "#client";
import type { ApiObject, Resource } from "#kinds";

/** Reads a file, the `.yaml`, `.yml` and `.json` files of a directory in order of name, an http(s) URL, or `-` (`stdin`). */
export async function readManifests(source: string, stdin: () => Promise<string>): Promise<ApiObject[]> {
  if (source === "-") return parseManifest(await stdin(), "standard input");
  if (/^https?:\/\//.test(source)) {
    const response = await fetch(source, { signal: AbortSignal.timeout(30_000) }).catch((cause: unknown) => {
      throw new CodedError("unreadable-manifest", `cannot fetch ${source}: ${messageOf(cause)}`, { cause });
    });
    if (!response.ok)
      throw new CodedError(
        "unreadable-manifest",
        `unable to read URL "${source}", server reported ${response.status} ${response.statusText}`,
      );
    return parseManifest(await response.text(), source);
  }
  const info = await stat(source).catch(() => {
    throw new CodedError("unreadable-manifest", `the path "${source}" does not exist`);
  });
  if (!info.isDirectory()) return parseManifest(await readFile(source, "utf8"), source);
  const names = (await readdir(source)).filter((name) => /\.(ya?ml|json)$/.test(name)).sort();
  const objects: ApiObject[] = [];
  for (const name of names)
    objects.push(...parseManifest(await readFile(join(source, name), "utf8"), join(source, name)));
  return objects;
}

export interface Applied {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly object: DeepReadonly<ApiObject>;
}

/**
 * Applies objects on the server's side, namespaces and definitions first; a kind that a CustomResourceDefinition of the
 * same call brings is waited for. @throws StatusError of the first object that is refused
 */
export async function applyObjects(
  client: Client,
  objects: readonly ApiObject[],
  options: {
    fieldManager: string;
    namespace: string;
    retry: <T>(call: () => Promise<T>) => Promise<T>;
    mapper?: Mapper;
  },
): Promise<Applied[]> {
  const mapper = options.mapper ?? createMapper(client);
  const applied: Applied[] = [];
  for (const object of [...objects].sort((a, b) => rank(a) - rank(b))) {
    const resource = await options.retry(() => mapper.resourceOf(object.apiVersion, object.kind));
    const namespace = resource.namespaced ? (object.metadata?.namespace ?? options.namespace) : undefined;
    const { fieldManager } = options;
    const result = object.metadata?.name
      ? await client.apply(resource, object, { fieldManager, force: true, ...(namespace ? { namespace } : {}) })
      : await client.create(resource, object, { fieldManager, ...(namespace ? { namespace } : {}) });
    applied.push({ resource, namespace, object: result });
  }
  return applied;
}

function rank(object: ApiObject): number {
  if (object.kind === "Namespace") return 0;
  if (object.kind === "CustomResourceDefinition") return 1;
  return ["ConfigMap", "Secret", "ServiceAccount", "PersistentVolume", "StorageClass", "PriorityClass"].includes(
    object.kind,
  )
    ? 2
    : 3;
}
