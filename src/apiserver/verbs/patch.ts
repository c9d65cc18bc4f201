import assert from "node:assert/strict";
import { deepClone } from "#base";
import { type ApiObject, badRequest, failure } from "#kinds";
import type { StoredObject } from "#store";
import { applyConfiguration } from "../patch/apply.ts";
import { applyJsonPatch } from "../patch/json-patch.ts";
import { isFields, mergePatch } from "../patch/merge-patch.ts";
import { strategicMergePatch } from "../patch/strategic-merge-patch.ts";
import type { Call } from "../pipeline/call.ts";
import { asObject, mediaType, readBody } from "../pipeline/decode.ts";
import { checkWriteOptions } from "../pipeline/write-options.ts";
import { updateObject } from "./update.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE = "application/merge-patch+json";
const STRATEGIC = "application/strategic-merge-patch+json";
const APPLY = new Set(["application/apply-patch+yaml", "application/apply-patch+cbor"]);

/** PATCH of any kind, by its media type. `created` tells whether an apply made the object. @throws StatusError */
export async function patchObject(call: Call): Promise<{ stored: StoredObject; created: boolean }> {
  const type = mediaType(call.request);
  checkType(call, type);
  checkWriteOptions(call, APPLY.has(type) ? "apply" : "patch");
  const body = readBody(call.request);
  if (APPLY.has(type)) return applyConfiguration(call, body);
  const change = patcherOf(call, type, body);
  const stored = await updateObject(call, {
    change(current) {
      const object = change(deepClone<ApiObject>(current));
      const patched = asObject(call, object, call.kind);
      samePlace(call, patched, current);
      return patched;
    },
    ...revisionIn(type, body),
  });
  return { stored, created: false };
}

/** A resourceVersion in the patch itself is a precondition. */
function revisionIn(type: string, body: unknown): { resourceVersion?: string } {
  const { metadata } = type !== JSON_PATCH && isFields(body) ? (body as Partial<ApiObject>) : {};
  return typeof metadata?.resourceVersion === "string" && metadata.resourceVersion
    ? { resourceVersion: metadata.resourceVersion }
    : {};
}

function patcherOf(call: Call, type: string, body: unknown): (object: ApiObject) => unknown {
  switch (type) {
    case JSON_PATCH:
      return (object) => applyJsonPatch(object, body);
    case MERGE:
      if (!isFields(body)) throw badRequest("error decoding patch: the patch is no object");
      return (object) => mergePatch(object, body);
    case STRATEGIC:
      if (!isFields(body)) throw badRequest("error decoding patch: the patch is no object");
      return (object) => strategicMergePatch(object, body, call.kind.schema);
    default:
      assert.fail(`a patch of type ${type} was let through`);
  }
}

/** @throws StatusError 415 */
function checkType({ kind }: Call, type: string): void {
  if (![JSON_PATCH, MERGE, STRATEGIC, ...APPLY].includes(type))
    throw failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
  if (type !== STRATEGIC || !kind.decode) return;
  const accepted = [JSON_PATCH, MERGE, ...APPLY].join(", ");
  throw failure(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: ${accepted}`,
  );
}

/** A patch can't move an object. */
function samePlace({ kind }: Call, patched: ApiObject, current: ApiObject): void {
  if (patched.metadata.name !== current.metadata.name) {
    throw badRequest(
      `the name of the object (${patched.metadata.name}) does not match the name on the URL (${current.metadata.name})`,
    );
  }
  if (kind.namespaced && (patched.metadata.namespace ?? "") !== (current.metadata.namespace ?? "")) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  // revision and identity are the server's; a changed one fails as a precondition
  if (!patched.metadata.uid) patched.metadata.uid = current.metadata.uid ?? "";
}
