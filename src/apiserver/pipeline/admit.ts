import type { ApiObject } from "#kinds";
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
    options: what.options ?? {},
    warn: (text) => void warnings.add(text),
  };
}

/** The mutating phase. @throws StatusError of the plugin that refuses */
export async function mutate(call: Call, attributes: AdmissionAttributes): Promise<void> {
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
