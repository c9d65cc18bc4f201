import { type ApiObject, badRequest, strictErrorMessage } from "#kinds";
import type { JsonSchema } from "../schema/json-schema.ts";
import { coerceMetadata } from "../schema/metadata.ts";
import { prune } from "../schema/prune.ts";

/** Reads custom resources from requests: types of metadata checked, unknown fields told and removed. */
export function customDecoder(schema: JsonSchema) {
  return (object: ApiObject, warnings: Set<string>, fieldValidation: string): void => {
    const { unknown: inMetadata, error } = coerceMetadata(object, schema);
    if (error) throw badRequest(`${error.field}: ${error.message}`);
    const unknown = [...prune(object, schema), ...inMetadata].map((path) => `unknown field ${JSON.stringify(path)}`);
    if (unknown.length === 0 || fieldValidation === "Ignore") return;
    if (fieldValidation === "Strict") throw badRequest(strictErrorMessage(unknown));
    for (const text of unknown) warnings.add(text);
  };
}
