import { createJsonPath, type JsonPath, JsonPathError } from "#base";
import type { ApiObject } from "#kinds";
import type { Context } from "../context.ts";
import { CommandError } from "../errors.ts";
import { shortName } from "../resource-args.ts";
import { parseColumnsFile, parseCustomColumns, printCustomColumns } from "./custom-columns.ts";
import { toJson } from "./json.ts";
import { toYaml } from "./yaml.ts";

/** Prints objects in a format of `-o`; for one object, or the List of many. */
export type ObjectPrinter = (object: ApiObject) => string;

const FORMATS =
  "custom-columns,custom-columns-file,go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,wide,yaml";

/** The printer of `-o`; undefined for `` and `wide`, which print tables. @throws CommandError */
export function printerOf(context: Context, options: { noHeaders?: boolean } = {}): ObjectPrinter | undefined {
  const { flags } = context;
  const output = flags.string("output");
  const template = flags.has("template") ? flags.string("template") : "";
  const equals = output.indexOf("=");
  const format = (equals < 0 ? output : output.slice(0, equals)) || (template ? "jsonpath" : "");
  const argument = equals < 0 ? template : output.slice(equals + 1);
  const file = () => context.environment.files.read(argument);
  const needed = (what: string) => {
    if (argument === "") throw new CommandError(`template format specified but no ${what} given`);
    return argument;
  };
  switch (format) {
    case "":
    case "wide":
      return undefined;
    case "json":
      return (object) => toJson(cleaned(context, object));
    case "yaml":
      return yamlPrinter(context);
    case "name":
      return (object) =>
        itemsOf(object)
          .map((item) => `${nameOf(item)}\n`)
          .join("");
    case "jsonpath":
    case "jsonpath-file":
      return jsonPathPrinter(context, format === "jsonpath" ? needed("template") : file().trimEnd());
    case "jsonpath-as-json": {
      const path = jsonPathOf(needed("template"));
      return (object) => toJson(path.find(cleaned(context, object)).flat());
    }
    case "custom-columns": {
      if (argument === "") throw new CommandError("custom-columns format specified but no custom columns given");
      return columnsPrinter(parseCustomColumns(argument), options.noHeaders ?? false);
    }
    case "custom-columns-file":
      return columnsPrinter(parseColumnsFile(file()), options.noHeaders ?? false);
    default:
      throw new CommandError(
        `unable to match a printer suitable for the output format ${JSON.stringify(output)}, allowed formats are: ${FORMATS}`,
      );
  }
}

function jsonPathPrinter(context: Context, template: string): ObjectPrinter {
  const path = jsonPathOf(template);
  return (object) => path.print(cleaned(context, object));
}

function jsonPathOf(template: string): JsonPath {
  try {
    return createJsonPath(template);
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error;
    throw new CommandError(`error parsing jsonpath ${template}, ${error.message}`);
  }
}

function columnsPrinter(columns: ReturnType<typeof parseCustomColumns>, noHeaders: boolean): ObjectPrinter {
  let first = true;
  return (object) => {
    const text = printCustomColumns(columns, itemsOf(object), noHeaders || !first);
    first = false;
    return text;
  };
}

/** Several documents have `---` between. */
function yamlPrinter(context: Context): ObjectPrinter {
  let first = true;
  return (object) => {
    const text = `${first ? "" : "---\n"}${toYaml(cleaned(context, object))}`;
    first = false;
    return text;
  };
}

export function itemsOf(object: ApiObject): readonly ApiObject[] {
  return object.kind.endsWith("List") && Array.isArray(object.items) ? (object.items as ApiObject[]) : [object];
}

/** Without managedFields, unless they are asked for. */
export function cleaned({ flags }: Context, object: ApiObject): ApiObject {
  if (flags.has("show-managed-fields") && flags.bool("show-managed-fields")) return object;
  if (object.kind.endsWith("List") && Array.isArray(object.items))
    return { ...object, items: object.items.map(withoutManaged) };
  return withoutManaged(object);
}

function withoutManaged(object: ApiObject): ApiObject {
  if (!object.metadata?.managedFields) return object;
  const { managedFields: _managed, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** `pod/web` from what the object itself says. */
function nameOf(object: ApiObject): string {
  const slash = object.apiVersion?.indexOf("/") ?? -1;
  const group = slash < 0 ? "" : object.apiVersion.slice(0, slash);
  return shortName({ group, kind: object.kind }, object.metadata?.name ?? "");
}

/** `deployment.apps/web created`, or the object in the format that `-o` names. */
export function printResult(context: Context, object: ApiObject, operation: string): void {
  const printer = printerOf(context);
  const { flags } = context;
  if (printer) {
    context.out(printer(object));
    return;
  }
  const dryRun = flags.has("dry-run") ? flags.string("dry-run") : "none";
  const suffix =
    dryRun === "client" || dryRun === "unchanged" ? " (dry run)" : dryRun === "server" ? " (server dry run)" : "";
  context.out(`${nameOf(object)} ${operation}${suffix}\n`);
}

/** A list as kubectl makes one of what it got from several requests. */
export function listOf(items: readonly ApiObject[]): ApiObject {
  return { apiVersion: "v1", kind: "List", metadata: { resourceVersion: "" } as never, items };
}
