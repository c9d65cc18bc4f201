import type { Timer } from "#base";
import {
  type ApiObject,
  apiVersionOf,
  failure,
  type FieldError,
  type KindInfo,
  type StatusError,
  type WatchEvent,
  type WatchSink,
  type WatchStream,
} from "#kinds";
import { type Change, isStoreError, type StoredObject } from "#store";
import type { Call } from "../pipeline/call.ts";
import { checkOptions, forbiddenOption, integerOf, unsupportedOption } from "../pipeline/query.ts";
import { isTrue } from "../pipeline/request-info.ts";
import { viewOf } from "../registry/view.ts";
import { listObjects, revisionOf, type Scope, scopeOf, tooLarge, tooOld } from "./list.ts";

/** Bookmarks for who wants them, milliseconds: soon after the start, then that often, and a last one that long before the end. */
const FIRST_BOOKMARK = 900;
const BOOKMARK_EVERY = 60_000;
const LAST_BOOKMARK = 2_000;
/** A watch without timeoutSeconds ends after this, plus up to as much again, so that not all come back at once. */
const DEFAULT_TIMEOUT = 1_800_000;

type EventType = "ADDED" | "MODIFIED" | "DELETED";

/** How an event's object is shown (as itself, in a Table, its metadata only), with its frame. */
export interface EventView {
  show(
    kind: KindInfo,
    type: string,
    object: ApiObject,
    stored: StoredObject | undefined,
  ): { object: unknown; frame: () => Buffer };
}

/** @throws StatusError 400, 422 for what the client asked wrongly; what comes later is told by an ERROR event */
export function watchObjects(call: Call, view: EventView = plainView): WatchStream {
  const { query } = call.request;
  const scope = scopeOf(call);
  checkWatchOptions(query);
  integerOf(query, "timeoutSeconds");
  const sendInitial = query.get("sendInitialEvents");
  const initial = sendInitial === null ? undefined : isTrue(sendInitial);
  const text = query.get("resourceVersion") || "";
  // the original answers 500 here, without a reason
  const revision = text === "" ? 0 : revisionOf(text, (why) => failure(500, undefined, why));
  const wanted = {
    revision,
    initial: initial ?? revision === 0,
    marked: initial === true && isTrue(query.get("allowWatchBookmarks")),
    waits: initial !== true,
  };
  return { start: (sink) => startWatch(call, scope, wanted, view, sink) };
}

