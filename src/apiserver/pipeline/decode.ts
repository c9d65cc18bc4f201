import { parseDocument } from "yaml";
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
import { scanJson } from "#base";

/** A private copy of the body as JSON value; undefined without one. @throws StatusError 400, 415 */
export function readBody(request: ApiRequest): unknown {
  return parseBody(request, badRequest)?.value;
}

interface Parsed {
  readonly value: unknown;
  /** The text, where a field may stand in it twice. */
  readonly text?: { readonly source: string; readonly yaml: boolean };
}

/** @param unreadable makes the error for a text that is neither JSON nor YAML */
function parseBody(request: ApiRequest, unreadable: (why: string) => Error): Parsed | undefined {
  const { body } = request;
  if (!body) return undefined;
  if ("object" in body) return { value: deepClone(body.object) };
  const type = mediaType(request);
  if (type === PROTOBUF) return { value: decodeProtobuf(body.bytes) };
  const source = body.bytes.toString("utf8");
  if (type === "application/yaml" || type.endsWith("+yaml"))
    return { value: yamlValue(source, unreadable), text: { source, yaml: true } };
  if (type === "application/json" || type.endsWith("+json") || type === "")
    return { value: jsonValue(source, unreadable), text: { source, yaml: false } };
  throw unknownFormat();
}

function unknownFormat(): Error {
  return failure(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, ${PROTOBUF}`,
  );
}

/** `application/json`, without parameters. */
export function mediaType(request: ApiRequest): string {
  return (request.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase();
}

function jsonValue(text: string, unreadable: (why: string) => Error): unknown {
  try {
    return JSON.parse(text, (key, value) => (key === "__proto__" ? undefined : value));
  } catch (error) {
    const why = scanJson(text).error ?? (error as Error).message;
    throw unreadable(`couldn't get version/kind; json parse error: ${why}`);
  }
}

/** The first document; of a key that stands twice the last counts, as in the original. */
function yamlValue(text: string, unreadable: (why: string) => Error): unknown {
  const document = parseDocument(text, { uniqueKeys: false });
  const error = document.errors.find(({ code }) => code !== "MULTIPLE_DOCS");
  if (error) {
    const line = error.linePos?.[0].line;
    const [why = ""] = error.message.split(/ at line \d|\n/);
    throw unreadable(`yaml: ${line === undefined ? "" : `line ${line}: `}${why}`);
  }
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw unreadable(`yaml: ${(error as Error).message}`);
  }
}

/**
 * The body as an object of the kind, fields checked as `fieldValidation` asks (default Warn for clients that don't say), types
 * always. @throws StatusError 400, 415
 */
export function decodeObject(call: Call, kind: KindInfo = call.kind): ApiObject {
  const { request } = call;
  const bytes = request.body && "bytes" in request.body ? request.body.bytes : Buffer.alloc(0);
  const unrecognized = (why: string) =>
    badRequest(`the object provided is unrecognized (must be of type ${kind.kind}): ${why} (${summary(bytes)})`);
  const parsed = parseBody(request, unrecognized);
  if (!parsed && !["", "application/json", "application/yaml", PROTOBUF].includes(mediaType(request)))
    throw unknownFormat();
  if (!parsed && mediaType(request) !== "application/yaml")
    throw unrecognized("couldn't get version/kind; json parse error: unexpected end of JSON input");
  return asObject(call, parsed?.value ?? {}, kind, { unrecognized, duplicates: duplicatesOf(call, parsed?.text) });
}

/** The first bytes of a body, as errors show them: an object as text, anything else in hexadecimal digits. */
function summary(bytes: Buffer): string {
  if (bytes.length === 0) return "<empty>";
  const head = bytes.subarray(0, SUMMARY_BYTES);
  return head.toString(bytes[0] === 0x7b ? "utf8" : "hex") + (bytes.length > SUMMARY_BYTES ? " ..." : "");
}
const SUMMARY_BYTES = 30;

/** What is known of a body beside its value. */
export interface BodyFacts {
  /** Makes the error for what is no object of any kind. */
  readonly unrecognized?: (why: string) => Error;
  /** Fields that stand twice in it, as warnings tell them. */
  readonly duplicates?: readonly string[];
}

/** Fields that stand twice in the body; nobody looks for them where `fieldValidation` is Ignore. */
export function duplicatesIn(call: Call): readonly string[] {
  const { body } = call.request;
  if (!body || "object" in body) return [];
  const type = mediaType(call.request);
  if (type === PROTOBUF) return [];
  return duplicatesOf(call, { source: body.bytes.toString("utf8"), yaml: type.endsWith("yaml") });
}

function duplicatesOf(call: Call, text: Parsed["text"]): readonly string[] {
  if (!text || fieldValidationOf(call) === "Ignore") return [];
  if (!text.yaml) return scanJson(text.source).duplicates.map((path) => `duplicate field "${path}"`);
  return yamlDuplicates(text.source);
}

