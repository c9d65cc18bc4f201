import { deepClone } from "#base";
import { type ApiObject, badRequest } from "#kinds";
import type { StoredObject } from "#store";
import type { Call } from "../pipeline/call.ts";
import { asObject } from "../pipeline/decode.ts";
import { keyOf } from "../registry/keys.ts";
import { createObject } from "../verbs/create.ts";
import { updateObject } from "../verbs/update.ts";
import { strategicMergePatch } from "./strategic-merge-patch.ts";
import { mergePatch } from "./merge-patch.ts";

/** Server-side apply. @throws StatusError 400, 409, 422 */
export async function applyConfiguration(
  call: Call,
  body: unknown,
): Promise<{ stored: StoredObject; created: boolean }> {
  const { kind, info, server, request } = call;
  if (!request.query.get("fieldManager"))
    throw badRequest(
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    );
  const config = asObject(call, body, kind);
  config.metadata.name ??= info.name;
  if (config.metadata.name !== info.name)
    throw badRequest(
      `the name of the object (${config.metadata.name}) does not match the name on the URL (${info.name})`,
    );
  if (!server.store.latest(keyOf(kind, info.namespace, info.name)))
    return { stored: await createObject(call, config), created: true };
  const stored = await updateObject(call, {
    change: (current) => {
      const copy = deepClone<ApiObject>(current);
      const patch = deepClone<ApiObject>(config);
      return (kind.decode ? mergePatch(copy, patch) : strategicMergePatch(copy, patch, kind.schema)) as ApiObject;
    },
  });
  return { stored, created: false };
}
