import type { ApiObject, KindInfo } from "#kinds";
import type { JsonSchema } from "../schema/json-schema.ts";
import { coerceMetadata } from "../schema/metadata.ts";
import { prune } from "../schema/prune.ts";

/** Reads custom resources from requests: types of metadata checked, unknown fields removed and given. */
export function customDecoder(schema: JsonSchema): NonNullable<KindInfo["decode"]> {
  return (object: ApiObject) => {
    const { unknown: inMetadata, error } = coerceMetadata(object, schema);
    if (error) return { unknown: [], error: error.message.replace(/^Invalid value: .*?: (?=json: )/, "") };
    const unknown = [...prune(object, schema), ...inMetadata];
    return { unknown: unknown.map((path) => `unknown field ${JSON.stringify(path)}`), error: undefined };
  };
}
