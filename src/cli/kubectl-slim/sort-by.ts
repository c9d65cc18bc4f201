import { createJsonPath } from "#base";
import type { ApiObject } from "#kinds";
import { CommandError } from "./errors.ts";
import type { Table } from "./printers/table.ts";

/** Sorts the rows of a table in place; false when no row has the field. */
export function sortRows(table: Table, path: string): boolean {
  const order = comparatorOf(
    path,
    table.rows.map((row) => row.object as ApiObject),
  );
  if (!order) return false;
  table.rows = table.rows
    .map((row, i) => ({ row, i }))
    .sort((a, b) => order(a.i, b.i))
    .map(({ row }) => row);
  return true;
}

/** @throws CommandError when no object has the field */
export function sortObjects(objects: readonly ApiObject[], path: string): ApiObject[] {
  const order = comparatorOf(path, objects);
  if (!order) {
    const shown = path.startsWith("{") ? path : `{${path.startsWith(".") ? path : `.${path}`}}`;
    throw new CommandError(`couldn't find any field with path ${JSON.stringify(shown)} in the list of objects`);
  }
  return objects
    .map((_, i) => i)
    .sort(order)
    .map((i) => objects[i]!);
}

/** Undefined when no object has the field. */
function comparatorOf(path: string, objects: readonly ApiObject[]): ((a: number, b: number) => number) | undefined {
  const jsonPath = createJsonPath(path, { relaxed: true });
  const values = objects.map((object) => jsonPath.find(object).flat()[0]);
  if (objects.length > 0 && values.every((value) => value === undefined)) return undefined;
  return (a, b) => compareValues(values[a], values[b]);
}

function compareValues(a: unknown, b: unknown): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [x, y] = [quantity(a), quantity(b)];
  if (x !== undefined && y !== undefined) return x - y;
  return naturalOrder(String(a), String(b));
}

function quantity(value: unknown): number | undefined {
  if (typeof value !== "string") return undefined;
  const match = /^([+-]?\d+(?:\.\d*)?)([numkMGTPE]|[KMGTPE]i)?$/.exec(value);
  return match ? Number(match[1]) * (match[2] ? SUFFIXES[match[2]]! : 1) : undefined;
}

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
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

/** Runs of digits by their value. */
function naturalOrder(a: string, b: string): number {
  const parts = (text: string) => text.match(/\d+|\D+/g) ?? [];
  const [x, y] = [parts(a), parts(b)];
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    if (x[i] === y[i]) continue;
    const [m, n] = [Number(x[i]), Number(y[i])];
    if (Number.isFinite(m) && Number.isFinite(n) && m !== n) return m - n;
    return x[i]! < y[i]! ? -1 : 1;
  }
  return x.length - y.length;
}