function yamlDuplicates(text: string): string[] {
  return parseDocument(text)
    .errors.filter(({ code }) => code === "DUPLICATE_KEY")
    .map(({ linePos, pos }) => {
      const key = /^["']?([^"':\s]*)/.exec(text.slice(pos[0]))?.[1] ?? "";
      return `line ${linePos?.[0].line}: key "${key}" already set in map`;
    });
}

function fieldValidationOf(call: Call): string {
  return call.request.query.get("fieldValidation") || "Warn";
}

export function asObject(
  call: Call,
  value: unknown,
  kind: KindInfo,
  { unrecognized = badRequest, duplicates = [] }: BodyFacts = {},
): ApiObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw unrecognized(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${kindOfJson(value)} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
    );
  }
  const object = value as ApiObject;
  const expected = apiVersionOf(kind);
  const apiVersion = object.apiVersion || expected;
  if (kind.decode) checkCustomType(object, expected, unrecognized);
  const name = kind.decode ? kind.kind : object.kind || kind.kind;
  if (typeof apiVersion !== "string" || typeof name !== "string")
    throw unrecognized("couldn't get version/kind; json parse error: kind and apiVersion must be strings");
  if (apiVersion !== expected || name !== kind.kind) {
    const known = call.server.scheme.byKind(apiVersion, name);
    const cannot = (why: string) => badRequest(typeErrorMessage(kind.kind, versionOf(apiVersion), why, name));
    if (!known)
      throw cannot(`no kind "${name}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:110"`);
    throw cannot(`converting (${goType(apiVersion, name)}) to (${internalType(kind)}): unknown conversion`);
  }
  if (!kind.decode) object.kind = name;
  object.apiVersion = apiVersion;
  const forgets = isEmptyList(object.metadata?.managedFields);
  checkObject(call, object, kind, duplicates);
  object.metadata ??= {} as ApiObject["metadata"];
  // an empty list is as good as none everywhere but here: it asks to forget who owns the fields
  if (forgets) object.metadata.managedFields = [];
  return object;
}

const isEmptyList = (value: unknown) => Array.isArray(value) && value.length === 0;

/** Custom resources say what they are; a wrong kind is told with all else that is wrong. */
function checkCustomType(object: ApiObject, expected: string, unrecognized: (why: string) => Error): void {
  if (!object.kind) throw unrecognized(`Object 'Kind' is missing in '${JSON.stringify(object)}'`);
  if ((object.apiVersion ?? "") !== expected)
    throw badRequest(
      `the API version in the data (${object.apiVersion ?? ""}) does not match the expected API version (${expected})`,
    );
}

/** Types and unknown fields. Custom resources do this with their own schema (`schema` is then unknown here). */
export function checkObject(call: Call, object: ApiObject, kind: KindInfo, duplicates: readonly string[] = []): void {
  if (kind.decode) {
    const cannot = (why: string) =>
      badRequest(call.info.verb === "patch" ? why : typeErrorMessage(kind.kind, versionOf(object.apiVersion), why));
    const { unknown, error } = kind.decode(object);
    if (error) throw cannot(error);
    reportCustom(call, [...duplicates, ...unknown], cannot);
    return;
  }
  const { unknown, typeErrors } = checkFields(object, kind.schema);
  if (typeErrors[0] !== undefined)
    throw badRequest(typeErrorMessage(kind.kind, versionOf(object.apiVersion), typeErrors[0]));
  reportUnknown(call, inOrder(call, unknown, duplicates), kind, object.apiVersion);
}

/** What is wrong with a JSON body, in the order in which it stands there; of YAML the text is looked at first. */
function inOrder(call: Call, unknown: readonly string[], duplicates: readonly string[]): readonly string[] {
  const { body } = call.request;
  if (unknown.length === 0 || duplicates.length === 0) return [...duplicates, ...unknown];
  if (!body || "object" in body || mediaType(call.request).endsWith("yaml")) return [...duplicates, ...unknown];
  const { places } = scanJson(body.bytes.toString("utf8"), { places: true });
  const placeOf = (text: string) => places?.get(/"(.*)"$/.exec(text)?.[1] ?? "") ?? 0;
  return [...duplicates, ...unknown].sort((a, b) => placeOf(a) - placeOf(b));
}

function reportUnknown(call: Call, unknown: readonly string[], kind: KindInfo, apiVersion: string): void {
  if (unknown.length === 0) return;
  const mode = fieldValidationOf(call);
  if (mode === "Strict") {
    throw badRequest(
      `${kind.kind} in version "${versionOf(apiVersion)}" cannot be handled as a ${kind.kind}: ${strictErrorMessage(gathered(unknown))}`,
    );
  }
  if (mode === "Warn") for (const text of unknown) call.warnings.add(text);
}

function reportCustom(call: Call, texts: readonly string[], cannot: (why: string) => Error): void {
  if (texts.length === 0) return;
  const mode = fieldValidationOf(call);
  if (mode === "Strict") throw cannot(strictErrorMessage(gathered(texts)));
  if (mode === "Warn") for (const text of texts) call.warnings.add(text);
}

/** The YAML parser's findings are one error. */
function gathered(texts: readonly string[]): string[] {
  const ofYaml = texts.filter((text) => text.startsWith("line "));
  const others = texts.filter((text) => !text.startsWith("line "));
  return ofYaml.length === 0 ? others : [["yaml: unmarshal errors:", ...ofYaml].join("\n  "), ...others];
}

/** `v1.Secret`: how Go names the type of a version's kind. */
function goType(apiVersion: string, kind: string): string {
  return `${versionOf(apiVersion)}.${kind}`;
}

/** `core.ConfigMap`: how Go names the type that all versions of a kind become. */
export function internalType({ group, kind }: KindInfo): string {
  return `${group === "" ? "core" : group.split(".")[0]}.${kind}`;
}

function versionOf(apiVersion: string): string {
  return apiVersion.slice(apiVersion.indexOf("/") + 1);
}

function kindOfJson(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}
