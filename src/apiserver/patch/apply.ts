import { deepClone } from "#base";
import { type ApiObject, apiVersionOf, badRequest, checkFields } from "#kinds";
import type { StoredObject } from "#store";
import { applyConfig, failedApply } from "../managed-fields/field-manager.ts";
import type { Call } from "../pipeline/call.ts";
import { asObject, duplicatesIn } from "../pipeline/decode.ts";
import { isForced } from "../pipeline/write-options.ts";
import { keyOf } from "../registry/keys.ts";
import { createObject } from "../verbs/create.ts";
import { updateObject } from "../verbs/update.ts";

/**
 * Server-side apply: the object is made when it is not there.
 * @throws StatusError 400, 409, 422
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/
 */
export async function applyConfiguration(
  call: Call,
  body: unknown,
): Promise<{ stored: StoredObject; created: boolean }> {
  const { kind, info, server, request } = call;
  const config = readConfiguration(call, body);
  const options = { manager: request.query.get("fieldManager") ?? "", force: isForced(call) };
  if (!server.store.latest(keyOf(kind, info.namespace, info.name)) && !info.subresource) {
    const object = applyConfig(call, config, undefined, options);
    return { stored: await createObject(call, object, { ownFields: true }), created: true };
  }
  const { uid, resourceVersion } = config.metadata;
  const stored = await updateObject(call, {
    change: (current) => applyConfig(call, config, current, options),
    ownFields: true,
    ...(uid ? { uid } : {}),
    ...(resourceVersion ? { resourceVersion } : {}),
  });
  return { stored, created: false };
}

/** Fields that the kind does not have, `unknown field "spec.foo"`. */
function unknownFields({ kind }: Call, body: ApiObject): readonly string[] {
  if (!kind.decode) return checkFields(body as unknown as Record<string, unknown>, kind.schema).unknown;
  const copy = deepClone<ApiObject>(body);
  copy.metadata ??= {} as ApiObject["metadata"];
  return kind.decode(copy).unknown;
}

/** @throws StatusError 400 for what is no configuration of the object that the path names */
function readConfiguration(call: Call, body: unknown): ApiObject {
  const { kind, info } = call;
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw badRequest("error decoding YAML: the configuration is no object");
  const { apiVersion = "", kind: name = "" } = body as { apiVersion?: string; kind?: string };
  if (apiVersion !== apiVersionOf(kind) || name !== kind.kind)
    throw badRequest(`invalid object type: ${apiVersion.includes("/") ? "" : "/"}${apiVersion}, Kind=${name}`);
  const unknown = unknownFields(call, body as ApiObject).map(
    (text) => `.${/"(.*)"/.exec(text)?.[1] ?? ""}: field not declared in schema`,
  );
  if (unknown.length > 0)
    throw failedApply(
      call,
      body as ApiObject,
      unknown.length === 1 ? unknown[0] : ["errors:", ...unknown].join("\n  "),
    );
  const config = asObject(call, body, kind, { duplicates: duplicatesIn(call) });
  const { metadata } = config;
  if (!metadata.name)
    throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`);
  if (metadata.name !== info.name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${info.name})`);
  if (kind.namespaced) {
    if (metadata.namespace && metadata.namespace !== info.namespace)
      throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
    metadata.namespace = info.namespace;
  }
  return config;
}
