import { type ApiObject, type ApiResponse, badRequest, failure, notFound } from "#kinds";
import { answerList, answerObject, answerValue, eventViewOf } from "../negotiation/shape.ts";
import { trackUpdate } from "../managed-fields/field-manager.ts";
import { type Call, isDryRun } from "../pipeline/call.ts";
import { decodeObject } from "../pipeline/decode.ts";
import { methodNotAllowed } from "../pipeline/routing.ts";
import { checkWriteOptions } from "../pipeline/write-options.ts";
import { keyOf } from "../registry/keys.ts";
import { viewOf } from "../registry/view.ts";
import { createObject } from "./create.ts";
import { deleteObject, deleteOptionsOf, deletionStatus } from "./delete.ts";
import { listObjects, revisionOf, scopeOf, tooLarge } from "./list.ts";
import { patchObject } from "./patch.ts";
import { replaceObject } from "./update.ts";
import { watchObjects } from "./watch.ts";

/** A call of a kind itself, by its verb. @throws StatusError */
export async function resourceVerb(call: Call): Promise<ApiResponse> {
  const { kind, info, server } = call;
  const virtual = server.virtual.get(`${kind.group}/${kind.resource}`);
  if (virtual && info.verb === "create") return createVirtual(call, virtual);
  switch (info.verb) {
    case "get":
      return answerObject(call, getObject(call));
    case "list":
      return answerList(call, listObjects(call, scopeOf(call)));
    case "watch":
      return { code: 200, headers: {}, body: { kind: "watch", watch: watchObjects(call, eventViewOf(call)) } };
    case "create":
      checkWriteOptions(call, "create");
      return answerObject(call, await createObject(call, decodeObject(call)), 201);
    case "update":
      return update(call);
    case "patch": {
      const { stored, created } = await patchObject(call);
      return answerObject(call, stored, created ? 201 : 200);
    }
    case "delete":
      return remove(call);
    case "deletecollection":
      return removeAll(call);
    default:
      throw methodNotAllowed();
  }
}

function getObject({ kind, info, server, request }: Call) {
  const { query } = request;
  if (query.has("export")) throw badRequest("the export parameter, deprecated since v1.14, is no longer supported");
  const text = query.get("resourceVersion");
  const revision = text ? revisionOf(text, (why) => failure(500, undefined, why)) : 0;
  if (revision > server.store.revision) throw tooLarge(revision, server.store.revision);
  const stored = server.store.get(keyOf(kind, info.namespace, info.name));
  if (!stored) throw notFound(kind, info.name);
  return stored;
}

async function update(call: Call): Promise<ApiResponse> {
  const { kind, info, server } = call;
  checkWriteOptions(call, "update");
  const known = server.store.latest(keyOf(kind, info.namespace, info.name)) !== undefined;
  return answerObject(call, await replaceObject(call, decodeObject(call)), known ? 200 : 201);
}

async function createVirtual(
  call: Call,
  virtual: { create: NonNullable<ReturnType<Call["server"]["virtual"]["get"]>>["create"] },
): Promise<ApiResponse> {
  const { info, kind, user } = call;
  const body = decodeObject(call);
  if (kind.namespaced) body.metadata.namespace = info.namespace;
  kind.strategy.setDefaults(body);
  trackUpdate(call, body, undefined);
  return answerValue(
    call,
    await virtual.create(body, { user, namespace: info.namespace, name: "", dryRun: isDryRun(call) }),
    201,
  );
}

async function remove(call: Call): Promise<ApiResponse> {
  const { kind } = call;
  const deletion = await deleteObject(call, deleteOptionsOf(call));
  const { object } = viewOf(kind, deletion.stored);
  // pods and the few others with graceful deletion always answer with the object
  if (deletion.gone && !kind.strategy.gracePeriodSeconds && !kind.strategy.returnsDeleted)
    return answerValue(call, deletionStatus(kind, object));
  return answerObject(call, deletion.stored);
}

/** Deletes what the selectors take, one after the other; the answer lists it as it was. */
async function removeAll(call: Call): Promise<ApiResponse> {
  const { info } = call;
  const options = deleteOptionsOf(call);
  const listing = listObjects(call, scopeOf(call));
  for (const item of listing.items) {
    const { name, namespace } = (item.object as ApiObject).metadata;
    const one = { ...call, info: { ...info, verb: "delete", name, namespace: namespace ?? "" } };
    await deleteObject(one, options).catch((error: { code?: number }) => {
      // somebody else deleted it meanwhile
      if (error.code !== 404) throw error;
    });
  }
  return answerList(call, listing);
}
