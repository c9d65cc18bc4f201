import type { IPAddress, ServiceCIDR } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError, invalidEach } from "../validation/field-error.ts";
import { canonicalIP, isIPv4, NOT_AN_ADDRESS, validateIP, validateServiceRange } from "../validation/ip.ts";
import { isDNS1123Subdomain, isPathSegmentName, type NameCheck } from "../validation/names.ts";

const IMMUTABLE = "field is immutable";

/** The name is the address itself, in the one way of writing it. */
export const nameIsIPAddress: NameCheck = (name) => {
  if (/^\d+(\.\d+){3}$/.test(name) && /(^|\.)0\d/.test(name)) return ["must not have leading 0s"];
  if (validateIP(name, "").length > 0) return [NOT_AN_ADDRESS];
  const canonical = canonicalIP(name);
  return canonical === name ? [] : [`must be in canonical form (${JSON.stringify(canonical)})`];
};

export function validateIPAddress({ spec }: IPAddress): FieldError[] {
  const path = "spec.parentRef";
  const parent = spec?.parentRef;
  if (!parent) return [fieldError.required(path, "")];
  const errors: FieldError[] = [];
  if (parent.group) errors.push(...invalidEach(`${path}.group`, parent.group, isDNS1123Subdomain(parent.group)));
  for (const field of ["resource", "name"] as const) {
    const value = parent[field];
    if (value) errors.push(...invalidEach(`${path}.${field}`, value, isPathSegmentName(value)));
    else errors.push(fieldError.required(`${path}.${field}`, ""));
  }
  const { namespace } = parent;
  if (namespace) errors.push(...invalidEach(`${path}.namespace`, namespace, isPathSegmentName(namespace)));
  return errors;
}

export function validateIPAddressUpdate(now: IPAddress, old: IPAddress): FieldError[] {
  const shown = ({ spec }: IPAddress) => {
    const { group = "", resource = "", namespace = "", name = "" } = spec?.parentRef ?? {};
    return { Group: group, Resource: resource, Namespace: namespace, Name: name };
  };
  if (JSON.stringify(shown(now)) === JSON.stringify(shown(old))) return [];
  return [fieldError.invalid("spec.parentRef", shown(now), IMMUTABLE)];
}

export function validateServiceCIDR({ spec }: ServiceCIDR): FieldError[] {
  const path = "spec.cidrs";
  const cidrs = spec?.cidrs ?? [];
  if (cidrs.length === 0) return [fieldError.required(path, "at least one CIDR required")];
  if (cidrs.length > 2) return [fieldError.invalid(path, { CIDRs: cidrs }, "may only hold up to 2 values")];
  const errors = cidrs.flatMap((cidr, i) => validateServiceRange(cidr, `${path}[${i}]`));
  const [first, second] = cidrs.map((cidr) => isIPv4(cidr.split("/")[0]!));
  if (errors.length === 0 && cidrs.length === 2 && first === second) {
    const text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
    errors.push(fieldError.invalid(path, cidrs, text));
  }
  return errors;
}

/** Ranges stay; a second one, of the other family, may come. */
export function validateServiceCIDRUpdate(now: ServiceCIDR, old: ServiceCIDR): FieldError[] {
  const path = "spec.cidrs";
  const [before, after] = [old.spec?.cidrs ?? [], now.spec?.cidrs ?? []];
  const grows = before.length === 1 && after.length === 2;
  if (before.length !== after.length && !grows) return [fieldError.invalid(path, after, IMMUTABLE)];
  const changed = before.flatMap((cidr, i) =>
    cidr === after[i] ? [] : [fieldError.invalid(`${path}[${i}]`, after[i], IMMUTABLE)],
  );
  return grows ? [...changed, ...validateServiceCIDR(now)] : changed;
}
