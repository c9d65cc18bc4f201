import assert from "node:assert/strict";
import { type CommandSpec, type Context, flag } from "../context.ts";
import { isStatus } from "#kinds";
import { CommandError } from "../errors.ts";

export const explain: CommandSpec = {
  name: "explain",
  usage: "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group]",
  short: "Get documentation for a resource",
  flags: [
    flag("recursive", "bool", "all fields below"),
    flag("api-version", "string", "group/version"),
    flag("output", "string", "plaintext", { short: "o", default: "plaintext" }),
  ],
  run: runExplain,
};

interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly "x-kubernetes-group-version-kind"?: readonly { group: string; version: string; kind: string }[];
}

type Schemas = Readonly<Record<string, Schema>>;

async function runExplain(context: Context): Promise<void> {
  const { args, flags, client, out } = context;
  if (args.length === 0)
    throw new CommandError(
      'You must specify the type of resource to explain. Use "kubectl api-resources" for a complete list of supported resources.',
    );
  if (args.length > 1) throw new CommandError("We accept only this format: explain RESOURCE");
  const [word = "", ...path] = args[0]!.split(".");
  const found = await findResource(context, args[0]!, word);
  const wanted = flags.string("api-version");
  const [group, version] = wanted
    ? wanted.includes("/")
      ? (wanted.split("/") as [string, string])
      : ["", wanted]
    : [found.resource.group, found.resource.version];
  const { kind } = found.resource;
  const document = (await client.request({
    method: "GET",
    path: group ? `/openapi/v3/apis/${group}/${version}` : `/openapi/v3/api/${version}`,
  })) as { components?: { schemas?: Schemas } };
  const schemas = document.components?.schemas ?? {};
  const root = Object.values(schemas).find((schema) =>
    schema["x-kubernetes-group-version-kind"]?.some(
      (one) => one.group === group && one.version === version && one.kind === kind,
    ),
  );
  if (!root)
    throw new CommandError(
      `couldn't find resource for ${JSON.stringify(`${group ? `${group}/` : ""}${version}, Kind=${kind}`)}`,
    );
  const fields = found.fields ?? path;
  const lines: string[] = [];
  if (group) lines.push(`GROUP:      ${group}`);
  lines.push(`KIND:       ${kind}`, `VERSION:    ${version}`, "");
  const fault = faultOf(schemas, root, fields);
  if (fault) {
    out(`${lines.join("\n")}\n`);
    throw fault;
  }
  const at = descend(schemas, root, fields);
  if (fields.length > 0) lines.push(`FIELD: ${fields.at(-1)} <${typeName(schemas, at.field)}>`);
  if (at.field.enum?.length) lines.push("ENUM:", ...at.field.enum.map((value) => `    ${String(value) || '""'}`));
  if (fields.length > 0) lines.push("");
  if (fields.length > 0 && !at.field.enum?.length) lines.push("");
  lines.push("DESCRIPTION:");
  const descriptions = [
    at.field.description,
    ...(at.field.allOf ?? []).map((part) => resolve(schemas, part).description),
    at.schema.description,
  ].filter((text, i, all) => text && all.indexOf(text) === i) as string[];
  for (const text of descriptions.length > 0 ? descriptions : ["<empty>"]) lines.push(...wrap(text, 4));
  lines.push("    ");
  const properties = at.schema.properties ?? {};
  if (Object.keys(properties).length > 0) {
    lines.push("FIELDS:");
    writeFields(lines, schemas, at.schema, 2, flags.bool("recursive"), new Set());
  }
  out(`${lines.join("\n")}\n\n`);
}

/** `pods.spec.containers`, or a resource with its group: `deployments.apps.spec`. */
async function findResource({ discovery }: Context, whole: string, first: string) {
  const parts = whole.split(".");
  for (let length = parts.length; length > 1; length--) {
    const resource = await discovery.named(parts.slice(0, length).join(".")).catch(() => undefined);
    if (resource) return { resource, fields: parts.slice(length) };
  }
  const resource = await discovery.named(first).catch((error: unknown) => {
    throw isStatus(error, "NotFound") && error instanceof Error
      ? new CommandError(error.message, { bare: true })
      : error;
  });
  return { resource, fields: undefined };
}

