import assert from "node:assert/strict";
import test from "node:test";
import { bytesOf, wireFields } from "../negotiation/protobuf/wire.ts";
import { encodeSwagger, SWAGGER_PROTOBUF } from "./swagger-protobuf.ts";

/** The fields with a number, as bytes. */
const at = (bytes: Buffer, number: number): Buffer[] =>
  [...wireFields(bytes)].filter((field) => field.number === number).map(bytesOf);
const textAt = (bytes: Buffer, number: number) => at(bytes, number).map(String);

test("a Swagger document is an openapi.v2.Document: definitions with their properties, references and extensions", () => {
  const kinds = [{ group: "", kind: "Thing", version: "v1" }];
  const document = encodeSwagger({
    swagger: "2.0",
    info: { title: "Kubernetes", version: "v1.36.3" },
    definitions: {
      Thing: {
        description: "d".repeat(300),
        type: "object",
        required: ["spec"],
        properties: { spec: { $ref: "#/definitions/Spec" }, tags: { type: "array", items: { type: "string" } } },
        "x-kubernetes-group-version-kind": kinds,
      },
    },
  });
  assert.deepEqual(textAt(document, 1), ["2.0"]);
  const [definitions] = at(document, 9);
  const [thing] = at(definitions!, 1);
  assert.deepEqual(textAt(thing!, 1), ["Thing"]);
  const [schema] = at(thing!, 2);
  assert.deepEqual(textAt(schema!, 4), ["d".repeat(300)]);
  assert.deepEqual(textAt(schema!, 19), ["spec"]);
  assert.deepEqual(textAt(at(schema!, 22)[0]!, 1), ["object"]);
  const properties = at(at(schema!, 25)[0]!, 1);
  assert.deepEqual(
    properties.map((one) => textAt(one, 1)[0]),
    ["spec", "tags"],
  );
  assert.deepEqual(textAt(at(properties[0]!, 2)[0]!, 1), ["#/definitions/Spec"]);
  const [extension] = at(schema!, 31);
  assert.deepEqual(textAt(extension!, 1), ["x-kubernetes-group-version-kind"]);
  assert.match(textAt(at(extension!, 2)[0]!, 2)[0]!, /kind: Thing/);
});

test("both spellings of the media type are known", () => {
  for (const type of ["v2.v1.0", "v2@v1.0"])
    assert.match(`application/com.github.proto-openapi.spec.${type}+protobuf`, SWAGGER_PROTOBUF);
});
