import { isIP, isIPv4, isIPv6 } from "node:net";
import type { FieldError } from "../status-error.ts";
import { fieldError } from "./field-error.ts";

export const NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/** An address as fields of old APIs take it. */
export function validateIP(address: string, path: string): FieldError[] {
  return isIP(address) === 0 ? [fieldError.invalid(path, address, NOT_AN_ADDRESS)] : [];
}

/** An address in the one way of writing that new APIs take. */
export function validateStrictIP(address: string, path: string): FieldError[] {
  const errors = validateIP(address, path);
  if (errors.length > 0) return errors;
  const canonical = canonicalIP(address);
  if (canonical === address) return [];
  return [fieldError.invalid(path, address, `must be in canonical form (${JSON.stringify(canonical)})`)];
}

/** The shortest form, as Go's netip prints it. */
export function canonicalIP(address: string): string {
  if (!isIPv6(address)) return address;
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

const CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/** `10.0.0.0/8` */
export function isCIDR(value: string): boolean {
  const [address = "", bits = "", ...rest] = value.split("/");
  if (rest.length > 0 || !/^(0|[1-9]\d*)$/.test(bits)) return false;
  return Number(bits) <= (isIPv4(address) ? 32 : 128) && isIP(address) !== 0;
}

export function validateCIDR(value: string, path: string): FieldError[] {
  return isCIDR(value) ? [] : [fieldError.invalid(path, value, CIDR)];
}

/** A range in the one way of writing it: no bit is set beyond the prefix. */
export function validateServiceRange(value: string, path: string): FieldError[] {
  const errors = validateCIDR(value, path);
  if (errors.length > 0) return errors;
  const [address = "", bits = ""] = value.split("/");
  const number = numberOf(address);
  const host = BigInt((isIPv4(address) ? 32 : 128) - Number(bits));
  if ((number >> host) << host === number) return [];
  return [fieldError.invalid(path, value, "must not have bits set beyond the prefix length")];
}

/** A range without the ways of writing that parsers read differently: leading zeros and IPv4 addresses within IPv6. */
export function validateStrictCIDR(value: string, path: string): FieldError[] {
  const [address = "", bits = ""] = value.split("/");
  const plain = address.includes(".") && !address.includes(":") ? address.replace(/\b0+(?=\d)/g, "") : address;
  const range = `${plain}/${bits.replace(/^0+(?=\d)/, "")}`;
  if (range !== value && isCIDR(range)) {
    return [fieldError.invalid(path, value, "must not have leading 0s in IP or prefix length")];
  }
  if (isCIDR(value) && /^::ffff:\d+\./i.test(address)) {
    return [fieldError.invalid(path, value, "must not have an IPv4-mapped IPv6 address")];
  }
  return validateServiceRange(value, path);
}

function numberOf(address: string): bigint {
  if (isIPv4(address)) return address.split(".").reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  const [head = "", tail] = canonicalIP(address).split("::");
  const words = (part: string) => (part === "" ? [] : part.split(":"));
  const zeros = tail === undefined ? 0 : 8 - words(head).length - words(tail).length;
  const all = [...words(head), ...Array.from({ length: zeros }, () => "0"), ...words(tail ?? "")];
  return all.reduce((sum, word) => sum * 65_536n + BigInt(`0x${word}`), 0n);
}

export { isIPv4, isIPv6 };
