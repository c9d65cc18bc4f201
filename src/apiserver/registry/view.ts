import { type ApiObject, apiVersionOf, type KindInfo } from "#kinds";
import type { StoredObject } from "#store";

/** A stored object as one version of its kind shows it. */
export interface View {
  readonly stored: StoredObject;
  readonly object: ApiObject;
  json(): Buffer;
}

const converted = new WeakMap<StoredObject, Map<KindInfo, { object: ApiObject; bytes?: Buffer }>>();

/** The object in the version asked for. Without a conversion it is the stored one, bytes included. */
export function viewOf(kind: KindInfo, stored: StoredObject): View {
  if (!kind.fromStorage) return { stored, object: stored.object as ApiObject, json: () => stored.json() };
  const known = converted.get(stored) ?? new Map();
  converted.set(stored, known);
  let entry = known.get(kind) as { object: ApiObject; bytes?: Buffer } | undefined;
  if (!entry) {
    entry = { object: kind.fromStorage(stored.object as ApiObject) };
    known.set(kind, entry);
  }
  const found = entry;
  return {
    stored,
    object: found.object,
    json() {
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
