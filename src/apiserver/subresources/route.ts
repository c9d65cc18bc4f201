import { type ApiObject, type ApiResponse, notFound } from "#kinds";
import { answerObject, answerValue } from "../negotiation/shape.ts";
import { admissionOf, mutate, validate } from "../pipeline/admit.ts";
import { type Call, isDryRun } from "../pipeline/call.ts";
import { asObject, mediaType, readBody } from "../pipeline/decode.ts";
import { methodNotAllowed, pathNotServed } from "../pipeline/routing.ts";
import { applyJsonPatch } from "../patch/json-patch.ts";
import { mergePatch } from "../patch/merge-patch.ts";
import { keyOf } from "../registry/keys.ts";
import { viewOf } from "../registry/view.ts";
import { patchObject } from "../verbs/patch.ts";
import { replaceObject, updateObject } from "../verbs/update.ts";
import { evictPod } from "./eviction.ts";
import { bindPod } from "./pod-binding.ts";
import { podStream } from "./pod-streams.ts";
import { proxy } from "./proxy.ts";
import { type Scale, scaleOf, withScale } from "./scale.ts";

/** A call of a subresource. @throws StatusError 404, 405 and those of the subresource */
export async function subresource(call: Call): Promise<ApiResponse> {
  const { kind, info } = call;
  const { subresource: name } = info;
  if (name === "proxy") return proxy(call);
  const known = kind.subresources.find((sub) => sub.name === name);
  if (!known) throw pathNotServed();
  if (!known.verbs.includes(info.verb)) throw methodNotAllowed();
  if (name === "log" || name === "exec" || name === "attach" || name === "portforward") return podStream(call);
  if (name === "scale") return scale(call);
  if (info.verb === "create") return createSubresource(call, known);
  switch (info.verb) {
    case "get":
      return answerObject(call, current(call));
    case "update":
      return answerObject(call, await replaceObject(call, asObject(call, readBody(call.request), call.kind)));
    case "patch":
      return answerObject(call, (await patchObject(call)).stored);
    default:
      throw methodNotAllowed();
  }
}

function current(call: Call) {
  const { kind, info, server } = call;
  const stored = server.store.get(keyOf(kind, info.namespace, info.name));
  if (!stored) throw notFound(kind, info.name);
  return stored;
}

/** `binding`, `eviction`, and what the composition root plugs in (`serviceaccounts/token`). */
async function createSubresource(call: Call, known: Call["kind"]["subresources"][number]): Promise<ApiResponse> {
  const { kind, info, server, user } = call;
  const body = bodyFor(call, known);
  const attributes = admissionOf(call, { operation: "CREATE", object: body, old: undefined, dryRun: isDryRun(call) });
  await mutate(call, attributes);
  await validate(call, attributes);
  if (kind.resource === "pods" && info.subresource === "binding")
    return answerValue(call, await bindPod(call, body), 201);
  if (kind.resource === "pods" && info.subresource === "eviction")
    return answerValue(call, await evictPod(call, body), 201);
  const virtual = server.virtual.get(`${kind.group}/${kind.resource}/${info.subresource}`);
  if (!virtual) throw methodNotAllowed();
  const parent = viewOf(kind, current(call)).object;
  const result = await virtual.create(body, {
    user,
    namespace: info.namespace,
    name: info.name,
    dryRun: isDryRun(call),
    parent,
  });
  return answerValue(call, result, 201);
}

function bodyFor(call: Call, known: Call["kind"]["subresources"][number]): ApiObject {
  const { kind, server } = call;
  const group = known.group ?? kind.group;
  const version = known.version ?? kind.version;
  const type = server.scheme.byKind(group ? `${group}/${version}` : version, known.kind);
  const body = readBody(call.request) ?? {};
  // a kind that is no resource of its own (Eviction) is taken as it comes
  return type ? asObject(call, body, type) : ({ metadata: {}, ...(body as object) } as ApiObject);
}

async function scale(call: Call): Promise<ApiResponse> {
  const { kind, info } = call;
  const shown = (object: ApiObject) => answerValue(call, scaleOf(kind, object));
  if (info.verb === "get") return shown(viewOf(kind, current(call)).object);
  const body = readBody(call.request);
  const type = mediaType(call.request);
  const patching = info.verb === "patch";
  const stored = await updateObject(
    { ...call, info: { ...info, subresource: "scale" } },
    {
      change(object) {
        const before = scaleOf(kind, object);
        const wanted = (
          patching ? (type.includes("json-patch") ? applyJsonPatch(before, body) : mergePatch(before, body)) : body
        ) as Scale;
        return withScale(kind, object, wanted);
      },
      ...preconditionOf(body),
    },
  );
  return shown(viewOf(kind, stored).object);
}

function preconditionOf(body: unknown): { resourceVersion?: string } {
  const revision = (body as Partial<ApiObject> | undefined)?.metadata?.resourceVersion;
  return typeof revision === "string" && revision ? { resourceVersion: revision } : {};
}
