import type { PodTemplate, ReplicationController } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError, nonNegative } from "../validation/field-error.ts";
import { validatePodTemplate, validateOwnedTemplate } from "./pod/validate-template.ts";

export function validateTemplateObject({ template }: PodTemplate): FieldError[] {
  return validatePodTemplate(template ?? { spec: { containers: [] } }, "template");
}

export function validateReplicationController({ spec = {} }: ReplicationController): FieldError[] {
  const { selector = {}, template } = spec;
  const errors = [
    ...nonNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...nonNegative("spec.replicas", spec.replicas),
  ];
  if (Object.keys(selector).length === 0) errors.push(fieldError.required("spec.selector"));
  if (!template) return [...errors, fieldError.required("spec.template")];
  const owner = { kind: "ReplicationController", selector: { matchLabels: selector } };
  return [...errors, ...validateOwnedTemplate(template, owner, "spec.template")];
}
