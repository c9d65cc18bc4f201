import { type ApiObject, apiVersionOf, type KindInfo } from "#kinds";
import type { StoredObject } from "#store";

/** A stored object as one version of its kind shows it. */
export interface View {
  readonly stored: StoredObject;
  readonly object: ApiObject;
  json(): Buffer;
}

interface Converted {
  readonly object: ApiObject;
  bytes?: Buffer;
}

/** By kind too, weakly: the kinds of custom resources come and go. */
const converted = new WeakMap<StoredObject, WeakMap<KindInfo, Converted>>();

/** The object in the version asked for. Without a conversion it is the stored one, bytes included. */
export function viewOf(kind: KindInfo, stored: StoredObject): View {
  if (!kind.fromStorage) return { stored, object: stored.object as ApiObject, json: () => stored.json() };
  const known = converted.get(stored) ?? new WeakMap<KindInfo, Converted>();
  converted.set(stored, known);
  let entry = known.get(kind);
  if (!entry) {
    entry = { object: kind.fromStorage(stored.object as ApiObject) };
    known.set(kind, entry);
  }
  const found = entry;
  return {
    stored,
    object: found.object,
    json() {
      if (found.object === stored.object) return stored.json();
      found.bytes ??= Buffer.from(JSON.stringify(found.object));
      return found.bytes;
    },
  };
}

/** The object as it is kept: in the storage's version, `kind` and `apiVersion` first, so that lists can leave them out. */
export function toStored(kind: KindInfo, object: ApiObject): ApiObject {
  const source = kind.toStorage ? kind.toStorage(object) : object;
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = source;
  return { kind: kind.kind, apiVersion: apiVersionOf(kind.storage), metadata, ...rest };
}

/** What every stored JSON of the kind starts with. */
export function headOf(kind: KindInfo): string {
  return `{"kind":${JSON.stringify(kind.kind)},"apiVersion":${JSON.stringify(apiVersionOf(kind))},`;
}
