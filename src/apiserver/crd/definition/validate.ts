import type { CustomResourceDefinition, FieldError } from "#kinds";

export function validateDefinition(_definition: CustomResourceDefinition): FieldError[] {
  return [];
}
export function validateDefinitionUpdate(
  _definition: CustomResourceDefinition,
  _old: CustomResourceDefinition,
): FieldError[] {
  return [];
}
