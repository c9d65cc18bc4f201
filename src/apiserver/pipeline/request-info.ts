import type { ApiRequest } from "#kinds";
import type { RequestInfo } from "../ports.ts";

/** Subresources of a namespace itself; anything else behind its name is a resource in it. */
const NAMESPACE_SUBRESOURCES = new Set(["status", "finalize"]);

/** Reads what a request asks for from its method, path and query. */
export function requestInfoOf(request: Pick<ApiRequest, "method" | "path" | "query">): RequestInfo {
  const { method, path, query } = request;
  const parts = path.split("/").filter((part) => part !== "");
  const [root] = parts;
  const none = { group: "", version: "", resource: "", subresource: "", namespace: "", name: "", rest: [] };
  const other: RequestInfo = { ...none, isResourceRequest: false, verb: method.toLowerCase(), path };
  if (root !== "api" && root !== "apis") return other;
  const head = root === "api" ? 2 : 3;
  if (parts.length <= head) return other;
  const group = root === "api" ? "" : parts[1]!;
  const version = parts[head - 1]!;
  let tail = parts.slice(head);
  // the old form of a watch: /api/v1/watch/pods
  const oldWatch = tail[0] === "watch" && tail.length > 1;
  if (oldWatch) tail = tail.slice(1);
  let namespace = "";
  if (tail[0] === "namespaces" && tail.length > 1) {
    namespace = tail[1]!;
    if (tail.length > 2 && !NAMESPACE_SUBRESOURCES.has(tail[2]!)) tail = tail.slice(2);
  }
  const [resource = "", name = "", subresource = "", ...rest] = tail;
  const fieldSelector = query.size > 0 ? query.get("fieldSelector") : null;
  const watching = oldWatch || isTrue(query.get("watch"));
  return {
    isResourceRequest: true,
    verb: verbOf(method, name, watching && !subresource),
    path,
    group,
    version,
    resource,
    subresource,
    namespace,
    name,
    rest,
    ...(fieldSelector ? { fieldSelector } : {}),
  };
}

function verbOf(method: string, name: string, watching: boolean): string {
  switch (method) {
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name ? "delete" : "deletecollection";
    case "GET":
    case "HEAD":
      if (watching) return "watch";
      return name ? "get" : "list";
    default:
      return method.toLowerCase();
  }
}

/** `true`, `1`, `` … as Go's conversion of query parameters reads a boolean. */
export function isTrue(text: string | null): boolean {
  return text !== null && text !== "false" && text !== "0";
}
