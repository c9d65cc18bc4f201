import { pathOf } from "#client";
import { deepEqual } from "#base";
import type { ApiObject, Resource } from "#kinds";
import { parse } from "yaml";
import {
  ALL_NAMESPACES,
  type CommandSpec,
  type Context,
  DRY_RUN,
  FIELD_MANAGER,
  FIELD_SELECTOR,
  FILENAME,
  flag,
  OUTPUT,
  RECURSIVE,
  SELECTOR,
  SHOW_MANAGED,
  TEMPLATE,
} from "../context.ts";
import { CommandError } from "../errors.ts";
import { printResult } from "../printers/objects.ts";
import { type Asked, askedFor } from "../resource-args.ts";
import { dryRunQuery, throwAll, withKind } from "./apply.ts";
import { selectors } from "./get.ts";

const COMMON = [FILENAME, RECURSIVE, OUTPUT, DRY_RUN, TEMPLATE, SHOW_MANAGED];

const PATCH_TYPES: Readonly<Record<string, string>> = {
  strategic: "application/strategic-merge-patch+json",
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
};

export const patch: CommandSpec = {
  name: "patch",
  usage: "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]",
  short: "Update fields of a resource",
  flags: [
    ...COMMON,
    FIELD_MANAGER("kubectl-patch"),
    flag("patch", "string", "the patch, JSON or YAML", { short: "p" }),
    flag("patch-file", "string", "file of the patch"),
    flag("type", "string", "json, merge or strategic", { default: "strategic" }),
    flag("subresource", "string", "status, scale, …"),
    flag("local", "bool", "not supported"),
  ],
  async run(context) {
    const { flags, args, environment } = context;
    const text = flags.string("patch-file")
      ? environment.files.read(flags.string("patch-file"))
      : flags.string("patch");
    if (!text) throw new CommandError("must specify --patch or --patch-file containing the contents of the patch");
    const type = PATCH_TYPES[flags.string("type").toLowerCase()];
    if (!type)
      throw new CommandError(
        `--type must be one of [json merge strategic], not ${JSON.stringify(flags.string("type"))}`,
      );
    let body: unknown;
    try {
      body = parse(text);
    } catch (error) {
      throw new CommandError(`unable to parse ${JSON.stringify(text)}: ${(error as Error).message.split("\n")[0]}`);
    }
    for (const asked of await askedFor(context, args)) {
      const before = (await readOne(context, asked)) as ApiObject;
      const after = await send(context, asked, type, body);
      printResult(
        context,
        after,
        deepEqual(withoutVersion(before), withoutVersion(after)) ? "patched (no change)" : "patched",
      );
    }
  },
};

const withoutVersion = (object: ApiObject) => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion: "", managedFields: [] },
});

async function readOne({ client }: Context, { resource, name, namespace }: Asked): Promise<ApiObject> {
  return withKind((await client.get(resource, name ?? "", { namespace })) as ApiObject, resource);
}

async function send(
  context: Context,
  { resource, name, namespace }: Asked,
  type: string,
  body: unknown,
): Promise<ApiObject> {
  const { client, flags } = context;
  const subresource = flags.has("subresource") ? flags.string("subresource") : "";
  if (["client", "unchanged"].includes(flags.string("dry-run"))) return readOne(context, { resource, name, namespace });
  const answer = (await client.request({
    method: "PATCH",
    path: pathOf(resource, { namespace, name: name ?? "", ...(subresource ? { subresource } : {}) }),
    query: { fieldManager: flags.string("field-manager"), ...dryRunQuery(flags) },
    body,
    headers: { "content-type": type },
  })) as ApiObject;
  return withKind(answer, resource);
}

