import type { FieldError } from "../status-error.ts";
import { fieldError, invalidEach } from "./field-error.ts";
import { isDNS1123Subdomain, isPathSegmentName } from "./names.ts";

/** A name that becomes part of a URL. */
export function validatePathSegment(value: string | undefined, path: string, why = ""): FieldError[] {
  return value ? invalidEach(path, value, isPathSegmentName(value)) : [fieldError.required(path, why)];
}

/** `{apiGroup, kind, name}` of an object somewhere else. */
export function validateTypedReference(
  reference: { apiGroup?: string | null; kind?: string; name?: string },
  path: string,
): FieldError[] {
  const { apiGroup, kind, name } = reference;
  return [
    ...(typeof apiGroup === "string" ? invalidEach(`${path}.apiGroup`, apiGroup, isDNS1123Subdomain(apiGroup)) : []),
    ...validatePathSegment(kind, `${path}.kind`),
    ...validatePathSegment(name, `${path}.name`),
  ];
}

const PATH = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const PATH_RE = new RegExp(`^${PATH}$`);

/** `acme.io/foo` */
export function validateDomainPrefixedPath(value: string, path: string): FieldError[] {
  if (!value) return [fieldError.required(path)];
  const slash = value.indexOf("/");
  if (slash <= 0 || slash === value.length - 1) {
    return [fieldError.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  const [host, rest] = [value.slice(0, slash), value.slice(slash + 1)];
  const errors = invalidEach(path, host, isDNS1123Subdomain(host));
  if (PATH_RE.test(rest)) return errors;
  return [...errors, fieldError.invalid(path, rest, `Invalid path (regex used for validation is '${PATH}')`)];
}
