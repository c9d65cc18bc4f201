import { badRequest, type Schema, type SchemaField, schemaNameOf, schemaOf } from "#kinds";
import { fieldNumbers } from "./field-numbers.ts";
import { bytesOf, integerOf, wireFields, type WireField } from "./wire.ts";

type Fields = Record<string, unknown>;

export const PROTOBUF = "application/vnd.kubernetes.protobuf";

/** Every encoded object begins so. */
const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0]);

interface NumberedField {
  readonly name: string;
  /** Message type of fields that stand inline in JSON. */
  readonly inline: string | undefined;
}

let messages: Map<string, string> | undefined;
const decoded = new Map<string, ReadonlyMap<number, NumberedField>>();

/**
 * A request body in Kubernetes' protobuf encoding (`k8s\0` and a `runtime.Unknown`) as the JSON value that it stands for.
 * @throws StatusError 400
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
 */
export function decodeProtobuf(body: Buffer): unknown {
  if (!body.subarray(0, 4).equals(MAGIC))
    throw badRequest("the body of the request is not in Kubernetes' protobuf encoding: it lacks the prefix k8s\\0");
  try {
    return decodeUnknown(body.subarray(4));
  } catch (error) {
    throw badRequest(`couldn't decode the protobuf body: ${(error as Error).message}`);
  }
}

/** runtime.Unknown: 1 typeMeta, 2 raw, 3 contentEncoding, 4 contentType. */
function decodeUnknown(bytes: Buffer): unknown {
  let apiVersion = "";
  let kind = "";
  let raw: Buffer = Buffer.alloc(0);
  for (const field of wireFields(bytes)) {
    if (field.number === 1) {
      for (const part of wireFields(bytesOf(field))) {
        if (part.number === 1) apiVersion = bytesOf(part).toString("utf8");
        if (part.number === 2) kind = bytesOf(part).toString("utf8");
      }
    } else if (field.number === 2) raw = bytesOf(field);
  }
  const slash = apiVersion.indexOf("/");
  const name = META_KINDS.has(kind)
    ? `${META}.${kind}`
    : schemaNameOf(slash < 0 ? "" : apiVersion.slice(0, slash), apiVersion.slice(slash + 1), kind);
  const schema = schemaOf(name);
  if (!schema) throw new Error(`no kind "${kind}" is registered for version "${apiVersion}"`);
  return { apiVersion, kind, ...decodeMessage(raw, name, schema) };
}

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
const META_KINDS = new Set(["DeleteOptions", "Status", "CreateOptions", "UpdateOptions", "PatchOptions"]);

/** `type` names the message whose numbers count; `schema` has the JSON fields (the parent's for an inline message). */
function decodeMessage(bytes: Buffer, type: string, schema: Schema): Fields {
  const numbers = numbersOf(type);
  const result: Fields = {};
  for (const wire of wireFields(bytes)) {
    const known = numbers.get(wire.number);
    if (!known) continue;
    if (known.inline) Object.assign(result, decodeMessage(bytesOf(wire), known.inline, schema));
    else {
      const field = schema.fields.get(known.name);
      if (field) put(result, field, wire);
    }
  }
  return result;
}

function put(target: Fields, field: SchemaField, wire: WireField): void {
  if (field.shape === "one") target[field.name] = scalarOf(field, wire);
  else if (field.shape === "list") {
    target[field.name] ??= [];
    const list = target[field.name] as unknown[];
    if (Buffer.isBuffer(wire.value) && PACKABLE.has(field.type)) list.push(...packed(wire.value));
    else list.push(scalarOf(field, wire));
  } else {
    target[field.name] ??= {};
    const map = target[field.name] as Fields;
    const [key, value] = mapEntry(field, bytesOf(wire));
    if (key !== "__proto__") map[key] = value;
  }
}

const PACKABLE = new Set(["int32", "int64", "bool"]);

function packed(bytes: Buffer): number[] {
  // a packed list is varints without tags: read each as if it had one
  const values: number[] = [];
  let start = 0;
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i]! >= 0x80) continue;
    const [field] = wireFields(Buffer.concat([Buffer.from([0x08]), bytes.subarray(start, i + 1)]));
    values.push(integerOf(field!));
    start = i + 1;
  }
  return values;
}

