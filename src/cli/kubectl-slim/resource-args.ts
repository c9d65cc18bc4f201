import { groupVersionOf, parseManifest, type ServedResource } from "#client";
import { CodedError } from "#base";
import { type ApiObject, isStatus, StatusError } from "#kinds";
import type { Context } from "./context.ts";
import { CommandError } from "./errors.ts";
import { withoutCarriageReturns } from "./environment.ts";

/** One object, or all of a kind. */
export interface Asked {
  readonly resource: ServedResource;
  /** Undefined: all, or those that a selector takes. */
  readonly name: string | undefined;
  /** Undefined: all namespaces, or the kind has none. */
  readonly namespace: string | undefined;
  /** As it stands in a file. */
  readonly object?: ApiObject;
  readonly source?: string;
}

export interface AskOptions {
  /** A kind without names is fine: with `-l`, `--all`, or for lists. */
  readonly allowAll?: boolean;
}

/** Reads `TYPE NAME…`, `TYPE/NAME…`, `TYPE,TYPE`, or what `-f` names. @throws CommandError in kubectl's words */
export async function askedFor(context: Context, args: readonly string[], options: AskOptions = {}): Promise<Asked[]> {
  const { flags } = context;
  const files = flags.has("filename") ? flags.list("filename") : [];
  if (files.length > 0) {
    if (args.length > 0)
      throw new CommandError(
        "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well",
      );
    return (await readObjects(context, files)).map((item) => ({ ...item }));
  }
  const [first] = args;
  if (first === undefined)
    throw new CommandError(
      "You must provide one or more resources by argument or filename.\nExample resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'",
    );
  if (args.some((arg) => arg.includes("/"))) return asPairs(context, args);
  const resources = await resourcesOf(context, first);
  const names = args.slice(1);
  const at = (resource: ServedResource) => (resource.namespaced ? namespaceOf(context) : undefined);
  if (names.length > 0) {
    if (resources.length > 1) throw new CommandError("you may only specify a single resource type");
    if (flags.has("all-namespaces") && flags.bool("all-namespaces"))
      throw new CommandError("a resource cannot be retrieved by name across all namespaces");
    if (flags.has("selector") && flags.string("selector"))
      throw new CommandError("name cannot be provided when a selector is specified");
    return names.map((name) => ({ resource: resources[0]!, name, namespace: at(resources[0]!) }));
  }
  const selecting = flags.has("selector") && flags.string("selector") !== "";
  const all = flags.has("all") && flags.bool("all");
  const fields = flags.has("field-selector") && flags.string("field-selector") !== "";
  if (!options.allowAll && !selecting && !all && !fields)
    throw new CommandError("resource(s) were provided, but no name was specified");
  return resources.map((resource) => ({ resource, name: undefined, namespace: at(resource) }));
}

function namespaceOf({ flags, namespace }: Context): string | undefined {
  return flags.has("all-namespaces") && flags.bool("all-namespaces") ? undefined : namespace;
}

async function asPairs(context: Context, args: readonly string[]): Promise<Asked[]> {
  const asked: Asked[] = [];
  for (const arg of args) {
    const parts = arg.split("/");
    if (parts.length === 1)
      throw new CommandError(
        "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead of 'kubectl get resource resource/<resource_name>'",
      );
    if (parts.length > 2) throw new CommandError("arguments in resource/name form may not have more than one slash");
    const [kind = "", name = ""] = parts;
    if (!kind || !name) throw new CommandError("arguments in resource/name form must have a single resource and name");
    const [resource] = await resourcesOf(context, kind);
    asked.push({ resource: resource!, name, namespace: resource!.namespaced ? namespaceOf(context) : undefined });
  }
  return asked;
}

/** `pods`, `pods,services`, `all`. */
export async function resourcesOf({ discovery }: Context, words: string): Promise<ServedResource[]> {
  const found: ServedResource[] = [];
  for (const word of words.split(",")) {
    const members = await discovery.category(word);
    for (const resource of members ?? [await discovery.named(word)])
      if (!found.some((one) => one.resource === resource.resource && one.group === resource.group))
        found.push(resource);
  }
  return found;
}

/** Objects of files, directories, URLs and standard input, each with the resource that serves it. */
export async function readObjects(
  context: Context,
  sources: readonly string[],
): Promise<(Asked & { object: ApiObject; source: string; name: string })[]> {
  const items: (Asked & { object: ApiObject; source: string; name: string })[] = [];
  for (const { object, source } of await parseSources(context, sources)) {
    const resource = await resourceOfObject(context, object, source);
    const own = object.metadata?.namespace;
    if (resource.namespaced && own && context.namespaceGiven && own !== context.namespace)
      throw new CommandError(
        `the namespace from the provided object ${JSON.stringify(own)} does not match the namespace ${JSON.stringify(context.namespace)}. You must pass '--namespace=${own}' to perform this operation.`,
      );
    const namespace = resource.namespaced ? (own ?? context.namespace) : undefined;
    items.push({ resource, name: object.metadata?.name ?? "", namespace, object, source });
  }
  return items;
}

async function resourceOfObject({ discovery }: Context, object: ApiObject, source: string): Promise<ServedResource> {
  try {
    return await discovery.ofKind(object.apiVersion, object.kind);
  } catch (error) {
    if (!(error instanceof StatusError) || !isStatus(error, "NotFound")) throw error;
    const { name = "", namespace = "" } = object.metadata ?? {};
    throw new CommandError(
      `resource mapping not found for name: ${JSON.stringify(name)} namespace: ${JSON.stringify(namespace)} from ${JSON.stringify(source)}: ${error.message}\nensure CRDs are installed first`,
    );
  }
}

async function parseSources(
  context: Context,
  sources: readonly string[],
): Promise<{ object: ApiObject; source: string }[]> {
  const { files, path } = context.environment;
  const found: { object: ApiObject; source: string }[] = [];
  const parse = (text: string, source: string) => {
    try {
      for (const object of parseManifest(withoutCarriageReturns(text), source)) found.push({ object, source });
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      throw new CommandError(error.message);
    }
  };
  const walk = (directory: string) => {
    for (const name of [...files.list(directory)].sort()) {
      const full = path.join(directory, name);
      if (files.isDirectory(full)) {
        if (context.flags.bool("recursive")) walk(full);
      } else if (/\.(json|ya?ml)$/.test(name)) parse(files.read(full), full);
    }
  };
  for (const source of sources) {
    if (source === "-") parse(await readAll(context), "STDIN");
    else if (/^https?:\/\//.test(source)) parse(await download(source), source);
    else if (!files.exists(source)) throw new CommandError(`the path ${JSON.stringify(source)} does not exist`);
    else if (files.isDirectory(source)) walk(source);
    else parse(files.read(source), source);
  }
  if (found.length === 0) throw new CommandError(`no objects passed to ${context.command.split(" ").at(-1)}`);
  return found;
}

async function download(url: string): Promise<string> {
  const response = await fetch(url);
  if (!response.ok)
    throw new CommandError(
      `unable to read URL "${url}", server reported ${response.status} ${response.statusText}, status code=${response.status}`,
    );
  return response.text();
}

export async function readAll({ environment }: Context): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of environment.stdin) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString("utf8");
}

/** `pod/web`, `deployment.apps/web` */
export function shortName(
  resource: { readonly group: string; readonly singular?: string; readonly kind: string },
  name: string,
): string {
  const kind = resource.singular || resource.kind.toLowerCase();
  return `${resource.group ? `${kind}.${resource.group}` : kind}/${name}`;
}

export const groupOf = (apiVersion: string): string => groupVersionOf(apiVersion).group;
