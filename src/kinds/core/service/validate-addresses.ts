import type { Service } from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, oneOf } from "../../validation/field-error.ts";
import { isIPv4, isIPv6, validateIP } from "../../validation/ip.ts";

const FAMILIES = ["IPv4", "IPv6"];
const POLICIES = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/**
 * `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` together. They are looked at before addresses are given out and
 * again with the whole object.
 */
export function validateClusterIPs(service: Service, old: Service | undefined): FieldError[] {
  const { spec } = service;
  if (spec.type === "ExternalName") return [];
  const clusterIPs = spec.clusterIPs ?? [];
  const disagree = validatePrimary(spec.clusterIP ?? "", clusterIPs);
  return [
    ...(disagree.length > 0 ? [] : validateChange(service, old)),
    ...(spec.ipFamilyPolicy === undefined ? [] : oneOf("spec.ipFamilyPolicy", spec.ipFamilyPolicy, POLICIES)),
    ...validateFamilies(spec.ipFamilies ?? [], spec.ipFamilyPolicy),
    ...disagree,
    ...validateAddresses(service, clusterIPs),
    ...validateAgainstFamilies(clusterIPs, spec.ipFamilies ?? []),
  ];
}

/** The first address stays while the Service has one. */
function validateChange(service: Service, old: Service | undefined): FieldError[] {
  if (!old || old.spec.type === "ExternalName") return [];
  const before = old.spec.clusterIPs ?? [];
  const now = service.spec.clusterIPs ?? [];
  if (!before[0] || now[0] === before[0]) return [];
  const why = now.length === 0 ? "primary clusterIP can not be unset" : "may not change once set";
  return [fieldError.invalid("spec.clusterIPs[0]", now, why)];
}

function validateFamilies(families: readonly string[], policy: string | undefined): FieldError[] {
  const path = "spec.ipFamilies";
  const errors = eachItem(families, path, (family, at, i) => [
    ...oneOf(at, family, FAMILIES),
    ...(families.indexOf(family) < i ? [fieldError.duplicate(at, family)] : []),
  ]);
  if (families.length > 2) errors.push(fieldError.invalid(path, families, "may specify no more than two IP families"));
  if (errors.length === 0 && families.length > 1 && policy === "SingleStack")
    errors.push(
      fieldError.invalid(
        "spec.ipFamilyPolicy",
        policy,
        "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
      ),
    );
  return errors;
}

function validatePrimary(clusterIP: string, clusterIPs: readonly string[]): FieldError[] {
  const path = "spec.clusterIPs";
  if (clusterIP === "" && clusterIPs.length > 0)
    return [fieldError.invalid(path, clusterIPs, "must be empty when `clusterIP` is not specified")];
  if (clusterIP !== "" && clusterIPs.length === 0) return [fieldError.required(path)];
  if (clusterIP !== (clusterIPs[0] ?? ""))
    return [fieldError.invalid(path, clusterIPs, "first value must match `clusterIP`")];
  return [];
}

function validateAddresses({ spec }: Service, clusterIPs: readonly string[]): FieldError[] {
  const path = "spec.clusterIPs";
  const errors = eachItem(clusterIPs, path, (address, at) => {
    if (address !== "None") return validateIP(address, at);
    if (clusterIPs.length > 1) return [fieldError.invalid(at, address, "'None' must be the first and only value")];
    if (spec.type === "ClusterIP" || spec.type === undefined) return [];
    return [fieldError.invalid(at, address, `may not be set to 'None' for ${spec.type} services`)];
  });
  if (clusterIPs.length > 2) errors.push(fieldError.invalid(path, clusterIPs, "may only hold up to 2 values"));
  if (clusterIPs.length === 2 && errors.length === 0 && isIPv4(clusterIPs[0]!) === isIPv4(clusterIPs[1]!))
    errors.push(fieldError.invalid(path, clusterIPs, "may specify no more than one IP for each IP family"));
  return errors;
}

function validateAgainstFamilies(clusterIPs: readonly string[], families: readonly string[]): FieldError[] {
  return eachItem(clusterIPs, "spec.clusterIPs", (address, at, i) => {
    const family = families[i];
    if (address === "None" || family === undefined) return [];
    const wrong = family === "IPv4" ? isIPv6(address) : family === "IPv6" && isIPv4(address);
    if (!wrong) return [];
    return [fieldError.invalid(at, address, `expected an ${family} value as indicated by \`ipFamilies[${i}]\``)];
  });
}
