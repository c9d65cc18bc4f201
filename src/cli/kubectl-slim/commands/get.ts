import { createQueue, pathOf, type ServedResource } from "#client";
import { type ApiObject, isStatus } from "#kinds";
import {
  ALL_NAMESPACES,
  type CommandSpec,
  type Context,
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
import { throwAll } from "./apply.ts";
import { cleaned, listOf, printerOf } from "../printers/objects.ts";
import { printTable, type Table, type TableOptions } from "../printers/table.ts";
import { sortObjects, sortRows } from "../sort-by.ts";
import { type Asked, askedFor, shortName } from "../resource-args.ts";

export const get: CommandSpec = {
  name: "get",
  usage:
    "get [(-o|--output=)json|yaml|name|jsonpath=…|custom-columns=…|wide] (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE/NAME ...)",
  short: "Display one or many resources",
  flags: [
    OUTPUT,
    SELECTOR,
    FIELD_SELECTOR,
    ALL_NAMESPACES,
    FILENAME,
    RECURSIVE,
    SHOW_MANAGED,
    TEMPLATE,
    flag("watch", "bool", "go on with what changes", { short: "w" }),
    flag("watch-only", "bool", "only what changes"),
    flag("output-watch-events", "bool", "tell the event of each change"),
    flag("no-headers", "bool", "no line of headers"),
    flag("show-labels", "bool", "labels as the last column"),
    flag("label-columns", "list", "labels as columns", { short: "L" }),
    flag("show-kind", "bool", "the kind before each name"),
    flag("sort-by", "string", "JSONPath of the field to sort by"),
    flag("ignore-not-found", "bool", "what is not there is no error"),
    flag("chunk-size", "int", "objects a page", { default: 500 }),
    flag("subresource", "string", "status, scale, …"),
    flag("raw", "string", "a path of the server, as it answers"),
    flag("server-print", "bool", "tables by the server", { default: true }),
    flag("allow-missing-template-keys", "bool", "missing fields give nothing", { default: true }),
    flag("kustomize", "string", "directory of a kustomization", { short: "k" }),
  ],
  run: runGet,
};

async function runGet(context: Context): Promise<void> {
  const { flags, args } = context;
  if (flags.string("raw")) return runRaw(context);
  if (args.length === 0 && flags.list("filename").length === 0) {
    context.err(
      'You must specify the type of resource to get. Use "kubectl api-resources" for a complete list of supported resources.\n\n',
    );
    throw new CommandError(
      "error: Required resource not specified.\nUse \"kubectl explain <resource>\" for a detailed description of that resource (e.g. kubectl explain pods).\nSee 'kubectl get -h' for help and examples",
      { bare: true },
    );
  }
  const asked = await askedFor(context, args, { allowAll: true });
  if (flags.bool("watch") || flags.bool("watch-only")) return runWatch(context, asked);
  const printer = printerOf(context, { noHeaders: flags.bool("no-headers") });
  if (printer) await printObjects(context, asked, printer);
  else await printTables(context, asked);
}

async function runRaw({ transport, flags, out }: Context): Promise<void> {
  const answer = await transport.stream("GET", flags.string("raw"));
  out(Buffer.concat(await answer.toArray()).toString("utf8"));
}

/** One error is told at the end as the command's own; several are told one a line. */
async function eachAsked<T>(context: Context, asked: readonly Asked[], read: (one: Asked) => Promise<T>): Promise<T[]> {
  const found: T[] = [];
  const errors: unknown[] = [];
  for (const one of asked) {
    try {
      found.push(await read(one));
    } catch (error) {
      if (!isStatus(error, "NotFound")) throw error;
      if (!context.flags.bool("ignore-not-found")) errors.push(error);
    }
  }
  if (errors.length > 0) Object.assign(found, { errors });
  return found;
}

/** What was found is printed before it is told what was not. */
function throwErrors(found: unknown[]): void {
  const { errors } = found as { errors?: unknown[] };
  if (!errors) return;
  throwAll(errors);
}

async function printObjects(
  context: Context,
  asked: readonly Asked[],
  printer: (object: ApiObject) => string,
): Promise<void> {
  const { flags } = context;
  const found = await eachAsked(context, asked, (one) => readObject(context, one));
  const single = asked.length === 1 && asked[0]!.name !== undefined && flags.list("filename").length < 2;
  if (single) {
    if (found[0]) context.out(printer(found[0]));
    return throwErrors(found);
  }
  const items = found.flatMap((object) => (Array.isArray(object.items) ? (object.items as ApiObject[]) : [object]));
  const sorted = flags.string("sort-by") ? sortObjects(items, flags.string("sort-by")) : items;
  const format = flags.string("output");
  if (items.length > 0 || !/^(name|custom-columns)/.test(format)) context.out(printer(listOf(sorted)));
  else if (/^custom-columns/.test(format) && !flags.bool("ignore-not-found")) context.out(printer(listOf([])));
  throwErrors(found);
}

/** An object, or a list with the kinds of its items filled in. */
async function readObject({ client, flags }: Context, { resource, name, namespace }: Asked): Promise<ApiObject> {
  const subresource = flags.string("subresource");
  if (name !== undefined)
    return (await client.get(resource, name, { namespace, ...(subresource ? { subresource } : {}) })) as ApiObject;
  const items: ApiObject[] = [];
  let next: string | undefined;
  do {
    const page = await client.list(resource, {
      namespace,
      ...selectors(flags),
      limit: flags.int("chunk-size") || 500,
      ...(next ? { continue: next } : {}),
    });
    items.push(...(page.items as unknown as ApiObject[]));
    next = page.metadata.continue || undefined;
  } while (next);
  const apiVersion = resource.group ? `${resource.group}/${resource.version}` : resource.version;
  return {
    apiVersion: "v1",
    kind: "List",
    metadata: {} as never,
    items: items.map((item) => ({
      ...item,
      apiVersion: item.apiVersion ?? apiVersion,
      kind: item.kind ?? resource.kind,
    })),
  };
}

export function selectors(flags: Context["flags"]): { labelSelector?: string; fieldSelector?: string } {
  const labelSelector = flags.has("selector") ? flags.string("selector") : "";
  const fieldSelector = flags.has("field-selector") ? flags.string("field-selector") : "";
  return { ...(labelSelector ? { labelSelector } : {}), ...(fieldSelector ? { fieldSelector } : {}) };
}

const TABLE =
  "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

async function readTable(context: Context, { resource, name, namespace }: Asked): Promise<Table> {
  const { client, flags } = context;
  const subresource = flags.string("subresource");
  const query: Record<string, string> = { ...(name === undefined ? selectors(flags) : {}) };
  if (flags.string("sort-by")) query.includeObject = "Object";
  if (name === undefined && flags.int("chunk-size") > 0) query.limit = String(flags.int("chunk-size"));
  const path = pathOf(resource, {
    namespace,
    ...(name === undefined ? {} : { name }),
    ...(subresource ? { subresource } : {}),
  });
  const read = async (more: Record<string, string>) =>
    asTable(
      (await client.request({ method: "GET", path, query: { ...query, ...more }, headers: { accept: TABLE } })) as
        | Table
        | ApiObject,
    );
  const table = await read({});
  for (let next = table.metadata?.continue; next; ) {
    const page = await read({ continue: next });
    table.rows.push(...page.rows);
    next = page.metadata?.continue;
  }
  return table;
}

/** Servers that know no tables answer with the object: name and age are what can be shown of it. */
function asTable(answer: Table | ApiObject): Table {
  if (answer.kind === "Table") return answer as Table;
  const object = answer as ApiObject;
  const items = Array.isArray(object.items) ? (object.items as ApiObject[]) : [object];
  return {
    kind: "Table",
    columnDefinitions: [{ name: "Name", format: "name" }, { name: "Age" }],
    rows: items.map((item) => ({ cells: [item.metadata.name, "<unknown>"], object: item })),
  };
}

function tableOptions(context: Context, asked: readonly Asked[]): TableOptions {
  const { flags } = context;
  return {
    wide: flags.string("output") === "wide",
    noHeaders: flags.bool("no-headers"),
    showLabels: flags.bool("show-labels"),
    labelColumns: flags.list("label-columns"),
    withNamespace: flags.bool("all-namespaces") && asked.some(({ resource }) => resource.namespaced),
  };
}

async function printTables(context: Context, asked: readonly Asked[]): Promise<void> {
  const { flags } = context;
  const found = await eachAsked(context, asked, async (one) => ({ one, table: await readTable(context, one) }));
  const groups = groupByResource(found);
  const several = new Set(asked.map(({ resource }) => `${resource.resource}.${resource.group}`)).size > 1;
  let printed = 0;
  for (const { resource, table } of groups) {
    if (table.rows.length === 0) continue;
    // a field that no row has leaves nothing to show
    if (flags.string("sort-by") && !sortRows(table, flags.string("sort-by"))) continue;
    const options = tableOptions(context, asked);
    const prefix = flags.bool("show-kind") || several ? shortName(resource, "") : "";
    if (printed++ > 0) context.out("\n");
    context.out(
      printTable(table, {
        ...options,
        withNamespace: options.withNamespace === true && resource.namespaced,
        namePrefix: prefix,
      }),
    );
  }
  if (printed === 0 && !(found as { errors?: unknown }).errors && !flags.bool("ignore-not-found"))
    context.err(nothingFound(context, asked));
  throwErrors(found);
}

function nothingFound({ flags, namespace }: Context, asked: readonly Asked[]): string {
  const inNamespace = !flags.bool("all-namespaces") && asked.some(({ resource }) => resource.namespaced);
  return inNamespace ? `No resources found in ${namespace} namespace.\n` : "No resources found\n";
}

/** Objects of one kind that were asked for one by one stand in one table. */
function groupByResource(found: readonly { one: Asked; table: Table }[]): { resource: ServedResource; table: Table }[] {
  const groups: { resource: ServedResource; table: Table }[] = [];
  for (const { one, table } of found) {
    const last = groups.at(-1);
    if (last?.resource === one.resource) last.table.rows.push(...table.rows);
    else groups.push({ resource: one.resource, table: { ...table, rows: [...table.rows] } });
  }
  return groups;
}

interface Change {
  readonly type: string;
  readonly object: Table | ApiObject;
}

/** What is there, then every change, until the user or the server ends it. */
async function runWatch(context: Context, asked: readonly Asked[]): Promise<void> {
  const { flags } = context;
  if (asked.length !== 1)
    throw new CommandError(
      "watch is only supported on individual resources and resource collections - more than 1 resource was found",
      {},
    );
  const [one] = asked;
  const printer = printerOf(context, { noHeaders: flags.bool("no-headers") });
  const remembered: number[] = [];
  const options = tableOptions(context, asked);
  let headed = flags.bool("no-headers");
  let columns: Table["columnDefinitions"] = [];
  const withEvents = flags.bool("output-watch-events");
  const show = (object: Table | ApiObject, type: string) => {
    if (printer) {
      const whole = cleaned(context, object as ApiObject);
      context.out(printer(withEvents ? ({ type, object: whole } as unknown as ApiObject) : whole));
      return;
    }
    const table = asTable(object);
    if (table.columnDefinitions.length > 0) columns = table.columnDefinitions;
    if (table.rows.length === 0) return;
    const events = withEvents ? { events: table.rows.map(() => type) } : {};
    context.out(
      printTable(
        { ...table, columnDefinitions: columns },
        {
          ...options,
          ...events,
          noHeaders: headed,
          namePrefix: flags.bool("show-kind") ? shortName(one!.resource, "") : "",
        },
        remembered,
      ),
    );
    headed = true;
  };
  const first = printer ? await readObject(context, one!) : await readTable(context, one!);
  const { resourceVersion } = await versionOf(context, one!, first);
  if (!flags.bool("watch-only")) {
    if (printer && Array.isArray((first as ApiObject).items))
      for (const item of (first as ApiObject).items as ApiObject[]) show(item, "ADDED");
    else show(first, "ADDED");
  }
  for await (const { type, object } of watchChanges(context, one!, resourceVersion, printer === undefined))
    show(object, type);
}

async function versionOf(
  { client }: Context,
  { resource, namespace, name }: Asked,
  first: Table | ApiObject,
): Promise<{ resourceVersion: string }> {
  const known =
    (first as Table).kind === "Table"
      ? (first as Table).metadata?.resourceVersion
      : (first as ApiObject).metadata?.resourceVersion;
  if (known && name === undefined) return { resourceVersion: known };
  const list = await client.list(resource, { namespace, limit: 1 });
  return { resourceVersion: list.metadata.resourceVersion };
}

/** Events of a watch, tables or objects. */
async function* watchChanges(
  context: Context,
  { resource, name, namespace }: Asked,
  resourceVersion: string,
  asTables: boolean,
): AsyncGenerator<Change, void> {
  const { transport, flags, environment } = context;
  const { fieldSelector, labelSelector } = selectors(flags);
  const query = new URLSearchParams({ watch: "true", resourceVersion });
  const fields = name === undefined ? fieldSelector : `metadata.name=${name}`;
  if (fields) query.set("fieldSelector", fields);
  if (labelSelector) query.set("labelSelector", labelSelector);
  if (asTables && flags.string("sort-by")) query.set("includeObject", "Object");
  const abort = new AbortController();
  using _interrupt = environment.onInterrupt(() => abort.abort());
  const response = await transport.call({
    method: "GET",
    path: pathOf(resource, { namespace }),
    query,
    headers: { accept: asTables ? TABLE : "application/json", "user-agent": "kubectl" },
    signal: abort.signal,
  });
  if (response.body.kind !== "watch") throw new CommandError("the server gave no watch");
  const queue = createQueue<Change>();
  const running = response.body.watch.start({
    event: (event) => queue.push(event as Change),
    end: () => queue.end(),
  });
  try {
    for await (const change of queue) if (change.type !== "BOOKMARK") yield change;
  } finally {
    running.stop();
  }
}
