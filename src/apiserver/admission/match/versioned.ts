import { type ApiObject, apiVersionOf, type KindInfo } from "#kinds";
import type { AdmissionAttributes } from "../../ports.ts";
import { scaleOf } from "../../subresources/scale.ts";

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A call as somebody sees it who asked for another version of its resource. */
export interface VersionedCall {
  readonly kind: GroupVersionKind;
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
}

/** Group, version and kind of the objects of a call: a subresource may have its own. */
export function kindOfCall(kind: KindInfo, subresource: string): GroupVersionKind {
  const sub = subresource ? kind.subresources.find(({ name }) => name === subresource) : undefined;
  return { group: sub?.group ?? kind.group, version: sub?.version ?? kind.version, kind: sub?.kind ?? kind.kind };
}

export function versionedCall(attributes: AdmissionAttributes, wanted: KindInfo): VersionedCall {
  const kind = kindOfCall(wanted, attributes.subresource);
  const apiVersion = apiVersionOf(kind);
  const see = (object: ApiObject | undefined): ApiObject | undefined => {
    if (!object) return undefined;
    if (attributes.subresource === "scale") return scaleOf(attributes.kind, object);
    return { ...convert(object, attributes.kind, wanted), apiVersion, kind: kind.kind };
  };
  return { kind, object: see(attributes.object), old: see(attributes.old) };
}

/** An object of one version of a kind in another version of it. */
export function convert(object: ApiObject, from: KindInfo, to: KindInfo): ApiObject {
  if (from === to) return object;
  const stored = from.toStorage ? from.toStorage(object) : object;
  return to.fromStorage ? to.fromStorage(stored) : { ...stored, apiVersion: apiVersionOf(to), kind: to.kind };
}
