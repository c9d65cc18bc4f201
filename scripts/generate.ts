// Writes src/kinds/generated/ (types, schema, descriptions of the built-in kinds) from the OpenAPI models of
// @kubernetes/client-node and from src/kinds/schema/facts.json, which holds what those models lack. Does nothing when its
// inputs have not changed.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const client = join(root, "node_modules/@kubernetes/client-node");
const models = join(client, "dist/gen/models");
const factsFile = join(root, "src/kinds/schema/facts.json");
const target = join(root, "src/kinds/generated");

/** Package (`io.k8s.api.core.v1`) -> type -> field -> tokens, see src/kinds/schema/README.md. */
type Facts = Record<string, Record<string, Record<string, string>>>;
interface Attribute {
  /** As a property of the class; differs from baseName for reserved words. */
  readonly name: string;
  readonly baseName: string;
  readonly type: string;
  readonly format: string;
}
interface Model {
  /** Full OpenAPI name. */
  readonly name: string;
  readonly package: string;
  readonly type: string;
  readonly description: string;
  readonly fields: readonly ModelField[];
  readonly map: string | undefined;
  readonly unions: unknown;
}
interface ModelField {
  readonly name: string;
  /** `string int32 int64 float64 bool bytes quantity time microtime intOrString`, a special type, or `#full.name`; with `[]` or `map:` before it. */
  readonly type: string;
  readonly required: boolean;
  readonly tokens: string;
  readonly description: string;
}

const inputs = [
  readFileSync(fileURLToPath(import.meta.url)),
  readFileSync(factsFile),
  readFileSync(join(client, "package.json")),
];
const hash = createHash("sha256").update(Buffer.concat(inputs)).digest("hex");
const stamp = join(target, "hash");
if (existsSync(stamp) && readFileSync(stamp, "utf8") === hash) process.exit(0);

const facts: Facts = JSON.parse(readFileSync(factsFile, "utf8"));
const fileNames = new Set(readdirSync(models));
const modelOfFile = new Map<string, string>();
for (const [pkg, types] of Object.entries(facts)) {
  for (const type of Object.keys(types)) modelOfFile.set(clientName(pkg, type), `${pkg}.${type}`);
}
const all: Model[] = [];
for (const [pkg, types] of Object.entries(facts)) {
  for (const [type, fields] of Object.entries(types)) all.push(await readModel(pkg, type, fields));
}
mkdirSync(target, { recursive: true });
writeFileSync(join(target, "types.ts"), typesFile(all));
writeFileSync(join(target, "schema.ts"), schemaFile(all));
writeFileSync(join(target, "descriptions.ts"), descriptionsFile(all));
writeFileSync(stamp, hash);

/** The model's name in client-node: the version before the type, and the group before that where types clash. */
function clientName(pkg: string, type: string): string {
  if (pkg.endsWith(".pkg.version")) return "VersionInfo";
  const parts = pkg.split(".");
  const version = capital(parts.at(-1)!);
  const clashing = `${capital(parts.at(-2)!)}${version}${type}`;
  return fileNames.has(`${clashing}.js`) ? clashing : `${version}${type}`;
}

async function readModel(pkg: string, type: string, fieldFacts: Record<string, string>): Promise<Model> {
  const { $map, $unions, ...tokensOf } = fieldFacts;
  const name = clientName(pkg, type);
  if (!fileNames.has(`${name}.js`)) return { ...emptyModel(pkg, type), map: $map, unions: $unions };
  const module = (await import(join(models, `${name}.js`))) as Record<string, { attributeTypeMap: Attribute[] }>;
  const declared = readDeclarations(readFileSync(join(models, `${name}.d.ts`), "utf8"));
  const attributes = new Map(module[name]!.attributeTypeMap.map((a) => [a.baseName, a]));
  const fields = Object.entries(tokensOf).map(([field, tokens]): ModelField => {
    const attribute = attributes.get(field);
    const declaration = attribute && declared.fields.get(attribute.name);
    if (!attribute || !declaration) throw new Error(`facts.json names ${pkg}.${type}.${field}, which the model lacks`);
    const special = /(?:^| )type=(\S+)/.exec(tokens)?.[1];
    const rest = tokens.split(" ").filter((token) => token && token !== "quantity" && !token.startsWith("type="));
    return {
      name: field,
      type: special ?? fieldType(attribute, tokens.split(" ").includes("quantity")),
      required: declaration.required,
      tokens: rest.join(" "),
      description: declaration.description,
    };
  });
  for (const field of attributes.keys()) {
    if (!(field in tokensOf)) throw new Error(`facts.json lacks ${pkg}.${type}.${field}`);
  }
  return {
    name: `${pkg}.${type}`,
    package: pkg,
    type,
    description: declared.description,
    fields,
    map: $map,
    unions: $unions,
  };
}