function mapEntry(field: SchemaField, bytes: Buffer): [string, unknown] {
  let key = "";
  let value: unknown;
  for (const part of wireFields(bytes)) {
    if (part.number === 1) key = bytesOf(part).toString("utf8");
    if (part.number === 2) value = scalarOf(field, part);
  }
  return [key, value ?? emptyOf(field)];
}

function emptyOf(field: SchemaField): unknown {
  return field.type === "object" ? {} : field.type === "array" ? [] : field.type === "quantity" ? "0" : "";
}

function scalarOf(field: SchemaField, wire: WireField): unknown {
  switch (field.type) {
    case "string":
      return bytesOf(wire).toString("utf8");
    case "int32":
    case "int64":
      return integerOf(wire);
    case "bool":
      return integerOf(wire) !== 0;
    case "float64":
      return wire.value as number;
    case "bytes":
      return bytesOf(wire).toString("base64");
    case "object": {
      const schema = schemaOf(field.ref ?? "");
      return schema ? decodeMessage(bytesOf(wire), field.ref!, schema) : {};
    }
    default:
      return special(field, bytesOf(wire));
  }
}

/** Types that are a message of their own on the wire and something else in JSON. */
function special(field: SchemaField, bytes: Buffer): unknown {
  const parts = new Map<number, WireField>();
  for (const part of wireFields(bytes)) parts.set(part.number, part);
  const text = (number: number) => (parts.has(number) ? bytesOf(parts.get(number)!).toString("utf8") : "");
  const number = (at: number) => (parts.has(at) ? integerOf(parts.get(at)!) : 0);
  switch (field.type) {
    case "quantity":
      return text(1) || "0";
    case "time":
      return parts.size === 0 ? null : new Date(number(1) * 1000).toISOString().replace(".000Z", "Z");
    case "microtime":
      return parts.size === 0
        ? null
        : `${new Date(number(1) * 1000).toISOString().slice(0, 19)}.${String(Math.floor(number(2) / 1000)).padStart(6, "0")}Z`;
    case "intOrString":
      return number(1) === 0 ? number(2) : text(3);
    case "RawExtension":
    case "FieldsV1":
    case "JSON":
      return text(1) ? JSON.parse(text(1)) : null;
    case "JSONSchemaPropsOrArray":
      return parts.has(1)
        ? schemaProps(bytesOf(parts.get(1)!))
        : [...wireFields(bytes)].filter((part) => part.number === 2).map((part) => schemaProps(bytesOf(part)));
    case "JSONSchemaPropsOrBool":
      return parts.has(2) ? schemaProps(bytesOf(parts.get(2)!)) : number(1) !== 0;
    case "JSONSchemaPropsOrStringArray":
      return parts.has(1) ? schemaProps(bytesOf(parts.get(1)!)) : strings(bytes, 2);
    case "array":
      return strings(bytes, 1);
    default:
      return {};
  }
}

function strings(bytes: Buffer, number: number): string[] {
  return [...wireFields(bytes)].filter((part) => part.number === number).map((part) => bytesOf(part).toString("utf8"));
}

function schemaProps(bytes: Buffer): Fields {
  const name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
  return decodeMessage(bytes, name, schemaOf(name)!);
}

function numbersOf(type: string): ReadonlyMap<number, NumberedField> {
  let numbers = decoded.get(type);
  if (numbers) return numbers;
  messages ??= new Map(
    fieldNumbers
      .trim()
      .split("\n")
      .map((line) => line.split(": ", 2) as [string, string]),
  );
  numbers = new Map(
    (messages.get(type) ?? "")
      .split(" ")
      .filter(Boolean)
      .map((text) => {
        const [name = "", rest = ""] = text.split("=");
        const [number = "", inline] = rest.split(":");
        return [Number(number), { name, inline }];
      }),
  );
  decoded.set(type, numbers);
  return numbers;
}
