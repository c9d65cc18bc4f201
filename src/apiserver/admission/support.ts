import { type ApiObject, forbidden, type Resource, type StatusError } from "#kinds";
import type { AdmissionAttributes } from "../ports.ts";

/** True when the call is about this resource (any version) and subresource (default: the resource itself). */
export function isAbout(attributes: AdmissionAttributes, resource: Resource, subresource = ""): boolean {
  return (
    attributes.kind.resource === resource.resource &&
    attributes.kind.group === resource.group &&
    attributes.subresource === subresource
  );
}

/** Refuses the call as admission plugins do: `pods "web" is forbidden: <why>`. */
export function refuse(attributes: AdmissionAttributes, why: string): StatusError {
  const meta = attributes.object?.metadata;
  return forbidden(attributes.kind, attributes.name || meta?.name || meta?.generateName || "Unknown", why);
}

/** The object of the call as a type of its kind: `handles` has made sure of the kind. */
export const objectOf = <T>(attributes: AdmissionAttributes): T => attributes.object as T;
export const oldOf = <T>(attributes: AdmissionAttributes): T => attributes.old as T;

/** `namespace/name`, or the name alone. */
export const keyOf = (object: ApiObject): string =>
  object.metadata.namespace ? `${object.metadata.namespace}/${object.metadata.name}` : object.metadata.name;

/** Several faults in one text, each once, as Kubernetes joins them. */
export function aggregate(errors: readonly string[]): string {
  const texts = [...new Set(errors)];
  return texts.length === 1 ? texts[0]! : `[${texts.join(", ")}]`;
}
