import { isEmptySelector, type LabelSelector, matchesSelector, notFound, resources } from "#kinds";
import type { DeepReadonly } from "#base";
import type { AdmissionAttributes, Reader } from "../../ports.ts";

export interface Selectors {
  readonly namespaceSelector?: DeepReadonly<LabelSelector>;
  readonly objectSelector?: DeepReadonly<LabelSelector>;
}

const isNamespace = ({ kind }: AdmissionAttributes) => kind.group === "" && kind.resource === "namespaces";

/** Whether the namespace and the labels of the object (before or after) are chosen. @throws StatusError 404 of the namespace */
export function selectorsMatch(selectors: Selectors, attributes: AdmissionAttributes, reader: Reader): boolean {
  return (
    matchesNamespace(selectors.namespaceSelector, attributes, reader) &&
    matchesObject(selectors.objectSelector, attributes)
  );
}

function matchesNamespace(
  selector: DeepReadonly<LabelSelector> | undefined,
  attributes: AdmissionAttributes,
  reader: Reader,
): boolean {
  if (!selector || isEmptySelector(selector)) return true;
  if (!attributes.namespace && !isNamespace(attributes)) return true;
  const changed = isNamespace(attributes) && attributes.subresource === "" && attributes.object;
  const name = isNamespace(attributes) ? attributes.name : attributes.namespace;
  const namespace = changed || reader.get(resources.namespaces, undefined, name);
  if (!namespace) throw notFound({ group: "", resource: "namespaces" }, name);
  return matchesSelector(selector, namespace.metadata?.labels ?? {});
}

function matchesObject(
  selector: DeepReadonly<LabelSelector> | undefined,
  { object, old }: AdmissionAttributes,
): boolean {
  if (!selector || isEmptySelector(selector)) return true;
  return [object, old].some((one) => one?.metadata && matchesSelector(selector, one.metadata.labels ?? {}));
}
