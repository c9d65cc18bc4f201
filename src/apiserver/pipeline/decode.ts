import { parse as parseYaml } from "yaml";
import {
  type ApiObject,
  type ApiRequest,
  apiVersionOf,
  badRequest,
  checkFields,
  failure,
  type KindInfo,
  strictErrorMessage,
  typeErrorMessage,
} from "#kinds";
import { deepClone } from "#base";
import { decodeProtobuf, PROTOBUF } from "../negotiation/protobuf/decode.ts";
import type { Call } from "./call.ts";

/** A private copy of the body as JSON value; undefined without one. @throws StatusError 400, 415 */
export function readBody(request: ApiRequest): unknown {
  const { body } = request;
  if (!body) return undefined;
  if ("object" in body) return deepClone(body.object);
  const type = mediaType(request);
  if (type === PROTOBUF) return decodeProtobuf(body.bytes);
  const text = body.bytes.toString("utf8");
  if (type === "application/yaml" || type.endsWith("+yaml")) return yamlValue(text);
  if (type === "application/json" || type.endsWith("+json") || type === "") return jsonValue(text);
  throw failure(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`,
  );
}

/** `application/json`, without parameters. */
export function mediaType(request: ApiRequest): string {
  return (request.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase();
}

function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text, (key, value) => (key === "__proto__" ? undefined : value));
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${(error as Error).message}`);
  }
}

function yamlValue(text: string): unknown {
  try {
    return parseYaml(text, { maxAliasCount: 100 });
  } catch (error) {
    throw badRequest(`error converting YAML to JSON: ${(error as Error).message.split("\n")[0]}`);
  }
}

/**
 * The body as an object of the kind, fields checked as `fieldValidation` asks (default Warn for clients that don't say), types
 * always. @throws StatusError 400
 */
export function decodeObject(call: Call, kind: KindInfo = call.kind): ApiObject {
  const value = readBody(call.request);
  if (value === undefined) throw badRequest("the request has no body");
  return asObject(call, value, kind);
}

export function asObject(call: Call, value: unknown, kind: KindInfo): ApiObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw badRequest(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${kindOfJson(value)} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
    );
  }
  const object = value as ApiObject;
  const expected = apiVersionOf(kind);
  const apiVersion = object.apiVersion || expected;
  const name = object.kind || kind.kind;
  if (typeof apiVersion !== "string" || typeof name !== "string")
    throw badRequest("couldn't get version/kind; json parse error: kind and apiVersion must be strings");
  if (apiVersion !== expected || name !== kind.kind) {
    const known = call.server.scheme.byKind(apiVersion, name);
    if (!known && object.kind) {
      throw badRequest(
        `no kind "${name}" is registered for version "${apiVersion}" in scheme "pkg/api/legacyscheme/scheme.go:30"`,
      );
    }
    throw badRequest(
      apiVersion !== expected && name === kind.kind
        ? `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`
        : `${name} in version "${versionOf(apiVersion)}" cannot be handled as a ${kind.kind}: converting (${apiVersion}, Kind=${name}) to (${expected}, Kind=${kind.kind}): unknown conversion`,
    );
  }
  object.kind = name;
  object.apiVersion = apiVersion;
  checkObject(call, object, kind);
  object.metadata ??= {} as ApiObject["metadata"];
  return object;
}

/** Types and unknown fields. Custom resources do this with their own schema (`schema` is then unknown here). */
export function checkObject(call: Call, object: ApiObject, kind: KindInfo): void {
  if (kind.decode) {
    kind.decode(object, call.warnings, call.request.query.get("fieldValidation") ?? "Warn");
    return;
  }
  const { unknown, typeErrors } = checkFields(object, kind.schema);
  if (typeErrors[0] !== undefined)
    throw badRequest(typeErrorMessage(kind.kind, versionOf(object.apiVersion), typeErrors[0]));
  reportUnknown(call, unknown, kind, object.apiVersion);
}

function reportUnknown(call: Call, unknown: readonly string[], kind: KindInfo, apiVersion: string): void {
  if (unknown.length === 0) return;
  const mode = call.request.query.get("fieldValidation") || "Warn";
  if (mode === "Strict") {
    throw badRequest(
      `${kind.kind} in version "${versionOf(apiVersion)}" cannot be handled as a ${kind.kind}: ${strictErrorMessage(unknown)}`,
    );
  }
  if (mode === "Warn") for (const text of unknown) call.warnings.add(text);
}

function versionOf(apiVersion: string): string {
  return apiVersion.slice(apiVersion.indexOf("/") + 1);
}

function kindOfJson(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}
