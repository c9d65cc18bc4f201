import {
  type ApiObject,
  apiVersionOf,
  badRequest,
  failure,
  type FieldError,
  gone,
  type KindInfo,
  type StatusError,
} from "#kinds";
import { isStoreError, type StoredObject } from "#store";
import type { Call } from "../pipeline/call.ts";
import { scanJson } from "#base";
import {
  checkOptions,
  forbiddenOption,
  integerOf,
  resourceVersionError,
  unsupportedOption,
} from "../pipeline/query.ts";
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

/** A page or the whole list. @throws StatusError 400, 410, 422, 504 */
export function listObjects(call: Call, scope: Scope): Listing {
  const { server } = call;
  const { store } = server;
  const query = call.request.query;
  checkListOptions(query);
  const token = query.get("continue");
  // a list at "any" revision comes from memory, whole, as from the original's cache
  const limit = query.get("resourceVersion") === "0" && !token ? 0 : (integerOf(query, "limit") ?? 0);
  integerOf(query, "timeoutSeconds");
  const from = token
    ? readToken(call, token, scope)
    : { after: undefined, began: server.clock.now(), revision: snapshotRevision(call) };
  try {
    return scope.matches ? listMatching(call, scope, from, limit) : listAll(call, scope, from, limit);
  } catch (error) {
    if (isStoreError(error, "compacted"))
      throw token
        ? expiredToken(scope, from.after!, server.clock.now())
        : gone("The resourceVersion for the provided list is too old.");
    if (isStoreError(error, "future")) throw tooLarge(from.revision ?? 0, store.revision);
    throw error;
  }
}

/** @throws StatusError 422 @see https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list */
function checkListOptions(query: URLSearchParams): void {
  const errors: FieldError[] = [];
  const match = query.get("resourceVersionMatch") ?? "";
  const revision = query.get("resourceVersion") ?? "";
  const field = "resourceVersionMatch";
  if (match !== "") {
    if (revision === "")
      errors.push(forbiddenOption(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    if (query.get("continue"))
      errors.push(forbiddenOption(field, "resourceVersionMatch is forbidden when continue is provided"));
    if (match !== "Exact" && match !== "NotOlderThan")
      errors.push(unsupportedOption(field, `"${match}"`, ["Exact", "NotOlderThan", ""]));
    if (match === "Exact" && revision === "0")
      errors.push(forbiddenOption(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  if (query.has("sendInitialEvents"))
    errors.push(forbiddenOption("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  checkOptions("ListOptions", errors);
}

interface From {
  readonly after: string | undefined;
  /** When the list began, for tokens. */
  readonly began: number;
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
      continue: writeToken(scope, last.key, page.revision, from.began),
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
          continue: writeToken(scope, items.at(-1)!.key, page.revision, from.began),
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
  if (text === undefined) return undefined;
  const revision = revisionOf(text, (why) => badRequest(`invalid resource version: ${why}`));
  const match = request.query.get("resourceVersionMatch") || undefined;
  if (match === "Exact") return revision;
  if (revision > server.store.revision) throw tooLarge(revision, server.store.revision);
  // the original's rule for clients older than resourceVersionMatch: a page at a revision is exactly that one
  return match === undefined && revision > 0 && (integerOf(request.query, "limit") ?? 0) > 0 ? revision : undefined;
}

/** @throws what `unreadable` makes of the reason */
export function revisionOf(text: string, unreadable: (why: string) => StatusError): number {
  const why = resourceVersionError(text);
  if (why) throw unreadable(why);
  return Number(text);
}

export const tooOld = (asked: number, oldest: number): StatusError =>
  gone(`too old resource version: ${asked} (${oldest})`);

/** 504, with the cause by which clients know to wait. */
export const tooLarge = (asked: number, current: number): StatusError =>
  failure(504, "Timeout", `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });

/** Opaque to clients: the revision of the snapshot, when the list began, and the last key, relative to the prefix. */
function writeToken(scope: Scope, key: string, revision: number, now: number): string {
  return Buffer.from(
    JSON.stringify({ v: TOKEN_VERSION, rv: revision, at: now, start: key.slice(scope.prefix.length) }),
  ).toString("base64url");
}

/** @throws StatusError 400 */
function readToken({ request, server }: Call, token: string, scope: Scope): From {
  const { query } = request;
  const bad = (why: string) => badRequest(`invalid continue token: continue key is not valid: ${why}`);
  const stray = /[^A-Za-z0-9_-]/.exec(token);
  if (stray) throw bad(`illegal base64 data at input byte ${stray.index}`);
  const text = Buffer.from(token, "base64url").toString("utf8");
  const { error } = scanJson(text);
  if (error) throw bad(error);
  const value: unknown = JSON.parse(text);
  const { v, rv, at, start } = (typeof value === "object" ? (value ?? {}) : {}) as Partial<Record<string, unknown>>;
  if (v !== TOKEN_VERSION)
    throw bad(`server does not recognize this encoded version ${typeof v === "string" ? v : ""}`);
  if (typeof start !== "string" || typeof rv !== "number" || !Number.isInteger(rv) || rv === 0)
    throw bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (query.get("resourceVersion") && query.get("resourceVersion") !== "0")
    throw badRequest("specifying resource version is not allowed when using continue");
  const after = scope.prefix + start;
  const now = server.clock.now();
  if (rv > 0 && typeof at === "number" && now - at > TOKEN_LIFETIME) throw expiredToken(scope, after, now);
  return { after, began: typeof at === "number" ? at : now, revision: rv < 0 ? undefined : rv };
}
/** After this a list can't be gone on with as it was, milliseconds: as long as etcd keeps what is past. */
const TOKEN_LIFETIME = 300_000;
const TOKEN_VERSION = "meta.k8s.io/v1";

/** The snapshot is gone; the token inside lets a client go on from the same place at the present state. */
function expiredToken(scope: Scope, after: string, now: number) {
  const error = gone(
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
  );
  (error.status.metadata as { continue?: string }).continue = writeToken(scope, after, -1, now);
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
