import { createScheme } from "../create-scheme.ts";
import type { ApiObject } from "../object.ts";

const scheme = createScheme();

/** `field: message` of each error of a new object, or of a change of an old one. */
export function errorsOf(apiVersion: string, kind: string, object: object, old?: object): string[] {
  const { strategy, namespaced } = scheme.byKind(apiVersion, kind)!;
  const whole = (of: object) => {
    const full = structuredClone({ apiVersion, kind, ...of }) as ApiObject;
    full.metadata = Object.assign({ name: "x", uid: "u", resourceVersion: "1" }, full.metadata);
    if (namespaced) full.metadata.namespace ??= "n";
    strategy.setDefaults(full);
    return full;
  };
  const now = whole(object);
  const errors = old ? strategy.validateUpdate(now, whole(old), "") : strategy.validate(now);
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

/** What is warned of when the object is created. */
export function warningsOf(apiVersion: string, kind: string, object: object): string[] {
  const { strategy } = scheme.byKind(apiVersion, kind)!;
  return strategy.warnings({ apiVersion, kind, ...structuredClone(object) } as ApiObject, undefined);
}
