import { type CustomResourceDefinition, type FieldError, fieldError } from "#kinds";

const ANNOTATION = "api-approved.kubernetes.io";
const PATH = `metadata.annotations[${ANNOTATION}]`;
const PROTECTED = /(^|\.)(k8s|kubernetes)\.io$/;

/** Groups of the Kubernetes community need the address of their review. */
export function validateApproval(
  definition: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
): FieldError[] {
  if (!PROTECTED.test(definition.spec.group)) return [];
  const text = definition.metadata?.annotations?.[ANNOTATION];
  const state = stateOf(text);
  if (old && stateOf(old.metadata?.annotations?.[ANNOTATION]) === state) return [];
  if (state === "missing")
    return [
      fieldError.required(
        PATH,
        'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
      ),
    ];
  if (state === "invalid")
    return [
      fieldError.invalid(
        PATH,
        text,
        `protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`,
      ),
    ];
  return [];
}

function stateOf(text: string | undefined): "missing" | "bypassed" | "approved" | "invalid" {
  if (!text) return "missing";
  if (text.startsWith("unapproved")) return "bypassed";
  return /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]+/.test(text) ? "approved" : "invalid";
}
