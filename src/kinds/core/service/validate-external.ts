import { isIP } from "node:net";
import type { Service } from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, oneOf } from "../../validation/field-error.ts";
import { validateCIDR, validateIP } from "../../validation/ip.ts";

const RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges";

/** An address that traffic can come to: not unspecified, loopback, link-local or multicast. */
export function validateUsableIP(address: string, path: string): FieldError[] {
  const errors = validateIP(address, path);
  return errors.length > 0 ? errors : validateNotSpecial(address, path);
}

/** The ranges that no endpoint or outer address may lie in. */
export function validateNotSpecial(address: string, path: string): FieldError[] {
  const v4 = isIP(address) === 4;
  const parts = address.split(".").map(Number);
  const head = v4 ? 0 : Number.parseInt(address.split(":")[0] || "0", 16);
  const errors: FieldError[] = [];
  const not = (test: boolean, text: string) => {
    if (test) errors.push(fieldError.invalid(path, address, text));
  };
  not(v4 ? parts.every((part) => part === 0) : /^[0:]+$/.test(address), `may not be unspecified (${address})`);
  not(v4 ? parts[0] === 127 : /^(0*:)+0*1$/.test(address), "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  not(
    v4 ? parts[0] === 169 && parts[1] === 254 : (head & 0xffc0) === 0xfe80,
    "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
  );
  not(
    v4 ? parts[0] === 224 && parts[1] === 0 && parts[2] === 0 : (head & 0xff0f) === 0xff02,
    "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
  );
  return errors;
}

export function validateSourceRanges({ spec, metadata }: Service): FieldError[] {
  const ranges = spec.loadBalancerSourceRanges ?? [];
  const text = metadata.annotations?.[RANGES];
  const only = (field: string) => fieldError.forbidden(field, "may only be used when `type` is 'LoadBalancer'");
  if (ranges.length > 0) {
    const path = "spec.LoadBalancerSourceRanges";
    const errors = spec.type === "LoadBalancer" ? [] : [only(path)];
    return [...errors, ...eachItem(ranges, path, (range, at) => validateRange(range.trim(), at))];
  }
  if (text === undefined) return [];
  const path = `metadata.annotations[${RANGES}]`;
  const errors = spec.type === "LoadBalancer" ? [] : [only(path)];
  const parts = text.trim() === "" ? [] : text.split(",").map((part) => part.trim());
  return [...errors, ...parts.flatMap((part) => validateRange(part, path))];
}

function validateRange(range: string, path: string): FieldError[] {
  const errors = validateCIDR(range, path);
  if (errors.length > 0) return errors;
  const [address = "", bits = ""] = range.split("/");
  if (isIP(address) !== 4) return [];
  const number = address.split(".").reduce((all, part) => all * 256 + Number(part), 0);
  const beyond = number % 2 ** (32 - Number(bits)) !== 0;
  return beyond ? [fieldError.invalid(path, range, "must not have bits set beyond the prefix length")] : [];
}

export function validateExternalTraffic({ spec }: Service): FieldError[] {
  const errors: FieldError[] = [];
  const { externalTrafficPolicy: policy, healthCheckNodePort } = spec;
  const external =
    spec.type === "NodePort" ||
    spec.type === "LoadBalancer" ||
    (spec.type !== "ExternalName" && (spec.externalIPs ?? []).length > 0);
  const path = "spec.externalTrafficPolicy";
  if (policy && !external)
    errors.push(fieldError.invalid(path, policy, "may only be set for externally-accessible services"));
  else if (policy) errors.push(...oneOf(path, policy, ["Cluster", "Local"]));
  else if (external) errors.push(fieldError.required(path));
  const checked = spec.type === "LoadBalancer" && policy === "Local";
  if (healthCheckNodePort && !checked)
    errors.push(
      fieldError.invalid(
        "spec.healthCheckNodePort",
        healthCheckNodePort,
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      ),
    );
  if (checked && (healthCheckNodePort ?? 0) < 0)
    errors.push(fieldError.invalid("spec.healthCheckNodePort", healthCheckNodePort, "must be greater than 0"));
  return errors;
}
