import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { LineCounter, parseAllDocuments } from "yaml";
import { CodedError, type DeepReadonly, messageOf } from "#base";
import { type Client, createMapper, type Mapper } from "#client";
import type { ApiObject, Resource } from "#kinds";

/** Objects of a YAML or JSON text with any number of documents; `List`s are taken apart. @throws CodedError `invalid-manifest` */
export function parseManifest(text: string, source: string): ApiObject[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true });
  const objects: ApiObject[] = [];
  for (const document of Array.isArray(documents) ? documents : []) {
    const [error] = document.errors;
    if (error) throw invalid(source, `line ${error.linePos?.[0].line ?? "?"}: ${error.message.split("\n")[0]}`);
    // aliases that expand without bounds are refused by the parser
    const value: unknown = document.toJS({ maxAliasCount: 1000 });
    if (value === null || value === undefined) continue;
    const { line } = lines.linePos(document.range?.[0] ?? 0);
    objects.push(...objectsOf(value, source, line));
  }
  return objects;
}

function objectsOf(value: unknown, source: string, line: number): ApiObject[] {
  const object = value as Partial<ApiObject> & { items?: unknown[] };
  if (typeof value !== "object" || Array.isArray(value)) throw invalid(source, `line ${line}: a document is no object`);
  if (typeof object.apiVersion !== "string" || !object.apiVersion)
    throw invalid(source, `line ${line}: apiVersion not set`);
  if (typeof object.kind !== "string" || !object.kind) throw invalid(source, `line ${line}: kind not set`);
  if (object.kind.endsWith("List") && Array.isArray(object.items))
    return object.items.flatMap((item) => objectsOf(item, source, line));
  return [object as ApiObject];
}

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

function invalid(source: string, why: string): CodedError {
  return new CodedError("invalid-manifest", `error parsing ${source}: ${why}`);
}
