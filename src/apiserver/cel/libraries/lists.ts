import type { Environment } from "@marcbachmann/cel-js";
import { Optional } from "@marcbachmann/cel-js";
import { compareCel, equalCel } from "../values.ts";
import { functions, namespace } from "./register.ts";

type List = readonly unknown[];

/** Lists of Kubernetes (isSorted, sum, min, max, indexOf) and of CEL (distinct, flatten, slice, sort …), and sets. */
export function registerLists(env: Environment): void {
  functions(env, {
    "list<A>.isSorted(): bool": (list: List) => list.every((item, i) => i === 0 || compareCel(list[i - 1], item) <= 0),
    "list<int>.sum(): int": (list: readonly bigint[]) => list.reduce((sum, item) => sum + item, 0n),
    "list<double>.sum(): double": (list: readonly number[]) => list.reduce((sum, item) => sum + item, 0),
    "list<A>.min(): A": (list: List) => extreme("min", list, -1),
    "list<A>.max(): A": (list: List) => extreme("max", list, 1),
    "list<A>.indexOf(A): int": (list: List, item: unknown) => BigInt(list.findIndex((one) => equalCel(one, item))),
    "list<A>.lastIndexOf(A): int": (list: List, item: unknown) =>
      BigInt(list.findLastIndex((one) => equalCel(one, item))),
    "list<A>.distinct(): list<A>": (list: List) =>
      list.filter((item, i) => list.findIndex((one) => equalCel(one, item)) === i),
    "list<A>.reverse(): list<A>": (list: List) => list.toReversed(),
    "list<A>.sort(): list<A>": (list: List) => list.toSorted(compareCel),
    "list<A>.slice(int, int): list<A>": slice,
    "list.flatten(): list<dyn>": (list: List) => list.flat(1),
    "list.flatten(int): list<dyn>": (list: List, depth: bigint) => list.flat(Number(depth)),
    "list<A>.first(): optional<A>": (list: List) => Optional.of(list[0]),
    "list<A>.last(): optional<A>": (list: List) => Optional.of(list.at(-1)),
  });
  namespace(env, "lists", "ListsNamespace");
  namespace(env, "sets", "SetsNamespace");
  const contains = (list: List, part: List) => part.every((item) => list.some((one) => equalCel(one, item)));
  functions(env, {
    "ListsNamespace.range(int): list<int>": (_: unknown, size: bigint) =>
      Array.from({ length: Math.max(0, Number(size)) }, (_item, i) => BigInt(i)),
    "SetsNamespace.contains(list<A>, list<A>): bool": (_: unknown, list: List, part: List) => contains(list, part),
    "SetsNamespace.equivalent(list<A>, list<A>): bool": (_: unknown, a: List, b: List) =>
      contains(a, b) && contains(b, a),
    "SetsNamespace.intersects(list<A>, list<A>): bool": (_: unknown, a: List, b: List) =>
      a.some((item) => b.some((one) => equalCel(one, item))),
  });
}

function extreme(name: string, list: List, sign: number): unknown {
  if (list.length === 0) throw new Error(`${name} called on empty list`);
  return list.reduce((best, item) => (compareCel(item, best) * sign > 0 ? item : best));
}

function slice(list: List, from: bigint, to: bigint): List {
  if (from < 0n || to > BigInt(list.length) || from > to)
    throw new Error(`cannot slice(${from}, ${to}), list is length ${list.length}`);
  return list.slice(Number(from), Number(to));
}
