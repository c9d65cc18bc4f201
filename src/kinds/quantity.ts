/**
 * Quantities (resource.Quantity: `500m`, `1Gi`, `2e3`). Exact in nano units, as Kubernetes keeps them.
 * https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
 */
export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

export interface ParsedQuantity {
  /** The value times 10^9; parts below one nano are rounded up (away from zero). */
  readonly nanos: bigint;
  readonly format: QuantityFormat;
}

const NANO = 1_000_000_000n;
const BINARY: Record<string, bigint> = {
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
  Ti: 1n << 40n,
  Pi: 1n << 50n,
  Ei: 1n << 60n,
};
const DECIMAL: Record<string, number> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const SYNTAX = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?$/;

/** Undefined for what is not a quantity. */
export function parseQuantity(text: string | number): ParsedQuantity | undefined {
  const match = SYNTAX.exec(String(text).trim());
  if (!match) return undefined;
  const [, sign, digits = "", suffix = ""] = match;
  const binary = BINARY[suffix];
  const exponent = binary ? 0 : (DECIMAL[suffix] ?? Number(suffix.slice(1)));
  const [whole = "", fraction = ""] = digits.split(".");
  let numerator = BigInt(whole + fraction || "0") * NANO * (binary ?? 1n);
  const shift = exponent - fraction.length;
  if (Math.abs(shift) > 400) return undefined;
  if (shift >= 0) numerator *= 10n ** BigInt(shift);
  else {
    const divisor = 10n ** BigInt(-shift);
    numerator = (numerator + divisor - 1n) / divisor;
  }
  return {
    nanos: sign === "-" ? -numerator : numerator,
    format: binary ? "BinarySI" : DECIMAL[suffix] === undefined ? "DecimalExponent" : "DecimalSI",
  };
}

/** What is wrong with a text, in the API server's words; undefined for a quantity. */
export function quantityError(text: string): string | undefined {
  if (parseQuantity(text)) return undefined;
  const shape = /^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$/;
  if (shape.test(text) && !/\..*\./.test(text)) return "unable to parse quantity's suffix";
  return `quantities must match the regular expression '${shape.source}'`;
}

const canonical = new Map<string, string>();

/** The text as the API server prints it (`1000m` is `1`, `0.5Gi` is `512Mi`); undefined for what is not a quantity. */
export function canonicalQuantity(value: string | number): string | undefined {
  const text = String(value);
  const known = canonical.get(text);
  if (known !== undefined) return known;
  const parsed = parseQuantity(text);
  if (!parsed) return undefined;
  const result = formatQuantity(parsed);
  if (canonical.size > 10_000) canonical.clear();
  canonical.set(text, result);
  return result;
}

/** Canonical form: the largest suffix that needs no fraction; BinarySI below 1024 or with fractions is printed decimal. */
export function formatQuantity({ nanos, format }: ParsedQuantity): string {
  if (nanos === 0n) return "0";
  const sign = nanos < 0n ? "-" : "";
  const size = nanos < 0n ? -nanos : nanos;
  if (format === "BinarySI" && size >= 1024n * NANO && size % NANO === 0n) {
    let value = size / NANO;
    let unit = "";
    for (const suffix of Object.keys(BINARY)) {
      if (value % 1024n !== 0n) break;
      value /= 1024n;
      unit = suffix;
    }
    return `${sign}${value}${unit}`;
  }
  let value = size;
  let exponent = -9;
  while (exponent < 18 && value % 1000n === 0n) {
    value /= 1000n;
    exponent += 3;
  }
  if (format === "DecimalExponent" && exponent !== 0) return `${sign}${value}e${exponent}`;
  const suffix = Object.keys(DECIMAL).find((key) => DECIMAL[key] === exponent) ?? "";
  return `${sign}${value}${suffix}`;
}

const numbers = new Map<string, number>();

/** The value as a number: cores, bytes, pieces. 0 for absent and for what is not a quantity. */
export function quantityValue(text: string | number | undefined): number {
  if (text === undefined) return 0;
  if (typeof text === "number") return text;
  let value = numbers.get(text);
  if (value === undefined) {
    const parsed = parseQuantity(text);
    value = parsed ? Number(parsed.nanos) / 1e9 : 0;
    if (numbers.size > 10_000) numbers.clear();
    numbers.set(text, value);
  }
  return value;
}

/** The value in thousandths, rounded up (Quantity.MilliValue): millicores. */
export function quantityMilliValue(text: string | number | undefined): number {
  return Math.ceil(Number((quantityValue(text) * 1000).toFixed(3)));
}

/** The sum; its format is that of the first, unless that is zero. */
export function addQuantity(a: string, b: string): string {
  const x = parseQuantity(a) ?? { nanos: 0n, format: "DecimalSI" as const };
  const y = parseQuantity(b) ?? { nanos: 0n, format: "DecimalSI" as const };
  return formatQuantity({ nanos: x.nanos + y.nanos, format: x.nanos === 0n ? y.format : x.format });
}

/** The difference; its format is that of the first, unless that is zero. */
export function subtractQuantity(a: string, b: string): string {
  const x = parseQuantity(a) ?? { nanos: 0n, format: "DecimalSI" as const };
  const y = parseQuantity(b) ?? { nanos: 0n, format: "DecimalSI" as const };
  return formatQuantity({ nanos: x.nanos - y.nanos, format: x.nanos === 0n ? y.format : x.format });
}

/** Negative, zero or positive as a is less than, equal to or greater than b. */
export function compareQuantity(a: string, b: string): number {
  const x = parseQuantity(a)?.nanos ?? 0n;
  const y = parseQuantity(b)?.nanos ?? 0n;
  return x < y ? -1 : x > y ? 1 : 0;
}
