import { failure, internalError, type KindInfo, modified, notFound, type ApiObject } from "#kinds";
import { isStoreError } from "#store";

/** A fault of the store as the API's error; anything else as it is. */
export function throwStoreError(error: unknown, kind: KindInfo, name: string): never {
  if (isStoreError(error, "not-found")) throw notFound(kind, name);
  if (isStoreError(error, "conflict")) throw modified(kind, name);
  if (isStoreError(error, "full"))
    throw failure(507, "InsufficientStorage", `the write was not kept: ${error.message}`);
  if (isStoreError(error, "closed")) throw failure(503, "ServiceUnavailable", "the server is stopping");
  if (isStoreError(error)) throw internalError(error);
  throw error;
}

/** Leases of nodes lose their meaning on a restart; writing them down would keep an idle disk busy. */
export function isVolatile(kind: KindInfo, object: ApiObject): boolean {
  return kind.resource === "leases" && object.metadata.namespace === "kube-node-lease";
}
