import { stringify as toYaml } from "yaml";
import { type ApiBody, type ApiObject, type ApiResponse, apiVersionOf, failure, type KindInfo } from "#kinds";
import type { StoredObject } from "#store";
import type { Call } from "../pipeline/call.ts";
import { internalType } from "../pipeline/decode.ts";
import { viewOf } from "../registry/view.ts";
import { type Listing, listJson, listObject } from "../verbs/list.ts";
import { type EventView, plainView } from "../verbs/watch.ts";
import { type Accepted, acceptOf } from "./accept.ts";
import { includeObjectOf, metadataOnly, tableOf } from "./table.ts";

/** One stored object in the form that the client accepts. */
export function answerObject(call: Call, stored: StoredObject, code = 200): ApiResponse {
  const { kind, request, server } = call;
  const accepted = acceptOf(request);
  const view = viewOf(kind, stored);
  if (accepted.shape === "object" && accepted.format === "json")
    return { code, headers: {}, body: { kind: "object", object: view.object, json: () => view.json() } };
  if (accepted.shape === "metadata" && !accepted.single)
    throw failure(
      406,
      "NotAcceptable",
      `you requested PartialObjectMetadataList, but the requested object is not a list (*${internalType(kind)})`,
    );
  if (accepted.shape === "table") {
    const { resourceVersion } = view.object.metadata;
    const table = tableOf(
      kind,
      [view.object],
      { resourceVersion },
      { accepted, include: includeObjectOf(request.query), now: server.clock.now() },
    );
    return answer(table, accepted, code);
  }
  return answer(
    accepted.shape === "metadata" ? metadataOnly(view.object, accepted.metaVersion) : view.object,
    accepted,
    code,
  );
}

/** A value that is not stored: statuses, scales, reviews. */
export function answerValue(call: Pick<Call, "request">, value: object, code = 200): ApiResponse {
  const { format } = acceptOf(call.request);
  return { code, headers: {}, body: bodyOf(value, format) };
}

function answer(value: object, { format }: Accepted, code: number): ApiResponse {
  return { code, headers: {}, body: bodyOf(value, format) };
}

export function bodyOf(value: object, format: "json" | "yaml"): ApiBody {
  if (format === "json") return { kind: "object", object: value };
  const text = toYaml(value, { sortMapEntries: true, indentSeq: false, aliasDuplicateObjects: false, version: "1.1" });
  return { kind: "bytes", bytes: Buffer.from(text), contentType: "application/yaml" };
}

export function answerList(call: Call, listing: Listing): ApiResponse {
  const { kind, request, server } = call;
  const accepted = acceptOf(request);
  if (accepted.shape === "table") {
    const objects = listing.items.map((item) => viewOf(kind, item).object);
    const options = { accepted, include: includeObjectOf(request.query), now: server.clock.now() };
    return answer(tableOf(kind, objects, listing.metadata, options), accepted, 200);
  }
  if (accepted.shape === "metadata") {
    if (accepted.single)
      throw failure(
        406,
        "NotAcceptable",
        `you requested PartialObjectMetadata, but the requested object is a list (*${internalType(kind)}List)`,
      );
    const items = listing.items.map((item) => metadataOnly(viewOf(kind, item).object, accepted.metaVersion));
    return answer(
      {
        kind: "PartialObjectMetadataList",
        apiVersion: `meta.k8s.io/${accepted.metaVersion}`,
        metadata: listing.metadata,
        items,
      },
      accepted,
      200,
    );
  }
  if (accepted.format === "yaml") return answer(listObject(kind, listing), accepted, 200);
  let object: ReturnType<typeof listObject> | undefined;
  return {
    code: 200,
    headers: {},
    body: {
      kind: "object",
      // in-process clients take the object, HTTP the bytes: neither is made for the other
      get object() {
        object ??= listObject(kind, listing);
        return object;
      },
      json: () => listJson(kind, listing),
    },
  };
}

/** How a watch shows its objects. */
export function eventViewOf(call: Call): EventView {
  const accepted = acceptOf(call.request);
  if (accepted.shape === "object") return plainView;
  const include = accepted.shape === "table" ? includeObjectOf(call.request.query) : "Metadata";
  let first = true;
  return {
    show(kind, type, object) {
      const shown =
        accepted.shape === "metadata"
          ? metadataOnly(object, accepted.metaVersion)
          : eventTable(call, kind, object, { accepted, include, headless: !first, bookmark: type === "BOOKMARK" });
      first = false;
      return { object: shown, frame: () => Buffer.from(`${JSON.stringify({ type, object: shown })}\n`) };
    },
  };
}

function eventTable(
  call: Call,
  kind: KindInfo,
  object: ApiObject,
  options: { accepted: Accepted; include: "None" | "Metadata" | "Object"; headless: boolean; bookmark: boolean },
): object {
  const { resourceVersion } = object.metadata;
  const table = tableOf(
    kind,
    options.bookmark ? [] : [object],
    { resourceVersion },
    { ...options, now: call.server.clock.now() },
  );
  if (!options.bookmark) return table;
  // a bookmark's row carries the annotations that mark the end of the initial events
  return {
    ...table,
    rows: [
      {
        cells: kind.columns.map(() => null),
        object: { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata: object.metadata },
      },
    ],
  };
}
