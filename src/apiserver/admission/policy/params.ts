import type { DeepReadonly } from "#base";
import { type ApiObject, type KindInfo, matchesSelector, type ParamKind, type ParamRef, type Scheme } from "#kinds";
import type { Reader } from "../../ports.ts";

/** The kind of a policy's parameters. @throws Error when it is not served */
export function paramKindOf({ apiVersion = "", kind = "" }: DeepReadonly<ParamKind>, scheme: Scheme): KindInfo {
  const found = scheme.byKind(apiVersion, kind);
  if (found) return found;
  const group = apiVersion.includes("/") ? apiVersion : `/${apiVersion}`;
  throw new Error(`failed to find resource referenced by paramKind: '${group}, Kind=${kind}'`);
}

/** The parameters that a binding names, one evaluation each. @throws Error that refuses the call */
export function paramsOf(
  kind: KindInfo,
  ref: DeepReadonly<ParamRef>,
  namespace: string,
  reader: Reader,
): readonly ApiObject[] {
  if (!kind.namespaced && ref.namespace)
    throw new Error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  if (kind.namespaced && !ref.namespace && !namespace)
    throw new Error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
  const where = kind.namespaced ? ref.namespace || namespace : undefined;
  const found = find(kind, ref, where, reader);
  if (found.length === 0 && ref.parameterNotFoundAction === "Deny")
    throw new Error("no params found for policy binding with `Deny` parameterNotFoundAction");
  return found;
}

function find(
  kind: KindInfo,
  { name, selector }: DeepReadonly<ParamRef>,
  namespace: string | undefined,
  reader: Reader,
): readonly ApiObject[] {
  if (name) {
    if (selector) throw new Error("paramRef.name and paramRef.selector are mutually exclusive");
    const param = reader.get(kind, namespace, name);
    return param ? [param] : [];
  }
  if (!selector) throw new Error("one of name or selector must be provided");
  return reader.list(kind, namespace).filter(({ metadata }) => matchesSelector(selector, metadata.labels ?? {}));
}
