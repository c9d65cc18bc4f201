import { createHash } from "node:crypto";
import type { ApiRequest, ApiResponse, KindInfo, Scheme } from "#kinds";
import { type Dialect, pathsOf } from "./paths.ts";
import { encodeSwagger, SWAGGER_PROTOBUF } from "./swagger-protobuf.ts";
import { componentSchemas, type JsonSchema, markKind } from "./schemas.ts";

/** Answers `/openapi/v2`, `/openapi/v3` and below; undefined for other paths. */
export interface OpenApi {
  handle(request: ApiRequest): Promise<ApiResponse | undefined>;
}

/** Schemas of kinds that are not built in, by their OpenAPI name, in the form of OpenAPI 3 or 2. Read-only. */
export interface CustomSchemas {
  schemasOf(kind: KindInfo, form: "v3" | "v2"): Promise<Record<string, JsonSchema>>;
}

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
const INFO = { title: "Kubernetes", version: "v1.36.3" };

/** Documents are made when first asked for and kept until the kinds change. */
export function createOpenApi(
  scheme: Scheme & { onChange?(listener: () => void): Disposable },
  custom?: CustomSchemas,
): OpenApi {
  const documents = new Map<string, Promise<{ body: Buffer; hash: string }>>();
  scheme.onChange?.(() => documents.clear());
  const document = (key: string, make: () => Promise<object>) => {
    const known = documents.get(key);
    if (known) return known;
    const made = make().then((value) => {
      const body = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value));
      return { body, hash: createHash("sha512").update(body).digest("hex").toUpperCase() };
    });
    documents.set(key, made);
    return made;
  };
  const versions = () => groupByVersion(scheme);
  const versionDocument = (path: string, kinds: readonly KindInfo[]) => document(path, () => openApi3(kinds, custom));

  return {
    async handle(request) {
      const { path } = request;
      if (path === "/openapi/v2") {
        const asked = (request.headers.accept ?? "")
          .split(",")
          .find((entry) => /json|\*\/\*|proto-openapi/.test(entry));
        if (asked && SWAGGER_PROTOBUF.test(asked)) {
          const { body, hash } = await document("v2 protobuf", async () =>
            encodeSwagger(await swagger2(scheme.all(), custom)),
          );
          return answer(request, body, hash, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
        }
        const { body, hash } = await document("v2", () => swagger2(scheme.all(), custom));
        return answer(request, body, hash);
      }
      if (path === "/openapi/v3") {
        const paths: Record<string, object> = {};
        for (const [key, kinds] of versions()) {
          const { hash } = await versionDocument(key, kinds);
          paths[key] = { serverRelativeURL: `/openapi/v3/${key}?hash=${hash}` };
        }
        const body = Buffer.from(JSON.stringify({ paths }));
        return answer(request, body, createHash("sha512").update(body).digest("hex").toUpperCase());
      }
      if (!path.startsWith("/openapi/v3/")) return undefined;
      const key = path.slice("/openapi/v3/".length);
      const kinds = versions().get(key);
      if (!kinds) return undefined;
      const { body, hash } = await versionDocument(key, kinds);
      return answer(request, body, hash);
    },
  };
}

function answer(request: ApiRequest, bytes: Buffer, hash: string, contentType = "application/json"): ApiResponse {
  const etag = `"${hash}"`;
  // a hash in the address names one content for ever
  const caching = request.query.has("hash") ? { "cache-control": "public, immutable" } : {};
  const headers = { etag, vary: "Accept", ...caching };
  if (request.headers["if-none-match"] === etag)
    return { code: 304, headers, body: { kind: "bytes", bytes: Buffer.alloc(0), contentType } };
  return { code: 200, headers, body: { kind: "bytes", bytes, contentType } };
}

/** `api/v1`, `apis/apps/v1` … */
function groupByVersion(scheme: Scheme): Map<string, KindInfo[]> {
  const versions = new Map<string, KindInfo[]>();
  for (const kind of scheme.all()) {
    const key = kind.group ? `apis/${kind.group}/${kind.version}` : `api/${kind.version}`;
    versions.set(key, [...(versions.get(key) ?? []), kind]);
  }
  return versions;
}

async function openApi3(kinds: readonly KindInfo[], custom: CustomSchemas | undefined): Promise<object> {
  const schemas = await schemasFor(kinds, "#/components/schemas/", custom);
  schemas[`${META}.Patch`] = { description: "A change of an object.", type: "object" };
  return {
    openapi: "3.0.0",
    info: INFO,
    paths: pathsOf(kinds, openApi3Dialect),
    components: { schemas, securitySchemes: { BearerToken: { type: "apiKey", name: "authorization", in: "header" } } },
  };
}

