import type { KindInfo } from "#kinds";
import type { JsonSchema } from "./schemas.ts";

/** A reference to the schema of an answer, and the form of parameters and bodies: OpenAPI 3 or Swagger 2. */
export interface Dialect {
  ref(name: string): JsonSchema;
  parameter(
    name: string,
    at: "query" | "path",
    type: "string" | "boolean" | "integer",
    description: string,
  ): JsonSchema;
  /** Parts of an operation that say what goes in and out. */
  body(types: readonly string[], schema: JsonSchema): JsonSchema;
  responses(schema: JsonSchema): JsonSchema;
}

interface Operation {
  readonly method: string;
  readonly verb: string;
  readonly action: string;
}

const COLLECTION: readonly Operation[] = [
  { method: "get", verb: "list", action: "list" },
  { method: "post", verb: "create", action: "post" },
  { method: "delete", verb: "deletecollection", action: "deletecollection" },
];
const ITEM: readonly Operation[] = [
  { method: "get", verb: "get", action: "get" },
  { method: "put", verb: "update", action: "put" },
  { method: "patch", verb: "patch", action: "patch" },
  { method: "delete", verb: "delete", action: "delete" },
];
const PATCH_TYPES = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];
const META = "io.k8s.apimachinery.pkg.apis.meta.v1";

/** The paths at which kinds are served. */
export function pathsOf(kinds: readonly KindInfo[], dialect: Dialect): Record<string, JsonSchema> {
  const paths: Record<string, JsonSchema> = {};
  for (const kind of kinds) {
    const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
    const place = kind.namespaced ? `${root}/namespaces/{namespace}/${kind.resource}` : `${root}/${kind.resource}`;
    const self = { group: kind.group, version: kind.version, kind: kind.kind, schema: kind.schema };
    add(paths, place, COLLECTION, { kind, verbs: kind.verbs, answer: self, list: true }, dialect);
    if (kind.namespaced && kind.verbs.includes("list"))
      add(
        paths,
        `${root}/${kind.resource}`,
        COLLECTION.slice(0, 1),
        { kind, verbs: kind.verbs, answer: self, list: true },
        dialect,
      );
    add(paths, `${place}/{name}`, ITEM, { kind, verbs: kind.verbs, answer: self, list: false }, dialect);
    for (const sub of kind.subresources) {
      const group = sub.group ?? kind.group;
      const version = sub.version ?? kind.version;
      const schema =
        sub.kind === kind.kind ? kind.schema : `io.k8s.api.${group.split(".")[0] || "core"}.${version}.${sub.kind}`;
      const operations = [...ITEM, { method: "post", verb: "create", action: "post" }];
      add(
        paths,
        `${place}/{name}/${sub.name}`,
        operations,
        { kind, verbs: sub.verbs, answer: { group, version, kind: sub.kind, schema }, list: false },
        dialect,
      );
    }
  }
  return paths;
}

interface Served {
  readonly kind: KindInfo;
  readonly verbs: readonly string[];
  readonly answer: { readonly group: string; readonly version: string; readonly kind: string; readonly schema: string };
  readonly list: boolean;
}

function add(
  paths: Record<string, JsonSchema>,
  path: string,
  operations: readonly Operation[],
  served: Served,
  dialect: Dialect,
): void {
  const own = operations.filter(({ verb }) => served.verbs.includes(verb));
  if (own.length === 0) return;
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) =>
    dialect.parameter(
      name!,
      "path",
      "string",
      name === "namespace" ? "namespace of the object" : `name of the ${served.kind.kind}`,
    ),
  );
  const entry: JsonSchema = { ...(paths[path] ?? {}) };
  for (const operation of own) entry[operation.method] = operationOf(operation, path, served, dialect);
  if (parameters.length > 0) entry.parameters = parameters;
  paths[path] = entry;
}

function operationOf(
  { method, verb, action }: Operation,
  path: string,
  { kind, answer, list }: Served,
  dialect: Dialect,
): JsonSchema {
  const { group, version, kind: name, schema } = answer;
  const writes = method === "post" || method === "put" || method === "patch";
  const shape =
    method === "get" && list
      ? dialect.ref(schema.replace(/\.[^.]+$/, `.${kind.listKind}`))
      : method === "delete"
        ? dialect.ref(`${META}.Status`)
        : dialect.ref(schema);
  const parameters = queryOf(verb, list).map(([query, type, text]) => dialect.parameter(query, "query", type, text));
  const body =
    method === "patch"
      ? dialect.body(PATCH_TYPES, dialect.ref(`${META}.Patch`))
      : writes
        ? dialect.body(["*/*"], dialect.ref(schema))
        : {};
  return {
    operationId: `${verb}${path.replace(/\{\w+\}/g, "").replace(/(^|[^a-zA-Z0-9]+)([a-zA-Z0-9])/g, (_, __, letter: string) => letter.toUpperCase())}`,
    tags: [`${group || "core"}_${version}`],
    ...mergeParameters(parameters, body),
    ...dialect.responses(shape),
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": { group, kind: name, version },
  };
}

/** Swagger 2 has the body among the parameters. */
function mergeParameters(parameters: readonly JsonSchema[], body: JsonSchema): JsonSchema {
  const own = (body.parameters as JsonSchema[] | undefined) ?? [];
  const all = [...parameters, ...own];
  return { ...body, ...(all.length > 0 ? { parameters: all } : {}) };
}

type Query = readonly [string, "string" | "boolean" | "integer", string];

function queryOf(verb: string, list: boolean): Query[] {
  const write: Query[] = [
    ["dryRun", "string", "All: everything but the write itself is done"],
    ["fieldManager", "string", "name of who makes the change"],
    ["fieldValidation", "string", "what unknown and duplicate fields do: Ignore, Warn, Strict"],
  ];
  if (verb === "create" || verb === "update") return write;
  if (verb === "patch") return [...write, ["force", "boolean", "an apply takes fields over from other managers"]];
  if (verb === "delete")
    return [
      write[0]!,
      ["gracePeriodSeconds", "integer", "time to end in order"],
      ["propagationPolicy", "string", "what becomes of dependents: Orphan, Background, Foreground"],
    ];
  if (!list) return [];
  return [
    ["labelSelector", "string", "takes objects by their labels"],
    ["fieldSelector", "string", "takes objects by fields"],
    ["limit", "integer", "objects in a page"],
    ["continue", "string", "token of the next page"],
    ["resourceVersion", "string", "how fresh the answer is at least"],
    ["resourceVersionMatch", "string", "Exact or NotOlderThan"],
    ["timeoutSeconds", "integer", "end of the list or watch"],
    ["watch", "boolean", "changes as they come, in place of a list"],
    ["allowWatchBookmarks", "boolean", "events that tell the revision"],
    ["sendInitialEvents", "boolean", "the state first, as events"],
  ];
}
