import type { MatchResources, RuleWithOperations } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, oneOf } from "../validation/field-error.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";

const OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES = ["*", "Cluster", "Namespaced"];

/** What a webhook or a policy is asked about. */
export function validateAdmissionRule(rule: RuleWithOperations, path: string): FieldError[] {
  const { operations, apiGroups, apiVersions, resources, scope } = rule;
  return [
    ...validateList(operations, `${path}.operations`, "operations"),
    ...eachItem(operations, `${path}.operations`, (operation, at) => oneOf(at, operation, OPERATIONS)),
    ...validateList(apiGroups, `${path}.apiGroups`, "API groups"),
    ...validateList(apiVersions, `${path}.apiVersions`, "API versions"),
    ...eachItem(apiVersions, `${path}.apiVersions`, (version, at) => (version ? [] : [fieldError.required(at)])),
    ...validateResources(resources ?? [], `${path}.resources`),
    ...(scope === undefined ? [] : oneOf(`${path}.scope`, scope, SCOPES)),
  ];
}

/** Something must be in it; `*` alone. */
function validateList(items: readonly string[] | null | undefined, path: string, what: string): FieldError[] {
  if (!items || items.length === 0) return [fieldError.required(path)];
  if (items.length === 1 || !items.includes("*")) return [];
  return [fieldError.invalid(path, items, `if '*' is present, must not specify other ${what}`)];
}

function validateResources(resources: readonly string[], path: string): FieldError[] {
  if (resources.length === 0) return [fieldError.required(path)];
  const allOf = new Set<string>();
  const ofAll = new Set<string>();
  const errors = eachItem(resources, path, (name, at) => {
    if (!name) return [fieldError.required(at)];
    const [resource = "", sub] = name.split("/", 2);
    if (sub === undefined) return [];
    const found: FieldError[] = [];
    const covered = (by: string) =>
      found.push(fieldError.invalid(at, name, `if '${by}' is present, must not specify ${name}`));
    if (allOf.has(resource)) covered(`${resource}/*`);
    if (ofAll.has(sub)) covered(`*/${sub}`);
    if (sub === "*") allOf.add(resource);
    if (resource === "*") ofAll.add(sub);
    return found;
  });
  if (resources.length > 1 && resources.includes("*/*")) {
    errors.push(fieldError.invalid(path, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (resources.includes("*") && resources.some((name) => name !== "" && name !== "*" && !name.includes("/"))) {
    const text = "if '*' is present, must not specify other resources without subresources";
    errors.push(fieldError.invalid(path, resources, text));
  }
  return errors;
}

/** Of a binding; a policy must have rules besides. */
export function validateMatchResources(resources: MatchResources | undefined, path: string): FieldError[] {
  if (!resources) return [];
  const { matchPolicy, namespaceSelector, objectSelector, resourceRules, excludeResourceRules } = resources;
  return [
    ...(matchPolicy === undefined ? [] : oneOf(`${path}.matchPolicy`, matchPolicy, ["Equivalent", "Exact"])),
    ...validateLabelSelector(namespaceSelector, `${path}.namespaceSelector`),
    ...validateLabelSelector(objectSelector, `${path}.objectSelector`),
    ...eachItem(resourceRules, `${path}.resourceRules`, validateAdmissionRule),
    ...eachItem(excludeResourceRules, `${path}.excludeResourceRules`, validateAdmissionRule),
  ];
}
