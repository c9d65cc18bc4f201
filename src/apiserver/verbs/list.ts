import { type ApiObject, apiVersionOf, badRequest, failure, gone, type KindInfo, type StatusError } from "#kinds";
import { isStoreError, type StoredObject } from "#store";
import type { Call } from "../pipeline/call.ts";
import { keyOf, prefixOf } from "../registry/keys.ts";
import { headOf, viewOf } from "../registry/view.ts";
import { fieldMatcher, labelMatcher, type Matcher } from "../selectors.ts";

export interface Listing {
  readonly items: readonly StoredObject[];
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
}

/** What a list or watch is restricted to. */
export interface Scope {
  readonly prefix: string;
  /** Set when a field selector names one object. */
  readonly key: string | undefined;
  /** Absent: everything under the prefix. */
  readonly matches: Matcher | undefined;
  readonly byField: boolean;
}

/** @throws StatusError 400 for selectors that can't be read */
export function scopeOf(call: Call): Scope {
  const { kind, info, request } = call;
  const labels = labelMatcher(request.query.get("labelSelector"));
  const fields = fieldMatcher(request.query.get("fieldSelector"), kind);
  const namespace = info.namespace || fields?.namespace;
  const name = info.name || fields?.name;
  const key = name !== undefined && (!kind.namespaced || namespace) ? keyOf(kind, namespace, name) : undefined;
  const checks = [
    labels,
    fields?.matches,
    info.name ? (object: ApiObject) => object.metadata.name === info.name : undefined,
  ].filter((m) => m !== undefined);
  const matches = checks.length === 0 ? undefined : (object: ApiObject) => checks.every((check) => check(object));
  return { prefix: prefixOf(kind, info.namespace || undefined), key, matches, byField: fields !== undefined };
}

/** A page or the whole list. @throws StatusError 400, 410, 504 */
export function listObjects(call: Call, scope: Scope): Listing {
  const { store } = call.server;
  const query = call.request.query;
  const limit = numberOf(query, "limit") ?? 0;
  const token = query.get("continue");
  const from = token ? readToken(token, query, scope) : { after: undefined, revision: snapshotRevision(call) };
  try {
    return scope.matches ? listMatching(call, scope, from, limit) : listAll(call, scope, from, limit);
  } catch (error) {
    if (isStoreError(error, "compacted"))
      throw token ? expiredToken(scope, from.after!) : tooOld(from.revision ?? 0, store.compactedRevision);
    if (isStoreError(error, "future")) throw tooLarge(from.revision ?? 0, store.revision);
    throw error;
  }
}

interface From {
  readonly after: string | undefined;
  readonly revision: number | undefined;
}

function listAll({ server }: Call, scope: Scope, from: From, limit: number): Listing {
  const page = server.store.list(scope.prefix, {
    ...(from.after === undefined ? {} : { after: from.after }),
    ...(from.revision === undefined ? {} : { revision: from.revision }),
    ...(limit > 0 ? { limit } : {}),
  });
  const last = page.items.at(-1);
  if (page.remaining === 0 || !last) return { items: page.items, metadata: { resourceVersion: String(page.revision) } };
  return {
    items: page.items,
    metadata: {
      resourceVersion: String(page.revision),
      continue: writeToken(scope, last.key, page.revision),
      remainingItemCount: page.remaining,
    },
  };
}

/** With selectors it is not known how many remain, as in the original. */
function listMatching({ server, kind }: Call, scope: Scope, from: From, limit: number): Listing {
  if (scope.key !== undefined && from.revision === undefined && from.after === undefined) {
    const one = server.store.get(scope.key);
    const items = one && scope.matches!(viewOf(kind, one).object) ? [one] : [];
    return { items, metadata: { resourceVersion: String(server.store.revision) } };
  }
  const items: StoredObject[] = [];
  const page = server.store.list(scope.prefix, {
    ...(from.after === undefined ? {} : { after: from.after }),
    ...(from.revision === undefined ? {} : { revision: from.revision }),
  });
  for (const item of page.items) {
    if (!scope.matches!(viewOf(kind, item).object)) continue;
    if (limit > 0 && items.length === limit) {
      return {
        items,
        metadata: {
          resourceVersion: String(page.revision),
          continue: writeToken(scope, items.at(-1)!.key, page.revision),
        },
      };
    }
    items.push(item);
  }
  return { items, metadata: { resourceVersion: String(page.revision) } };
}

/**
 * Which snapshot a list without token asks for: undefined = now.
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
 */