/** @throws StatusError 422 @see https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-watch */
function checkWatchOptions(query: URLSearchParams): void {
  const errors: FieldError[] = [];
  const field = "resourceVersionMatch";
  const match = query.get(field) ?? "";
  if (query.has("sendInitialEvents")) {
    if (match !== "NotOlderThan")
      errors.push(forbiddenOption(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  } else if (match !== "")
    errors.push(
      forbiddenOption(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
    );
  if (match !== "" && match !== "NotOlderThan") errors.push(unsupportedOption(field, `"${match}"`, ["NotOlderThan"]));
  if (query.get("continue"))
    errors.push(forbiddenOption(field, "resourceVersionMatch is forbidden when continue is provided"));
  checkOptions("ListOptions", errors);
}

interface Wanted {
  readonly revision: number;
  /** The present state first, as ADDED events. */
  readonly initial: boolean;
  /** A bookmark with the annotation `k8s.io/initial-events-end` behind it. */
  readonly marked: boolean;
  /** A revision that is not there yet is waited for; else it is an error. */
  readonly waits: boolean;
}

function startWatch(call: Call, scope: Scope, wanted: Wanted, view: EventView, sink: WatchSink): { stop(): void } {
  const { server, kind, request } = call;
  const { store, clock } = server;
  let subscription: Disposable | undefined;
  let over = false;
  const timers: Timer[] = [];
  const stop = () => {
    over = true;
    subscription?.[Symbol.dispose]();
    for (const timer of timers) timer.clear();
    kind.retired?.removeEventListener("abort", end);
  };
  const end = () => {
    if (over) return;
    stop();
    sink.end();
  };
  const fail = (error: StatusError) => {
    const event: WatchEvent = { type: "ERROR", object: error.status };
    sink.event(event, () => Buffer.from(`${JSON.stringify(event)}\n`));
    end();
  };
  const send = (type: EventType, stored: StoredObject, object: ApiObject) => {
    const shown = view.show(kind, type, object, stored);
    sink.event({ type, object: shown.object }, shown.frame);
  };
  const bookmark = (revision: number, done = false) => {
    const annotations = done ? { annotations: { "k8s.io/initial-events-end": "true" } } : {};
    const object = {
      kind: kind.kind,
      apiVersion: apiVersionOf(kind),
      metadata: { resourceVersion: String(revision), ...annotations },
    } as unknown as ApiObject;
    const shown = view.show(kind, "BOOKMARK", object, undefined);
    sink.event({ type: "BOOKMARK", object: shown.object }, shown.frame);
  };
  try {
    const early = wanted.revision > store.revision;
    if (early && !wanted.waits) throw tooLarge(wanted.revision, store.revision);
    let since = early ? store.revision : wanted.revision;
    if (wanted.initial) {
      const listing = listObjects(withoutRevision(call), scope);
      for (const stored of listing.items) send("ADDED", stored, viewOf(kind, stored).object);
      since = Number(listing.metadata.resourceVersion);
      if (wanted.marked) bookmark(since, true);
    } else if (wanted.revision === 0) since = store.revision;
    if (over) return { stop };
    subscription = store.watch(scope.prefix, since, (change) => {
      if (over || change.current.revision <= wanted.revision) return;
      const event = eventOf(kind, scope, change);
      if (event) send(event.type, event.stored, event.object);
    });
  } catch (error) {
    if (isStoreError(error, "compacted")) fail(tooOld(wanted.revision, store.compactedRevision));
    else if (isStatusError(error)) fail(error);
    else throw error;
    return { stop };
  }
  if (kind.retired?.aborted) end();
  if (over) return { stop };
  kind.retired?.addEventListener("abort", end);
  const seconds = Number(request.query.get("timeoutSeconds") || 0);
  const timeout = seconds > 0 ? seconds * 1000 : DEFAULT_TIMEOUT * (1 + server.random.next());
  timers.push(clock.setTimer(end, timeout));
  if (isTrue(request.query.get("allowWatchBookmarks"))) {
    const tick = () => {
      bookmark(store.revision);
      timers[1] = clock.setTimer(tick, BOOKMARK_EVERY);
    };
    timers[1] = clock.setTimer(tick, FIRST_BOOKMARK);
    if (timeout > LAST_BOOKMARK + FIRST_BOOKMARK)
      timers[2] = clock.setTimer(() => bookmark(store.revision), timeout - LAST_BOOKMARK);
  }
  return { stop };
}

function isStatusError(error: unknown): error is StatusError {
  return error instanceof Error && "status" in error;
}

/** The list at a watch's start is the present state, whatever revision the watch names. */
function withoutRevision(call: Call): Call {
  const query = new URLSearchParams(call.request.query);
  for (const name of ["resourceVersion", "resourceVersionMatch", "sendInitialEvents", "limit", "continue"])
    query.delete(name);
  return { ...call, request: { ...copyOf(call), query } };
}

function copyOf({ request }: Call) {
  const { method, path, headers } = request;
  return { method, path, headers };
}

/** What a change is to a watcher of this scope; undefined = nothing. An object that leaves the selectors is DELETED. */
function eventOf(
  kind: KindInfo,
  scope: Scope,
  change: Change,
): { type: EventType; stored: StoredObject; object: ApiObject } | undefined {
  const { current, previous } = change;
  if (scope.key !== undefined && change.key !== scope.key) return undefined;
  const object = viewOf(kind, current).object;
  const { matches } = scope;
  const before = previous !== undefined && (!matches || matches(viewOf(kind, previous).object));
  if (change.type === "delete") return before ? { type: "DELETED", stored: current, object } : undefined;
  const now = !matches || matches(object);
  if (now) return { type: before ? "MODIFIED" : "ADDED", stored: current, object };
  if (!before) return undefined;
  const last = viewOf(kind, previous!).object;
  return {
    type: "DELETED",
    stored: leaving(previous!, current.revision),
    object: { ...last, metadata: { ...last.metadata, resourceVersion: String(current.revision) } },
  };
}

/** The object as it last matched, at the revision of the change by which it left. */
function leaving(previous: StoredObject, revision: number): StoredObject {
  const source = previous.object as ApiObject;
  const object = { ...source, metadata: { ...source.metadata, resourceVersion: String(revision) } };
  return {
    key: previous.key,
    revision,
    created: previous.created,
    object,
    json: () => Buffer.from(JSON.stringify(object)),
  };
}

const frames = new WeakMap<StoredObject, Map<string, Buffer>>();

/** Events as they are. A frame is serialized once for all watchers. */
export const plainView: EventView = {
  show(kind, type, object, stored) {
    if (!stored) return { object, frame: () => Buffer.from(`${JSON.stringify({ type, object })}\n`) };
    return {
      object,
      frame() {
        const known = frames.get(stored) ?? new Map<string, Buffer>();
        frames.set(stored, known);
        const id = kind.fromStorage ? `${type} ${kind.group}/${kind.version}` : type;
        let frame = known.get(id);
        if (!frame) {
          frame = Buffer.concat([Buffer.from(`{"type":"${type}","object":`), viewOf(kind, stored).json(), FRAME_END]);
          known.set(id, frame);
        }
        return frame;
      },
    };
  },
};
const FRAME_END = Buffer.from("}\n");
