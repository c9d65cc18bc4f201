import { deepEqual } from "#base";
import { type ApiObject, apiVersionOf, checkFields, type KindInfo } from "#kinds";
import type { AdmissionAttributes } from "../../ports.ts";
import { convert } from "./versioned.ts";

/**
 * Puts what somebody made of the object of a call in its place: as if a client had sent it, unknown fields dropped and defaults
 * set. `seen` is the version that it was made in. True when it differs from what was there.
 */
export function replaceObject(attributes: AdmissionAttributes, changed: ApiObject, seen: KindInfo): boolean {
  const { kind } = attributes;
  const object = convert(changed, seen, kind);
  object.kind = kind.kind;
  object.apiVersion = apiVersionOf(kind);
  if (kind.decode) kind.decode(object);
  else checkFields(object, kind.schema);
  kind.strategy.setDefaults(object);
  const differs = !deepEqual(object, attributes.object);
  attributes.object = object;
  return differs;
}