function snapshotRevision({ request, server }: Call): number | undefined {
  const text = request.query.get("resourceVersion") || undefined;
  const match = request.query.get("resourceVersionMatch") || undefined;
  if (match !== undefined && match !== "Exact" && match !== "NotOlderThan") {
    throw listOptionError(
      "resourceVersionMatch",
      "FieldValueNotSupported",
      `Unsupported value: "${match}": supported values: "Exact", "NotOlderThan", ""`,
    );
  }
  if (text === undefined) {
    if (match)
      throw listOptionError(
        "resourceVersionMatch",
        "FieldValueForbidden",
        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
      );
    return undefined;
  }
  const revision = revisionOf(text);
  if (match === "Exact") {
    if (revision === 0)
      throw listOptionError(
        "resourceVersionMatch",
        "FieldValueForbidden",
        'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
      );
    return revision;
  }
  if (revision > server.store.revision) throw tooLarge(revision, server.store.revision);
  // the original's rule for clients older than resourceVersionMatch: a page at a revision is exactly that one
  return match === undefined && revision > 0 && (numberOf(request.query, "limit") ?? 0) > 0 ? revision : undefined;
}

export function listOptionError(field: string, reason: string, message: string): StatusError {
  return failure(422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: ${field}: ${message}`, {
    group: "meta.k8s.io",
    kind: "ListOptions",
    causes: [{ reason, message, field }],
  });
}

/** @throws StatusError 400 */
export function revisionOf(text: string): number {
  if (!/^\d+$/.test(text))
    throw badRequest(`invalid resource version "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`);
  return Number(text);
}

function numberOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (!text) return undefined;
  if (!/^-?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
  return Number(text);
}

export const tooOld = (asked: number, oldest: number): StatusError =>
  gone(`too old resource version: ${asked} (${oldest})`);

/** 504, with the cause by which clients know to wait. */
export const tooLarge = (asked: number, current: number): StatusError =>
  failure(504, "Timeout", `Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });

/** Opaque to clients: the revision of the snapshot and the last key, relative to the prefix. */
function writeToken(scope: Scope, key: string, revision: number): string {
  return Buffer.from(
    JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start: key.slice(scope.prefix.length) }),
  ).toString("base64url");
}

function readToken(token: string, query: URLSearchParams, scope: Scope): From {
  if (query.get("resourceVersion") && query.get("resourceVersion") !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  try {
    const value = JSON.parse(Buffer.from(token, "base64url").toString("utf8")) as {
      v: string;
      rv: number;
      start: string;
    };
    if (value.v === "meta.k8s.io/v1" && typeof value.start === "string" && Number.isInteger(value.rv)) {
      return { after: scope.prefix + value.start, revision: value.rv < 0 ? undefined : value.rv };
    }
  } catch {
    // no token of ours
  }
  throw badRequest("continue key is not valid: continue key is not valid");
}

/** The snapshot is gone; the token inside lets a client go on from the same place at the present state. */
function expiredToken(scope: Scope, after: string) {
  const error = gone(
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
  );
  (error.status.metadata as { continue?: string }).continue = writeToken(scope, after, -1);
  return error;
}

/** The list's JSON, put together from the items' own bytes. */
export function listJson(kind: KindInfo, listing: Listing): Buffer {
  const open = Buffer.from("{");
  const comma = Buffer.from(",{");
  const parts: Buffer[] = [
    Buffer.from(
      `{"kind":${JSON.stringify(kind.listKind)},"apiVersion":${JSON.stringify(apiVersionOf(kind))},"metadata":${JSON.stringify(listing.metadata)},"items":[`,
    ),
  ];
  // items of built-in lists have no kind of their own: the head that every stored object starts with is cut off
  const cut = kind.decode ? 0 : Buffer.byteLength(headOf(kind));
  for (const [i, item] of listing.items.entries()) {
    const bytes = viewOf(kind, item).json();
    if (cut === 0) {
      if (i > 0) parts.push(COMMA);
      parts.push(bytes);
    } else {
      parts.push(i === 0 ? open : comma, bytes.subarray(cut));
    }
  }
  parts.push(END);
  return Buffer.concat(parts);
}
const COMMA = Buffer.from(",");
const END = Buffer.from("]}\n");

/** The list as an object, for in-process clients. */
export function listObject(
  kind: KindInfo,
  listing: Listing,
): { kind: string; apiVersion: string; metadata: Listing["metadata"]; items: ApiObject[] } {
  return {
    kind: kind.listKind,
    apiVersion: apiVersionOf(kind),
    metadata: listing.metadata,
    items: listing.items.map((item) => viewOf(kind, item).object),
  };
}
