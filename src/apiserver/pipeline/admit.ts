import type { ApiObject } from "#kinds";
import { Reinvocation } from "../admission/reinvocation.ts";
import type { AdmissionAttributes } from "../ports.ts";
import type { Call } from "./call.ts";

/** Attributes of an admission; `object` is the private copy that plugins may change. */
export function admissionOf(
  call: Call,
  what: {
    operation: AdmissionAttributes["operation"];
    object: ApiObject | undefined;
    old: ApiObject | undefined;
    dryRun: boolean;
    options?: Record<string, unknown>;
  },
): AdmissionAttributes {
  const { info, kind, user, warnings } = call;
  return {
    operation: what.operation,
    kind,
    subresource: info.subresource,
    namespace: info.namespace,
    name: info.name || what.object?.metadata.name || what.old?.metadata.name || "",
    object: what.object,
    old: what.old,
    user,
    dryRun: what.dryRun,
    options: optionsOf(call, what.operation, what.options),
    reinvocation: new Reinvocation(),
    warn: (text) => void warnings.add(text),
  };
}

/** CreateOptions, UpdateOptions or DeleteOptions, as the query or the body gives them. */
function optionsOf(
  { request: { query } }: Call,
  operation: AdmissionAttributes["operation"],
  own: Record<string, unknown> | undefined,
): Record<string, unknown> {
  if (operation === "CONNECT") return {};
  const kind = operation === "CREATE" ? "CreateOptions" : operation === "DELETE" ? "DeleteOptions" : "UpdateOptions";
  const options: Record<string, unknown> = {
    kind,
    apiVersion: "meta.k8s.io/v1",
  };
  if (query.has("dryRun")) options.dryRun = query.getAll("dryRun");
  if (operation === "DELETE") return { ...options, ...own };
  for (const name of ["fieldManager", "fieldValidation"]) if (query.get(name)) options[name] = query.get(name);
  return { ...options, ...own };
}

/** The mutating phase, again where a webhook or policy asks for it. @throws StatusError of the plugin that refuses */
export async function mutate(call: Call, attributes: AdmissionAttributes): Promise<void> {
  do await mutateOnce(call, attributes);
  while (attributes.reinvocation.again());
}

async function mutateOnce(call: Call, attributes: AdmissionAttributes): Promise<void> {
  for (const plugin of call.server.admission) {
    if (!plugin.admit || !plugin.handles(attributes)) continue;
    const pending = plugin.admit(attributes);
    if (pending) await pending;
  }
}

/** The validating phase. */
export async function validate(call: Call, attributes: AdmissionAttributes): Promise<void> {
  for (const plugin of call.server.admission) {
    if (!plugin.validate || !plugin.handles(attributes)) continue;
    const pending = plugin.validate(attributes);
    if (pending) await pending;
  }
}