function emptyModel(pkg: string, type: string): Model {
  return { name: `${pkg}.${type}`, package: pkg, type, description: "", fields: [], map: undefined, unions: undefined };
}

function fieldType(attribute: Attribute, quantity: boolean): string {
  const list = /^Array<(.+)>$/.exec(attribute.type);
  if (list) return `[]${fieldType({ ...attribute, type: list[1]! }, quantity)}`;
  const map = /^\{ \[key: string\]: (.+); \}$/.exec(attribute.type);
  if (map) return `map:${fieldType({ ...attribute, type: map[1]! }, quantity)}`;
  if (quantity) return "quantity";
  if (attribute.format === "date-time-micro") return "microtime";
  switch (attribute.type) {
    case "string":
      return attribute.format === "byte" ? "bytes" : "string";
    case "number":
      return attribute.format === "double" ? "float64" : attribute.format;
    case "boolean":
      return "bool";
    case "Date":
      return "time";
    case "IntOrString":
      return "intOrString";
    default: {
      const model = modelOfFile.get(attribute.type);
      if (!model) throw new Error(`no facts for the model ${attribute.type}`);
      return `#${model}`;
    }
  }
}

/** Doc comments and optionality from a .d.ts file of client-node. */
function readDeclarations(text: string): {
  description: string;
  fields: Map<string, { required: boolean; description: string }>;
} {
  const fields = new Map<string, { required: boolean; description: string }>();
  const [head = "", body = ""] = text.split(/^export declare class .*$/m);
  for (const match of body.matchAll(/(?:\/\*\*\n((?: *\*(?!\/).*\n)*) *\*\/\n)? *'([^']+)'(\?)?: /g)) {
    fields.set(match[2]!, { required: match[3] === undefined, description: comment(match[1] ?? "") });
  }
  const comments = [...head.matchAll(/\/\*\*\n((?:\*(?!\/).*\n)*)\*\//g)];
  return { description: comment(comments.at(-1)?.[1] ?? ""), fields };
}

function comment(text: string): string {
  return text
    .split("\n")
    .map((line) => line.replace(/^ *\* ?/, ""))
    .join("\n")
    .trim()
    .replace(/\\(["'`\\])/g, "$1")
    .replaceAll("\\n", "\n");
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** TypeScript names: the type's own, with the group before it for the less known of two, with a suffix for old versions. */
function typeNames(): Map<string, string> {
  const preferred = (pkg: string) => pkg !== "io.k8s.api.autoscaling.v1";
  const primary = new Map(
    Object.entries({
      Event: "core",
      EventSeries: "core",
      EndpointPort: "core",
      ResourceClaim: "resource",
      Subject: "rbac",
      TokenRequest: "authentication",
    }),
  );
  const names = new Map<string, string>();
  const count = new Map<string, number>();
  for (const model of all) if (preferred(model.package)) count.set(model.type, (count.get(model.type) ?? 0) + 1);
  for (const model of all) {
    const group = model.package.split(".").at(-2)!;
    const clash = (count.get(model.type) ?? 0) > 1 && primary.get(model.type) !== group;
    const old = !preferred(model.package) && (count.get(model.type) ?? 0) > 0;
    names.set(model.name, old ? `${model.type}V1` : clash ? `${capital(group)}${model.type}` : model.type);
  }
  return names;
}

function groupVersionOf(pkg: string): string {
  const [version, group] = pkg.split(".").reverse();
  const plain: Record<string, string> = {
    core: "",
    apps: "apps",
    autoscaling: "autoscaling",
    batch: "batch",
    policy: "policy",
    rbac: "rbac.authorization.k8s.io",
    flowcontrol: "flowcontrol.apiserver.k8s.io",
    meta: "",
  };
  const name = plain[group!] ?? `${group}.k8s.io`;
  return name ? `${name}/${version}` : version!;
}

function typesFile(list: readonly Model[]): string {
  const names = typeNames();
  const blocks = list.map((model) => {
    const isKind = model.fields.some((f) => f.name === "kind") && model.fields.some((f) => f.name === "metadata");
    const embedded = /(Template|TemplateSpec)$/.test(model.type);
    const lines = model.fields.map((field) => {
      let type = tsType(field.type, names);
      let required = field.required;
      if (isKind && field.name === "apiVersion")
        [type, required] = [JSON.stringify(groupVersionOf(model.package)), true];
      if (isKind && field.name === "kind") [type, required] = [JSON.stringify(model.type), true];
      if (isKind && field.name === "metadata") required = true;
      if (!isKind && field.name === "metadata" && embedded) type = "Partial<ObjectMeta>";
      if (field.name === "spec" && !field.tokens.includes("pointer") && (isKind || embedded)) required = true;
      if (model.type === "ObjectMeta" && field.name === "name") required = true;
      if (model.type === "ObjectMeta" && field.name === "creationTimestamp") type = "string | null";
      return `${doc(field.description, "  ")}  ${property(field.name)}${required ? "" : "?"}: ${type};\n`;
    });
    return `${doc(model.description, "")}export type ${names.get(model.name)} = {\n${lines.join("")}};\n`;
  });
  return `// Generated by scripts/generate.ts. Timestamps are RFC 3339 strings.\n\n${blocks.join("\n")}`;
}

function property(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
}

function doc(text: string, indent: string): string {
  if (!text) return "";
  const lines = text.replaceAll("*/", "* /").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join("")}${indent} */\n`;
}

function tsType(type: string, names: ReadonlyMap<string, string>): string {
  if (type.startsWith("[]")) {
    const item = tsType(type.slice(2), names);
    return item.includes(" ") ? `(${item})[]` : `${item}[]`;
  }
  if (type.startsWith("map:")) return `Record<string, ${tsType(type.slice(4), names)}>`;
  if (type.startsWith("#")) return names.get(type.slice(1))!;
  const scalars: Record<string, string> = {
    int32: "number",
    int64: "number",
    float64: "number",
    bool: "boolean",
    intOrString: "number | string",
    RawExtension: "unknown",
    JSON: "unknown",
    JSONSchemaPropsOrArray: "JSONSchemaProps | JSONSchemaProps[]",
    JSONSchemaPropsOrBool: "JSONSchemaProps | boolean",
    JSONSchemaPropsOrStringArray: "JSONSchemaProps | string[]",
    CustomResourceSubresourceStatus: "Record<string, unknown>",
    FieldsV1: "Record<string, unknown>",
  };
  return scalars[type] ?? "string";
}

/** One JSON text, parsed at start; field tokens are decoded when a schema is first asked for. */
function schemaFile(list: readonly Model[]): string {
  const packages: Record<string, Record<string, Record<string, unknown>>> = {};
  for (const model of list) {
    const entry: Record<string, unknown> = {};
    for (const field of model.fields) {
      const type = field.type.replace(`#${model.package}.`, "#");
      entry[field.name] = [type, ...(field.required ? ["required"] : []), ...(field.tokens ? [field.tokens] : [])].join(
        " ",
      );
    }
    if (model.map) entry.$map = model.map;
    if (model.unions) entry.$unions = model.unions;
    packages[model.package] ??= {};
    packages[model.package]![model.type] = entry;
  }
  return `// Generated by scripts/generate.ts.\nexport const schemaText: string = ${JSON.stringify(JSON.stringify(packages))};\n`;
}

function descriptionsFile(list: readonly Model[]): string {
  const texts: Record<string, Record<string, string>> = {};
  for (const model of list) {
    const entry: Record<string, string> = { "": model.description };
    for (const field of model.fields) entry[field.name] = field.description;
    texts[model.name] = entry;
  }
  return `// Generated by scripts/generate.ts.\nexport const descriptionsText: string = ${JSON.stringify(JSON.stringify(texts))};\n`;
}
