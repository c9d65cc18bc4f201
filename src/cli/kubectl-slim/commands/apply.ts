import { pathOf, type Client } from "#client";
import { type ApiObject, isStatus, type Resource, schemaNameOf } from "#kinds";
import {
  ALL_NAMESPACES,
  type CommandSpec,
  type Context,
  DRY_RUN,
  FILENAME,
  flag,
  OUTPUT,
  RECURSIVE,
  SELECTOR,
  SHOW_MANAGED,
  TEMPLATE,
} from "../context.ts";
import { CommandError } from "../errors.ts";
import { toCompactJson, toJson } from "../printers/json.ts";
import { printResult } from "../printers/objects.ts";
import { toYaml } from "../printers/yaml.ts";
import { askedFor, readObjects } from "../resource-args.ts";
import { threeWayMerge } from "../three-way-merge.ts";

export const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

export const apply: CommandSpec = {
  name: "apply",
  usage: "apply -f FILENAME",
  short: "Apply a configuration to a resource by file name or stdin",
  flags: [
    FILENAME,
    RECURSIVE,
    OUTPUT,
    SELECTOR,
    ALL_NAMESPACES,
    DRY_RUN,
    SHOW_MANAGED,
    TEMPLATE,
    flag("field-manager", "string", "owner of the fields", { default: "kubectl-client-side-apply" }),
    flag("server-side", "bool", "the server merges"),
    flag("force-conflicts", "bool", "take over fields of other owners"),
    flag("validate", "string", "strict, warn or ignore", { default: "strict", bare: "strict" }),
    flag("overwrite", "bool", "what was changed otherwise is put back", { default: true }),
    flag("force", "bool", "delete and create what can't be changed"),
    flag("prune", "bool", "not supported"),
    flag("wait", "bool", "wait until deleted objects are gone"),
    flag("all", "bool", "with --prune"),
  ],
  run: runApply,
  subcommands: [
    {
      name: "view-last-applied",
      usage: "apply view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)",
      short: "View the latest last-applied-configuration annotations of a resource/object",
      flags: [FILENAME, RECURSIVE, SELECTOR, flag("output", "string", "yaml or json", { short: "o", default: "yaml" })],
      run: viewLastApplied,
    },
  ],
};

async function viewLastApplied(context: Context): Promise<void> {
  for (const { resource, name, namespace } of await askedFor(context, context.args)) {
    const object = (await context.client.get(resource, name ?? "", { namespace })) as ApiObject;
    const text = object.metadata.annotations?.[LAST_APPLIED];
    if (text === undefined)
      throw new CommandError(`no last-applied-configuration annotation found on resource: ${name}`);
    const value: unknown = JSON.parse(text);
    context.out(context.flags.string("output") === "json" ? toJson(value, 2) : toYaml(value));
  }
}

async function runApply(context: Context): Promise<void> {
  const { flags, args } = context;
  if (flags.list("filename").length === 0) throw new CommandError("must specify one of -f and -k");
  if (args.length > 0)
    throw new CommandError(`Unexpected args: [${args.join(" ")}]\nSee '${context.command} -h' for help and examples`, {
      bare: true,
    });
  if (flags.bool("prune")) throw new CommandError("--prune is not supported by kubectl-slim");
  const items = await readObjects(context, flags.list("filename"));
  const errors: unknown[] = [];
  for (const item of items) {
    try {
      const { object, operation } = flags.bool("server-side")
        ? await applyOnServer(context, item)
        : await applyHere(context, item);
      printResult(context, withKind(object, item.resource), operation);
    } catch (error) {
      errors.push(error);
    }
  }
  throwAll(errors);
}

/** Several errors are told one a line. */
export function throwAll(errors: readonly unknown[]): void {
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1) throw new AggregateError(errors);
}

export function withKind(object: ApiObject, resource: Resource): ApiObject {
  if (object.kind) return object;
  return {
    ...object,
    kind: resource.kind,
    apiVersion: resource.group ? `${resource.group}/${resource.version}` : resource.version,
  };
}

