import type { ApiObject } from "#kinds";
import type { Call } from "../pipeline/call.ts";

/** Keeps `metadata.managedFields` of an ordinary write. `old` is absent for a create. */
export function trackUpdate(_call: Call, object: ApiObject, old: ApiObject | undefined): void {
  if (old?.metadata.managedFields) object.metadata.managedFields = old.metadata.managedFields;
  else delete object.metadata.managedFields;
}
