import { type Event, resources } from "#kinds";
import { iterateWatch } from "#client";
import { ALL_NAMESPACES, type CommandSpec, type Context, flag, OUTPUT, SHOW_MANAGED, TEMPLATE } from "../context.ts";
import { eventAge } from "../describe/writer.ts";
import { CommandError } from "../errors.ts";
import { listOf, printerOf } from "../printers/objects.ts";
import { alignTabs, LIST_TABS } from "../printers/tab-writer.ts";
import { resourcesOf } from "../resource-args.ts";
import { withKind } from "./apply.ts";

export const events: CommandSpec = {
  name: "events",
  usage: "events [(-o|--output=)json|yaml|name|…] [--for TYPE/NAME] [--types=Normal,Warning] [--watch]",
  short: "List events",
  flags: [
    OUTPUT,
    ALL_NAMESPACES,
    TEMPLATE,
    SHOW_MANAGED,
    flag("watch", "bool", "go on with what happens", { short: "w" }),
    flag("for", "string", "events about TYPE/NAME"),
    flag("types", "list", "Normal, Warning"),
    flag("no-headers", "bool", "no line of headers"),
    flag("chunk-size", "int", "objects a page", { default: 500 }),
  ],
  run: runEvents,
};

async function runEvents(context: Context): Promise<void> {
  const { flags, client, namespace, environment } = context;
  const where = flags.bool("all-namespaces") ? undefined : namespace;
  const fieldSelector = await aboutSelector(context);
  const wanted = new Set(flags.list("types"));
  const fits = (event: Event) => wanted.size === 0 || wanted.has(event.type ?? "");
  const printer = printerOf(context, { noHeaders: flags.bool("no-headers") });
  const list = await client.list(resources.events, { namespace: where, ...(fieldSelector ? { fieldSelector } : {}) });
  const sorted = (list.items as readonly Event[]).filter(fits).sort((a, b) => timeOf(a).localeCompare(timeOf(b)));
  if (sorted.length === 0 && !flags.bool("watch"))
    return context.err(where === undefined ? "No events found.\n" : `No events found in ${where} namespace.\n`);
  const rows = (some: readonly Event[], headed: boolean, widths: number[]) =>
    alignTabs(
      `${[...(headed ? [HEADER(where === undefined)] : []), ...some.map((event) => rowOf(event, where === undefined, environment.now()))].join("\n")}\n`,
      LIST_TABS,
      widths,
    );
  const widths: number[] = [];
  if (printer) context.out(printer(listOf(sorted.map((event) => withKind(event as never, resources.events as never)))));
  else if (sorted.length > 0) context.out(rows(sorted, !flags.bool("no-headers"), widths));
  if (!flags.bool("watch")) return;
  const abort = new AbortController();
  using _interrupt = environment.onInterrupt(() => abort.abort());
  const { resourceVersion } = list.metadata;
  for await (const { type, object } of iterateWatch(client, resources.events, {
    namespace: where,
    resourceVersion,
    signal: abort.signal,
    ...(fieldSelector ? { fieldSelector } : {}),
  })) {
    if ((type !== "ADDED" && type !== "MODIFIED") || !fits(object as Event)) continue;
    context.out(
      printer
        ? printer(object as never)
        : rows([object as Event], sorted.length === 0 && widths.length === 0 && !flags.bool("no-headers"), widths),
    );
  }
}

async function aboutSelector(context: Context): Promise<string | undefined> {
  const about = context.flags.string("for");
  if (!about) return undefined;
  const [kind = "", name = "", ...rest] = about.split("/");
  if (!kind || !name || rest.length > 0) throw new CommandError("--for must be in resource/name form");
  const [resource] = await resourcesOf(context, kind);
  const apiVersion = resource!.group ? `${resource!.group}/${resource!.version}` : resource!.version;
  return `involvedObject.kind=${resource!.kind},involvedObject.apiVersion=${apiVersion},involvedObject.name=${name}`;
}

const HEADER = (namespaced: boolean) => `${namespaced ? "NAMESPACE\t" : ""}LAST SEEN\tTYPE\tREASON\tOBJECT\tMESSAGE`;

function rowOf(event: Event, namespaced: boolean, now: number): string {
  const { involvedObject, metadata, type, reason, message = "" } = event;
  const seen = eventAge(event, now);
  return `${namespaced ? `${metadata.namespace}\t` : ""}${seen}\t${type}\t${reason}\t${involvedObject.kind}/${involvedObject.name}\t${message.trim()}`;
}

const timeOf = (event: Event) => String(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? "");