async function swagger2(kinds: readonly KindInfo[], custom: CustomSchemas | undefined) {
  const definitions = await schemasFor(kinds, "#/definitions/", custom);
  definitions[`${META}.Patch`] = { description: "A change of an object.", type: "object" };
  return { swagger: "2.0", info: INFO, paths: pathsOf(kinds, swaggerDialect), definitions: inSwagger(definitions) };
}

async function schemasFor(
  kinds: readonly KindInfo[],
  prefix: string,
  custom: CustomSchemas | undefined,
): Promise<Record<string, JsonSchema>> {
  const names = kinds.flatMap((kind) => [
    kind.schema,
    ...(kind.verbs.includes("list") ? [listSchema(kind)] : []),
    ...subSchemas(kind),
  ]);
  // the schemas of custom kinds refer to metadata's, and are not followed
  const meta = ["Status", "DeleteOptions", "ObjectMeta", "ListMeta"].map((name) => `${META}.${name}`);
  const schemas = await componentSchemas([...names, ...meta], prefix);
  for (const kind of kinds) {
    if (custom && kind.decode)
      Object.assign(schemas, await custom.schemasOf(kind, prefix === "#/definitions/" ? "v2" : "v3"));
    for (const [name, marked] of [
      [kind.schema, kind.kind],
      [listSchema(kind), kind.listKind],
    ] as const) {
      const schema = schemas[name];
      if (schema && !hasKind(schema, marked)) schemas[name] = markKind(schema, { ...kind, kind: marked });
    }
  }
  return schemas;
}

function hasKind(schema: JsonSchema, kind: string): boolean {
  return ((schema["x-kubernetes-group-version-kind"] as { kind: string }[] | undefined) ?? []).some(
    (one) => one.kind === kind,
  );
}

const listSchema = (kind: KindInfo) => kind.schema.replace(/\.[^.]+$/, `.${kind.listKind}`);

function subSchemas(kind: KindInfo): string[] {
  return kind.subresources
    .filter((sub) => sub.kind !== kind.kind)
    .map(
      (sub) =>
        `io.k8s.api.${(sub.group ?? kind.group).split(".")[0] || "core"}.${sub.version ?? kind.version}.${sub.kind}`,
    );
}

/** Swagger 2 knows neither `oneOf` nor a reference with something beside it wrapped in `allOf`. */
function inSwagger(value: Record<string, JsonSchema>): Record<string, JsonSchema> {
  const walk = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(walk);
    if (typeof node !== "object" || node === null) return node;
    const { oneOf, allOf, ...rest } = node as JsonSchema;
    const copy: JsonSchema = Object.fromEntries(Object.entries(rest).map(([key, item]) => [key, walk(item)]));
    if (Array.isArray(oneOf)) copy.type = "string";
    if (Array.isArray(allOf)) {
      delete copy.default;
      Object.assign(copy, allOf[0]);
    }
    return copy;
  };
  return walk(value) as Record<string, JsonSchema>;
}

const openApi3Dialect: Dialect = {
  ref: (name) => ({ $ref: `#/components/schemas/${name}` }),
  parameter: (name, at, type, description) => ({
    name,
    in: at,
    description,
    ...(at === "path" ? { required: true } : {}),
    schema: { type, uniqueItems: true },
  }),
  body: (types, schema) => ({
    requestBody: { content: Object.fromEntries(types.map((type) => [type, { schema }])), required: true },
  }),
  responses: (schema) => ({
    responses: {
      200: { description: "OK", content: { "application/json": { schema }, "application/yaml": { schema } } },
      401: { description: "Unauthorized" },
    },
  }),
};

const swaggerDialect: Dialect = {
  ref: (name) => ({ $ref: `#/definitions/${name}` }),
  parameter: (name, at, type, description) => ({
    name,
    in: at,
    description,
    ...(at === "path" ? { required: true } : {}),
    type,
    uniqueItems: true,
  }),
  body: (types, schema) => ({ consumes: types, parameters: [{ name: "body", in: "body", required: true, schema }] }),
  responses: (schema) => ({
    produces: ["application/json", "application/yaml"],
    responses: { 200: { description: "OK", schema }, 401: { description: "Unauthorized" } },
  }),
};