interface Item {
  readonly resource: Resource;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly object: ApiObject;
}

async function applyOnServer({ client, flags }: Context, { resource, name, namespace, object }: Item) {
  const manager = flags.given("field-manager") ? flags.string("field-manager") : "kubectl";
  const result = (await client.request({
    method: "PATCH",
    path: pathOf(resource, { namespace, name }),
    query: {
      fieldManager: manager,
      fieldValidation: validation(flags),
      ...(flags.bool("force-conflicts") ? { force: "true" } : {}),
      ...dryRunQuery(flags),
    },
    body: object,
    headers: { "content-type": "application/apply-patch+yaml" },
  })) as ApiObject;
  return { object: result, operation: "serverside-applied" };
}

export function validation(flags: Context["flags"]): string {
  const value = flags.string("validate");
  return { true: "Strict", strict: "Strict", warn: "Warn", false: "Ignore", ignore: "Ignore" }[value] ?? "Strict";
}

export function dryRunQuery(flags: Context["flags"]): { dryRun?: string } {
  return flags.string("dry-run") === "server" ? { dryRun: "All" } : {};
}

/** The object with its own text in an annotation, so that the next apply knows what was taken away. */
export function withLastApplied(object: ApiObject): ApiObject {
  const { [LAST_APPLIED]: _old, ...annotations } = object.metadata.annotations ?? {};
  const bare = { ...object, metadata: { ...object.metadata, annotations } };
  const text = `${toCompactJson(bare)}\n`;
  return { ...object, metadata: { ...object.metadata, annotations: { ...annotations, [LAST_APPLIED]: text } } };
}

async function applyHere(context: Context, { resource, name, namespace, object }: Item) {
  const { client, flags } = context;
  const own = namespace ? { ...object, metadata: { ...object.metadata, namespace } } : object;
  const modified = withLastApplied(own);
  const query = {
    fieldManager: flags.string("field-manager"),
    fieldValidation: validation(flags),
    ...dryRunQuery(flags),
  };
  const clientOnly = ["client", "unchanged"].includes(flags.string("dry-run")) && flags.given("dry-run");
  const current = await readCurrent(client, resource, namespace, name);
  if (!current) {
    if (clientOnly) return { object: modified, operation: "created" };
    const created = (await client.request({
      method: "POST",
      path: pathOf(resource, { namespace }),
      query,
      body: modified,
    })) as ApiObject;
    return { object: created, operation: "created" };
  }
  if (current.metadata.annotations?.[LAST_APPLIED] === undefined)
    context.err(
      `Warning: resource ${plural(resource)}/${name} is missing the ${LAST_APPLIED} annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.\n`,
    );
  if (clientOnly) return { object: modified, operation: "configured" };
  const original = JSON.parse(current.metadata.annotations?.[LAST_APPLIED] ?? "{}") as ApiObject;
  const schema = schemaNameOf(resource.group, resource.version, resource.kind);
  const { patch, strategic } = threeWayMerge(original, modified, current, schema);
  if (Object.keys(patch).length === 0) return { object: current, operation: "unchanged" };
  const patched = (await client.request({
    method: "PATCH",
    path: pathOf(resource, { namespace, name }),
    query,
    body: patch,
    headers: { "content-type": strategic ? "application/strategic-merge-patch+json" : "application/merge-patch+json" },
  })) as ApiObject;
  return { object: patched, operation: "configured" };
}

const plural = ({ resource, group }: Resource) => (group ? `${resource}.${group}` : resource);

async function readCurrent(
  client: Client,
  resource: Resource,
  namespace: string | undefined,
  name: string,
): Promise<ApiObject | undefined> {
  try {
    return (await client.get(resource, name, { namespace })) as ApiObject;
  } catch (error) {
    if (isStatus(error, "NotFound") && name !== "") return undefined;
    throw error;
  }
}
