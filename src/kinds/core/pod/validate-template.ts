import type { LabelSelector, PodTemplateSpec } from "../../generated/types.ts";
import { isEmptySelector, matchesSelector } from "../../selector.ts";
import type { FieldError } from "../../status-error.ts";
import { fieldError, oneOf } from "../../validation/field-error.ts";
import { validateLabelSelector } from "../../validation/label-selector.ts";
import { validateAnnotations, validateLabels } from "../../validation/object-meta.ts";
import { validatePodSpec } from "./validate.ts";

export function validatePodTemplate(template: PodTemplateSpec, path: string): FieldError[] {
  const { metadata, spec } = template;
  const errors = [
    ...validateLabels(metadata?.labels, `${path}.labels`),
    ...validateAnnotations(metadata?.annotations, `${path}.annotations`),
    ...validatePodSpec(spec, undefined, `${path}.spec`, { isPod: false }),
  ];
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(
      fieldError.forbidden(`${path}.spec.ephemeralContainers`, "ephemeral containers not allowed in pod template"),
    );
  }
  return errors;
}

interface Owner {
  /** As messages name it: `ReplicaSet`. */
  readonly kind: string;
  readonly selector: LabelSelector | undefined;
}

/** A template whose pods run for ever and are found by a selector. */
export function validateOwnedTemplate(template: PodTemplateSpec, owner: Owner, path: string): FieldError[] {
  return [
    ...validateTemplateLabels(template, owner.selector, path),
    ...validatePodTemplate(template, path),
    ...validateRunsForever(template, owner.kind, path),
  ];
}

export function validateTemplateLabels(
  template: PodTemplateSpec,
  selector: LabelSelector | undefined,
  path: string,
): FieldError[] {
  const labels = template.metadata?.labels;
  if (!selector || isEmptySelector(selector) || matchesSelector(selector, labels)) return [];
  return [fieldError.invalid(`${path}.metadata.labels`, labels ?? null, "`selector` does not match template `labels`")];
}

export function validateRunsForever({ spec }: PodTemplateSpec, kind: string, path: string): FieldError[] {
  const errors = oneOf(`${path}.spec.restartPolicy`, spec.restartPolicy, ["Always"]);
  if (spec.activeDeadlineSeconds === undefined) return errors;
  const text = `activeDeadlineSeconds in ${kind} is not Supported`;
  return [...errors, fieldError.forbidden(`${path}.spec.activeDeadlineSeconds`, text)];
}

/** A selector that must be there and select something. `kind` as messages name it. */
export function validateOwnSelector(selector: LabelSelector | undefined, kind: string, path: string): FieldError[] {
  if (!selector) return [fieldError.required(path)];
  const errors = validateLabelSelector(selector, path);
  if (isEmptySelector(selector))
    errors.push(fieldError.invalid(path, selector, `empty selector is invalid for ${kind}`));
  return errors;
}