/** `label` and `annotate`: pairs to set, keys with a dash behind to take away. */
function metadataCommand(name: "label" | "annotate", field: "labels" | "annotations", done: string): CommandSpec {
  return {
    name,
    usage: `${name} [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N`,
    short: `Update the ${field} on a resource`,
    flags: [
      ...COMMON,
      FIELD_MANAGER(`kubectl-${name}`),
      SELECTOR,
      FIELD_SELECTOR,
      ALL_NAMESPACES,
      flag("all", "bool", "all of the kind"),
      flag("overwrite", "bool", "replace values that are there"),
      flag("list", "bool", "show them"),
      flag("resource-version", "string", "only on this version"),
    ],
    async run(context) {
      const { flags, args } = context;
      const at = args.findIndex((arg) => /^[^=]+=|^[^=]+-$/.test(arg));
      const pairs = at < 0 ? [] : args.slice(at);
      if (pairs.length === 0 && !flags.bool("list"))
        throw new CommandError(`at least one ${name === "label" ? "label" : "annotation"} update is required`);
      const wanted = Object.fromEntries(
        pairs.map((pair) =>
          pair.includes("=")
            ? [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]
            : [pair.slice(0, -1), null],
        ),
      );
      const errors: unknown[] = [];
      for (const target of await targetsOf(context, at < 0 ? args : args.slice(0, at))) {
        try {
          await change(context, target, wanted);
        } catch (error) {
          errors.push(error);
        }
      }
      throwAll(errors);
    },
  };

  async function change(context: Context, target: Asked, wanted: Record<string, string | null>): Promise<void> {
    const { flags } = context;
    const object = await readOne(context, target);
    const now = object.metadata[field] ?? {};
    if (flags.bool("list"))
      return context.out(
        Object.entries(now)
          .sort()
          .map(([key, value]) => `${key}=${value}\n`)
          .join(""),
      );
    for (const [key, value] of Object.entries(wanted)) {
      if (value !== null && now[key] !== undefined && now[key] !== value && !flags.bool("overwrite"))
        throw new CommandError(
          name === "label"
            ? `'${key}' already has a value (${now[key]}), and --overwrite is false`
            : `--overwrite is false but found the following declared annotation(s): '${key}' already has a value (${now[key]})`,
        );
      if (name === "label" && value === null && now[key] === undefined)
        context.out(`${name} ${JSON.stringify(key)} not found.\n`);
    }
    const removed = Object.values(wanted).every((value) => value === null);
    const same = Object.entries(wanted).every(([key, value]) =>
      value === null ? now[key] === undefined : now[key] === value,
    );
    const operation = same
      ? name === "label"
        ? "not labeled"
        : done
      : removed && name === "label"
        ? "unlabeled"
        : done;
    const after = same
      ? object
      : await send(context, target, "application/merge-patch+json", { metadata: { [field]: wanted } });
    printResult(context, after, operation);
  }
}

export const label: CommandSpec = metadataCommand("label", "labels", "labeled");
export const annotate: CommandSpec = metadataCommand("annotate", "annotations", "annotated");

async function targetsOf(context: Context, args: readonly string[]): Promise<Asked[]> {
  const asked = await askedFor(context, args);
  const all: Asked[] = [];
  for (const one of asked) {
    if (one.name !== undefined) all.push(one);
    else {
      const { items } = await context.client.list(one.resource, {
        namespace: one.namespace,
        ...selectors(context.flags),
      });
      all.push(...items.map(({ metadata }) => ({ ...one, name: metadata.name, namespace: metadata.namespace })));
    }
  }
  return all;
}

export const scale: CommandSpec = {
  name: "scale",
  usage: "scale [--resource-version=version] [--current-replicas=count] --replicas=COUNT (-f FILENAME | TYPE NAME)",
  short: "Set a new size for a deployment, replica set, or replication controller",
  flags: [
    ...COMMON,
    SELECTOR,
    flag("all", "bool", "all of the kind"),
    flag("replicas", "int", "the new size", { default: -1 }),
    flag("current-replicas", "int", "only from this size", { default: -1 }),
    flag("resource-version", "string", "only on this version"),
    flag("timeout", "duration", "wait until it is scaled"),
  ],
  async run(context) {
    const { flags, args, client } = context;
    if (!flags.given("replicas")) throw new CommandError('required flag(s) "replicas" not set');
    if (flags.int("replicas") < 0)
      throw new CommandError("The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0");
    for (const { resource, name = "", namespace } of await targetsOf(context, args)) {
      const object = await readOne(context, { resource, name, namespace });
      const now = (object.spec as { replicas?: number } | undefined)?.replicas ?? 0;
      const expected = flags.int("current-replicas");
      if (expected >= 0 && now !== expected) throw new CommandError(`Expected replicas to be ${expected}, was ${now}`);
      const path = pathOf(resource as Resource, { namespace, name, subresource: "scale" });
      if (!["client", "unchanged"].includes(flags.string("dry-run")))
        await client.request({
          method: "PATCH",
          path,
          query: dryRunQuery(flags),
          body: { spec: { replicas: flags.int("replicas") } },
          headers: { "content-type": "application/merge-patch+json" },
        });
      printResult(context, await readOne(context, { resource, name, namespace }), "scaled");
    }
  },
};
