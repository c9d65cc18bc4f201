import type { DeepReadonly } from "#base";
import { apiVersionOf, type ApiObject, type OwnerReferenceLike, type Resource } from "./object.ts";

/** The owner that manages this object (`controller: true`), if any. */
export function controllerOf(object: DeepReadonly<Pick<ApiObject, "metadata">>): OwnerReferenceLike | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller) as OwnerReferenceLike | undefined;
}

/** True when `owner` manages `object`. */
export function isControlledBy(
  object: DeepReadonly<Pick<ApiObject, "metadata">>,
  owner: DeepReadonly<Pick<ApiObject, "metadata">>,
): boolean {
  return owner.metadata.uid !== undefined && controllerOf(object)?.uid === owner.metadata.uid;
}

/** The reference that makes `owner` the controller of an object, blocking its foreground deletion. */
export function controllerReference(
  owner: DeepReadonly<Pick<ApiObject, "metadata">>,
  resource: Pick<Resource, "group" | "version" | "kind">,
): OwnerReferenceLike {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}
