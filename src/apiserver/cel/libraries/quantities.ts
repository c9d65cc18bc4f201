import type { Environment } from "@marcbachmann/cel-js";
import { type ParsedQuantity, formatQuantity, parseQuantity, quantityError } from "#kinds";
import { comparableType, functions } from "./register.ts";

const TYPE = "kubernetes.Quantity";
const NANO = 1_000_000_000n;

/** A resource quantity in CEL. */
export class Quantity {
  readonly parsed: ParsedQuantity;
  constructor(parsed: ParsedQuantity) {
    this.parsed = parsed;
  }
  toString(): string {
    return formatQuantity(this.parsed);
  }
}

/** https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-quantity-library */
export function registerQuantities(env: Environment): void {
  const compare = (a: Quantity, b: Quantity) =>
    a.parsed.nanos < b.parsed.nanos ? -1 : a.parsed.nanos > b.parsed.nanos ? 1 : 0;
  const plus = (a: Quantity, nanos: bigint) => new Quantity({ ...a.parsed, nanos: a.parsed.nanos + nanos });
  const whole = ({ parsed }: Quantity) => {
    const value = parsed.nanos / NANO;
    return parsed.nanos % NANO === 0n && BigInt.asIntN(64, value) === value ? value : undefined;
  };
  comparableType(env, TYPE, Quantity, (a, b) => compare(a, b) === 0);
  functions(env, {
    [`quantity(string): ${TYPE}`]: (text: string) => {
      const parsed = parseQuantity(text);
      if (!parsed) throw new Error(quantityError(text));
      return new Quantity(parsed);
    },
    "isQuantity(string): bool": (text: string) => parseQuantity(text) !== undefined,
    [`${TYPE}.sign(): int`]: ({ parsed }: Quantity) => (parsed.nanos > 0n ? 1n : parsed.nanos < 0n ? -1n : 0n),
    [`sign(${TYPE}): int`]: ({ parsed }: Quantity) => (parsed.nanos > 0n ? 1n : parsed.nanos < 0n ? -1n : 0n),
    [`${TYPE}.isGreaterThan(${TYPE}): bool`]: (a: Quantity, b: Quantity) => compare(a, b) > 0,
    [`${TYPE}.isLessThan(${TYPE}): bool`]: (a: Quantity, b: Quantity) => compare(a, b) < 0,
    [`${TYPE}.compareTo(${TYPE}): int`]: (a: Quantity, b: Quantity) => BigInt(compare(a, b)),
    [`${TYPE}.asApproximateFloat(): double`]: ({ parsed }: Quantity) => Number(parsed.nanos) / 1e9,
    [`${TYPE}.asInteger(): int`]: (quantity: Quantity) => {
      const value = whole(quantity);
      if (value === undefined) throw new Error("cannot convert value to integer");
      return value;
    },
    [`${TYPE}.isInteger(): bool`]: (quantity: Quantity) => whole(quantity) !== undefined,
    [`${TYPE}.add(${TYPE}): ${TYPE}`]: (a: Quantity, b: Quantity) => plus(a, b.parsed.nanos),
    [`${TYPE}.add(int): ${TYPE}`]: (a: Quantity, b: bigint) => plus(a, b * NANO),
    [`${TYPE}.sub(${TYPE}): ${TYPE}`]: (a: Quantity, b: Quantity) => plus(a, -b.parsed.nanos),
    [`${TYPE}.sub(int): ${TYPE}`]: (a: Quantity, b: bigint) => plus(a, -b * NANO),
    [`string(${TYPE}): string`]: String,
  });
}
