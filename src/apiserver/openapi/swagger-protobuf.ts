import { stringify as toYaml } from "yaml";
import type { JsonSchema } from "./schemas.ts";

/** The media types by which clients ask for this form. */
export const SWAGGER_PROTOBUF: RegExp = /application\/com\.github\.proto-openapi\.spec\.v2[.@]v1\.0\+protobuf/;

/**
 * The schemas of a Swagger document as an `openapi.v2.Document` in protobuf, the one form that kubectl reads. Paths and descriptions of
 * requests are left out: no client looks for them here.
 * @see https://github.com/google/gnostic-models (openapiv2/OpenAPIv2.proto), whose field numbers these are
 */
export function encodeSwagger(document: {
  readonly swagger: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly definitions: Readonly<Record<string, JsonSchema>>;
}): Buffer {
  const { swagger, info, definitions } = document;
  return message(
    text(1, swagger),
    field(2, message(text(1, info.title), text(2, info.version))),
    field(8, message()),
    field(9, named(1, definitions)),
  );
}

/** A map of schemas: `NamedSchema` entries in the field `number`. */
function named(number: number, schemas: Readonly<Record<string, JsonSchema>>): Buffer {
  return message(
    ...Object.entries(schemas).map(([name, schema]) =>
      field(number, message(text(1, name), field(2, schemaOf(schema)))),
    ),
  );
}

function schemaOf(schema: JsonSchema): Buffer {
  const { $ref, format, description, type, items, properties, additionalProperties: others, required } = schema;
  return message(
    ...(typeof $ref === "string" ? [text(1, $ref)] : []),
    ...(typeof format === "string" ? [text(2, format)] : []),
    ...(typeof description === "string" ? [text(4, description)] : []),
    ...(schema.default === undefined ? [] : [field(5, any(schema.default))]),
    ...(Array.isArray(required) ? required.map((name) => text(19, String(name))) : []),
    ...(typeof others === "object" && others ? [field(21, message(field(1, schemaOf(others as JsonSchema))))] : []),
    ...(others === true ? [field(21, message(Buffer.from([TWO << 3, 1])))] : []),
    ...(typeof type === "string" ? [field(22, message(text(1, type)))] : []),
    ...(typeof items === "object" && items ? [field(23, message(field(1, schemaOf(items as JsonSchema))))] : []),
    ...(typeof properties === "object" && properties
      ? [field(25, named(1, properties as Record<string, JsonSchema>))]
      : []),
    ...Object.entries(schema)
      .filter(([key]) => key.startsWith("x-"))
      .map(([key, value]) => field(31, message(text(1, key), field(2, any(value))))),
  );
}
/** Number of the boolean in AdditionalPropertiesItem. */
const TWO = 2;

/** A value of any kind, which the form carries as YAML. */
function any(value: unknown): Buffer {
  return message(text(2, toYaml(value, { version: "1.1" })));
}

function message(...parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts);
}

const text = (number: number, value: string): Buffer => field(number, Buffer.from(value));

/** A field whose length comes before it. */
function field(number: number, value: Buffer): Buffer {
  return Buffer.concat([varint((number << 3) | 2), varint(value.length), value]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
