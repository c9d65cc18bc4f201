import { failure, type KindInfo, type StatusError } from "#kinds";
import type { RequestInfo } from "../ports.ts";

/** What is served where: collections, objects and subresources, each with the methods that its kind has. */

/** 404 for a path below a group that is served, where nothing is. */
export function pathNotServed(): StatusError {
  return failure(404, "NotFound", "the server could not find the requested resource", {});
}

/** 405 for a path that is there, with another method. */
export function methodNotAllowed(): StatusError {
  return failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {});
}

/** @throws StatusError 404 when the kind has nothing at the path, 405 when not by this method */
export function checkRoute(kind: KindInfo, info: RequestInfo, method: string): void {
  // a proxied site knows itself which methods it has
  if ((method === "HEAD" || method === "OPTIONS") && info.subresource !== "proxy") throw methodNotAllowed();
  const inNamespace = info.namespace !== "";
  if (!kind.namespaced && inNamespace && info.resource !== "namespaces") throw pathNotServed();
  if (kind.namespaced && !inNamespace && info.name) throw pathNotServed();
  // which methods a subresource has is looked at where it is carried out
  if (info.subresource) return;
  const methods = info.name ? methodsOfObject(kind) : methodsOfCollection(kind, inNamespace);
  if (methods.length === 0) throw pathNotServed();
  if (!methods.includes(method)) throw methodNotAllowed();
}

function methodsOfObject({ verbs }: KindInfo): string[] {
  return OBJECT_METHODS.filter(([verb]) => verbs.includes(verb)).map(([, method]) => method);
}

/** Across all namespaces a collection is only read. */
function methodsOfCollection({ namespaced, verbs }: KindInfo, inNamespace: boolean): string[] {
  return COLLECTION_METHODS.filter(([verb]) => verbs.includes(verb))
    .map(([, method]) => method)
    .filter((method) => method === "GET" || inNamespace || !namespaced);
}

const OBJECT_METHODS = [
  ["get", "GET"],
  ["update", "PUT"],
  ["patch", "PATCH"],
  ["delete", "DELETE"],
] as const;
const COLLECTION_METHODS = [
  ["list", "GET"],
  ["create", "POST"],
  ["deletecollection", "DELETE"],
] as const;
