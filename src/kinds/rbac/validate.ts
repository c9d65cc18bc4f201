import { deepEqual } from "#base";
import type { ApiObject } from "../object.ts";
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError } from "../validation/field-error.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";
import { nameIsDNSSubdomain, nameIsPathSegment } from "../validation/names.ts";

const GROUP = "rbac.authorization.k8s.io";

export function validateRole({ rules }: Role): FieldError[] {
  return (rules ?? []).flatMap((rule, i) => validateRule(rule, `rules[${i}]`, true));
}

export function validateClusterRole({ rules, aggregationRule }: ClusterRole): FieldError[] {
  const errors = (rules ?? []).flatMap((rule, i) => validateRule(rule, `rules[${i}]`, false));
  if (!aggregationRule) return errors;
  const selectors = aggregationRule.clusterRoleSelectors ?? [];
  const at = "aggregationRule.clusterRoleSelectors";
  if (selectors.length === 0)
    errors.push(fieldError.required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"));
  return [...errors, ...selectors.flatMap((selector, i) => validateLabelSelector(selector, `${at}[${i}]`))];
}

function validateRule(rule: PolicyRule, at: string, namespaced: boolean): FieldError[] {
  // an empty list of a required field is kept as null
  const verbs = rule.verbs ?? [];
  const apiGroups = rule.apiGroups ?? [];
  const resources = rule.resources ?? [];
  const resourceNames = rule.resourceNames ?? [];
  const nonResourceURLs = rule.nonResourceURLs ?? [];
  const errors: FieldError[] = [];
  if (verbs.length === 0) errors.push(fieldError.required(`${at}.verbs`, "verbs must contain at least one value"));
  if (nonResourceURLs.length > 0) {
    const field = `${at}.nonResourceURLs`;
    if (namespaced)
      errors.push(fieldError.invalid(field, nonResourceURLs, "namespaced rules cannot apply to non-resource URLs"));
    if (apiGroups.length + resources.length + resourceNames.length > 0)
      errors.push(
        fieldError.invalid(
          field,
          nonResourceURLs,
          "rules cannot apply to both regular resources and non-resource URLs",
        ),
      );
    return errors;
  }
  if (apiGroups.length === 0)
    errors.push(fieldError.required(`${at}.apiGroups`, "resource rules must supply at least one api group"));
  if (resources.length === 0)
    errors.push(fieldError.required(`${at}.resources`, "resource rules must supply at least one resource"));
  return errors;
}

export const validateRoleBinding = (binding: RoleBinding): FieldError[] =>
  validateBinding(binding, ["Role", "ClusterRole"], true);
export const validateClusterRoleBinding = (binding: ClusterRoleBinding): FieldError[] =>
  validateBinding(binding, ["ClusterRole"], false);

function validateBinding(
  { roleRef, subjects }: RoleBinding | ClusterRoleBinding,
  kinds: readonly string[],
  namespaced: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  if (roleRef.apiGroup !== GROUP)
    errors.push(fieldError.notSupported("roleRef.apiGroup", roleRef.apiGroup ?? "", [GROUP]));
  if (!kinds.includes(roleRef.kind)) errors.push(fieldError.notSupported("roleRef.kind", roleRef.kind, kinds));
  if (!roleRef.name) errors.push(fieldError.required("roleRef.name"));
  else
    for (const why of nameIsPathSegment(roleRef.name, false))
      errors.push(fieldError.invalid("roleRef.name", roleRef.name, why));
  const found = (subjects ?? []).flatMap((subject, i) => validateSubject(subject, `subjects[${i}]`, namespaced));
  return [...errors, ...found];
}

function validateSubject(subject: Subject, at: string, namespaced: boolean): FieldError[] {
  const { kind, name, namespace, apiGroup = "" } = subject;
  const errors: FieldError[] = [];
  if (!name) errors.push(fieldError.required(`${at}.name`));
  switch (kind) {
    case "ServiceAccount":
      if (name)
        for (const why of nameIsDNSSubdomain(name, false)) errors.push(fieldError.invalid(`${at}.name`, name, why));
      if (apiGroup) errors.push(fieldError.notSupported(`${at}.apiGroup`, apiGroup, [""]));
      if (!namespaced && !namespace) errors.push(fieldError.required(`${at}.namespace`));
      break;
    case "User":
    case "Group":
      if (apiGroup !== GROUP) errors.push(fieldError.notSupported(`${at}.apiGroup`, apiGroup, [GROUP]));
      break;
    default:
      errors.push(fieldError.notSupported(`${at}.kind`, kind, ["ServiceAccount", "User", "Group"]));
  }
  return errors;
}

/** What a binding refers to is fixed: delete it and make another. */
export function validateRoleRefUpdate<T extends RoleBinding | ClusterRoleBinding>(
  binding: T,
  old: T & ApiObject,
): FieldError[] {
  if (deepEqual(binding.roleRef, old.roleRef)) return [];
  const { apiGroup, kind, name } = binding.roleRef;
  const shown = { APIGroup: apiGroup ?? "", Kind: kind, Name: name };
  return [fieldError.invalid("roleRef", shown, "cannot change roleRef")];
}