function resolve(schemas: Schemas, schema: Schema): Schema {
  if (schema.$ref) return schemas[schema.$ref.replace("#/components/schemas/", "")] ?? {};
  const part = schema.allOf?.find(({ $ref }) => $ref);
  return part ? resolve(schemas, part) : schema;
}

/** What a field holds, behind lists and maps. */
function elementOf(schemas: Schemas, schema: Schema): Schema {
  const inner =
    schema.items ?? (typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined);
  return inner ? elementOf(schemas, resolve(schemas, inner)) : resolve(schemas, schema);
}

/** The heading is printed before it is told that a field is not there. */
function faultOf(schemas: Schemas, root: Schema, fields: readonly string[]): CommandError | undefined {
  let schema = root;
  for (const name of fields) {
    const next = schema.properties?.[name];
    if (!next) return new CommandError(`field ${JSON.stringify(name)} does not exist`);
    schema = elementOf(schemas, next);
  }
  return undefined;
}

function descend(schemas: Schemas, root: Schema, fields: readonly string[]): { schema: Schema; field: Schema } {
  let schema = root;
  let field: Schema = root;
  for (const name of fields) {
    const next = schema.properties?.[name];
    assert(next);
    field = next;
    schema = elementOf(schemas, next);
  }
  return { schema, field };
}

function typeName(schemas: Schemas, schema: Schema): string {
  const ref = schema.$ref ?? schema.allOf?.find(({ $ref }) => $ref)?.$ref;
  if (ref) {
    const target = resolve(schemas, schema);
    // scalars with a type of their own show what they are: Time is a string
    return target.type && target.type !== "object" && !target.properties ? target.type : (ref.split(".").at(-1) ?? "");
  }
  if (schema.type === "array") return `[]${typeName(schemas, schema.items ?? {})}`;
  if (schema.type === "object" && typeof schema.additionalProperties === "object")
    return `map[string]${typeName(schemas, schema.additionalProperties)}`;
  return schema.type === "object" ? "Object" : (schema.type ?? "Object");
}

function writeFields(
  lines: string[],
  schemas: Schemas,
  schema: Schema,
  indent: number,
  recursive: boolean,
  above: ReadonlySet<Schema>,
): void {
  const required = new Set(schema.required);
  const lead = " ".repeat(indent);
  for (const name of Object.keys(schema.properties ?? {}).sort()) {
    const field = schema.properties![name]!;
    lines.push(`${lead}${name}\t<${typeName(schemas, field)}>${required.has(name) ? " -required-" : ""}`);
    if (field.enum?.length) lines.push(`${lead}enum: ${enumText(field.enum)}`);
    if (recursive) {
      const inner = elementOf(schemas, field);
      if (inner.properties && !above.has(inner))
        writeFields(lines, schemas, inner, indent + 2, true, new Set([...above, inner]));
      continue;
    }
    const text = field.description;
    lines.push(...wrap(text || "<no description>", indent + 2), "");
  }
}

const enumText = (values: readonly unknown[]) =>
  values.length > 4 ? `${values.slice(0, 4).join(", ")}, ....` : values.join(", ");

const WIDTH = 80;

/** Lines of at most 80 columns; line breaks of the text and spaces within its lines stay. */
function wrap(text: string, indent: number): string[] {
  const lead = " ".repeat(indent);
  const most = WIDTH - indent;
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    let current = "";
    for (const [, spaces = "", word = ""] of line.matchAll(/(\s*)(\S+)/g)) {
      if (current && current.length + spaces.length + word.length > most) {
        lines.push(`${lead}${current}`);
        current = word;
      } else current += `${spaces}${word}`;
    }
    lines.push(`${lead}${current}`);
  }
  return lines;
}
