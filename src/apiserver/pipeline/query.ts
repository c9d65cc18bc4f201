import { badRequest, type FieldError, invalid, type StatusError } from "#kinds";

/** A query parameter as Go's conversion reads a 64-bit number; absent and empty are undefined. @throws StatusError 400 */
export function integerOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (!text) return undefined;
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
  const value = BigInt(text);
  if (BigInt.asIntN(64, value) !== value) throw badRequest(`strconv.ParseInt: parsing "${text}": value out of range`);
  return Number(value);
}

/** What is wrong with a resource version, in the original's words; undefined for a good one. */
export function resourceVersionError(text: string): string | undefined {
  const why = !/^\d+$/.test(text) ? "invalid syntax" : BigInt(text) > MAX_UINT64 ? "value out of range" : undefined;
  return why && `resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": ${why}`;
}
const MAX_UINT64 = 2n ** 64n - 1n;

/** 422 for the options of a request (`ListOptions`, `CreateOptions`, …). @throws StatusError when there are errors */
export function checkOptions(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw optionsError(kind, errors);
}

function optionsError(kind: string, errors: readonly FieldError[]): StatusError {
  return invalid({ group: "meta.k8s.io", kind }, "", errors);
}

export function forbiddenOption(field: string, why: string): FieldError {
  return { field, reason: "FieldValueForbidden", message: `Forbidden: ${why}` };
}

/** @param shown the value as it is written in messages, strings with their quotes */
export function unsupportedOption(field: string, shown: string, supported: readonly string[]): FieldError {
  const list = supported.map((value) => `"${value}"`).join(", ");
  return { field, reason: "FieldValueNotSupported", message: `Unsupported value: ${shown}: supported values: ${list}` };
}
