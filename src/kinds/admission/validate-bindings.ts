import type { MutatingAdmissionPolicyBinding, ParamRef, ValidatingAdmissionPolicyBinding } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, invalidEach, oneOf } from "../validation/field-error.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";
import { isDNS1123Subdomain, isPathSegmentName } from "../validation/names.ts";
import { validateMatchResources } from "./validate-rules.ts";

export function validateMutatingBinding({ spec = {} }: Pick<MutatingAdmissionPolicyBinding, "spec">): FieldError[] {
  const { policyName: name } = spec;
  return [
    ...(name
      ? invalidEach("spec.policyName", name, isDNS1123Subdomain(name))
      : [fieldError.required("spec.policyName")]),
    ...validateParamRef(spec.paramRef, "spec.paramRef"),
    ...validateMatchResources(spec.matchResources, "spec.matchResources"),
  ];
}

export function validateValidatingBinding(binding: ValidatingAdmissionPolicyBinding): FieldError[] {
  return [
    ...validateMutatingBinding({ spec: binding.spec ?? {} }),
    ...validateActions(binding.spec?.validationActions ?? [], "spec.validationActions"),
  ];
}

function validateParamRef(reference: ParamRef | undefined, path: string): FieldError[] {
  if (!reference) return [];
  const { name = "", selector, parameterNotFoundAction: action } = reference;
  const errors: FieldError[] = [];
  if (name && selector) {
    const text = "name and selector are mutually exclusive";
    errors.push(fieldError.forbidden(`${path}.name`, text), fieldError.forbidden(`${path}.selector`, text));
  } else if (name) errors.push(...invalidEach(`${path}.name`, name, isPathSegmentName(name)));
  else if (selector) errors.push(...validateLabelSelector(selector, `${path}.selector`));
  else errors.push(fieldError.required(path, "one of name or selector must be specified"));
  const at = `${path}.parameterNotFoundAction`;
  return action ? [...errors, ...oneOf(at, action, ["Deny", "Allow"])] : [...errors, fieldError.required(at)];
}

function validateActions(actions: readonly string[], path: string): FieldError[] {
  if (actions.length === 0) return [fieldError.required(path, "at least one validation action is required")];
  const errors = eachItem(actions, path, (action, at, i) => [
    ...oneOf(at, action, ["Audit", "Deny", "Warn"]),
    ...(actions.indexOf(action) < i ? [fieldError.duplicate(at, action)] : []),
  ]);
  if (!actions.includes("Deny") || !actions.includes("Warn")) return errors;
  const why = "repeating the same validation failure information in the API response and headers serves no purpose";
  return [...errors, fieldError.invalid(path, actions, `must not contain both Deny and Warn (${why})`)];
}
