/**
 * Values of resource quantities (`100m`, `1.5Gi`, `2e3`), as numbers. Amounts beyond 2^53 lose their last digits, which no
 * resource of a machine reaches. What is absent is zero.
 *
 * Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
 */

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** In units, rounded up. @throws RangeError for what is not a quantity */
export const wholeValue = (quantity: string | undefined): number => roundUp(parse(quantity));

/** In thousandths, rounded up. @throws RangeError for what is not a quantity */
export const milliValue = (quantity: string | undefined): number => roundUp(parse(quantity) * 1000);

/** True for an absent quantity and for zero. */
export const isZero = (quantity: string | undefined): boolean => parse(quantity) === 0;

function parse(quantity: string | undefined): number {
  if (quantity === undefined || quantity === "") return 0;
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([KMGTPE]i|[numkMGTPE])?)$/.exec(String(quantity));
  if (!match) throw new RangeError(`"${quantity}" is not a quantity`);
  const [, digits = "0", exponent, suffix = ""] = match;
  return exponent !== undefined ? Number(`${digits}e${exponent}`) : Number(digits) * (SUFFIXES[suffix] ?? Number.NaN);
}

/** Rounds up, but not for the noise of binary fractions (0.1 * 1000 and the like). */
function roundUp(value: number): number {
  const near = Math.round(value);
  return Math.abs(value - near) < 1e-6 * Math.max(1, Math.abs(value)) * 1e-3 ? near : Math.ceil(value);
}
