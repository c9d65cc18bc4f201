import type { ASTNode } from "@marcbachmann/cel-js";
import { type FieldError, fieldError } from "#kinds";
import type { CelProgram } from "../../cel/mod.ts";
import { escapeField } from "../rules/types.ts";
import { itemsOf, type JsonSchema, valuesOf } from "../schema/json-schema.ts";
import { maxOf } from "./sizes.ts";

/** What one expression, and all of a schema, may cost at most by estimate. */
const EXPRESSION_LIMIT = 10_000_000;
const SCHEMA_LIMIT = 100_000_000;
/** Characters of a text without maxLength: what fits in the largest request. */
const MAX_TEXT = 3 * 1024 * 1024 - 2;

export interface CostSum {
  total: number;
  readonly expensive: { readonly path: string; readonly cost: number }[];
}

export const createCostSum = (): CostSum => ({ total: 0, expensive: [] });

/** Adds what an expression costs at worst, by the sizes that the schema allows. */
export function checkCost(
  program: CelProgram,
  schema: JsonSchema,
  { path, name, times }: { path: string; name: string; times: number },
  walk: { readonly errors: FieldError[]; readonly sum: CostSum; readonly known: boolean },
): void {
  const cost =
    estimate(
      program.ast,
      new Map([
        ["self", schema],
        ["oldSelf", schema],
      ]),
    ).cost * times;
  if (cost > EXPRESSION_LIMIT && !walk.known)
    walk.errors.push(fieldError.forbidden(path, tooMuch(`estimated ${name} cost`, cost, EXPRESSION_LIMIT)));
  walk.sum.total += cost;
  walk.sum.expensive.push({ path, cost });
}

/** The schema as a whole, with the rules that cost most. */
export function sumErrors({ total, expensive }: CostSum, path: string): FieldError[] {
  if (total <= SCHEMA_LIMIT) return [];
  const most = [...expensive].sort((a, b) => b.cost - a.cost).slice(0, 4);
  return [
    ...most.map((one) =>
      fieldError.forbidden(
        one.path,
        "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
      ),
    ),
    fieldError.forbidden(
      path,
      tooMuch("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", total, SCHEMA_LIMIT),
    ),
  ];
}

function tooMuch(name: string, cost: number, limit: number): string {
  const factor = cost / limit;
  const times = factor > 100 ? "more than 100x" : factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`;
  return `${name} exceeds budget by factor of ${times} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
}

type Scope = ReadonlyMap<string, JsonSchema | undefined>;
interface Estimate {
  readonly cost: number;
  /** Schema of the result where it comes from the object. */
  readonly schema?: JsonSchema | undefined;
}

function estimate(node: ASTNode, scope: Scope): Estimate {
  const expanded = (node as unknown as { meta: { alternate?: ASTNode } }).meta.alternate;
  if (expanded) return estimate(expanded, scope);
  const { op } = node;
  const args = node.args as unknown;
  if (op === "value") return { cost: 0 };
  if (op === "id") return { cost: 1, schema: scope.get(args as string) };
  if (op === ("comprehension" as string)) return comprehension(args as Comprehension, scope);
  if (op === "." || op === ".?") {
    const [of, name] = args as [ASTNode, string];
    const inner = estimate(of, scope);
    return { cost: inner.cost + 1, schema: fieldNamed(inner.schema, name) };
  }
  if (op === "[]" || op === "[?]") {
    const [of, index] = args as [ASTNode, ASTNode];
    const inner = estimate(of, scope);
    return {
      cost: inner.cost + estimate(index, scope).cost + 1,
      schema: itemsOf(inner.schema) ?? valuesOf(inner.schema),
    };
  }
  const parts = nodesIn(args).map((part) => estimate(part, scope));
  const inner = parts.reduce((sum, part) => sum + part.cost, 0);
  return { cost: inner + 1 + operation(op, args, parts) };
}

interface Comprehension {
  readonly iterable: ASTNode;
  readonly iterVarName: string;
  readonly init: ASTNode;
  readonly step: ASTNode;
}

function comprehension({ iterable, iterVarName, init, step }: Comprehension, scope: Scope): Estimate {
  const range = estimate(iterable, scope);
  const item = itemsOf(range.schema);
  const body = estimate(step, new Map([...scope, [iterVarName, item]])).cost + 1;
  return {
    cost: range.cost + estimate(init, scope).cost + sizeOf(range.schema, iterable) * body,
    schema: range.schema,
  };
}

/** What an operation costs beside its operands: those on texts and lists grow with them. */
function operation(op: string, args: unknown, parts: readonly Estimate[]): number {
  const name = op === "rcall" || op === "call" ? (args as [string])[0] : op;
  const sizes = parts.map(({ schema }) => (schema ? sizeOf(schema) : 0));
  switch (name) {
    case "==":
    case "!=":
      return (
        Math.ceil(Math.min(...sizes.map((size) => size || Number.POSITIVE_INFINITY), MAX_TEXT) * 0.1) *
        (sizes.some(Boolean) ? 1 : 0)
      );
    case "in":
      return sizes[1] ?? 0;
    case "contains":
    case "matchesLinear":
    case "find":
    case "findAll":
    case "split":
    case "replace":
      return Math.ceil((sizes[0] ?? 0) * 0.1);
    case "isSorted":
    case "sum":
    case "max":
    case "min":
    case "indexOf":
    case "lastIndexOf":
      return sizes[0] ?? 0;
    default:
      return 0;
  }
}

/** Most items, entries or characters. */
function sizeOf(schema: JsonSchema | undefined, node?: ASTNode): number {
  if (!schema) return node?.op === "list" ? (node.args as unknown[]).length : 1;
  const [items, values] = [itemsOf(schema), valuesOf(schema)];
  if (schema.type === "array") return maxOf(schema.maxItems, items ?? {});
  if (values) return maxOf(schema.maxProperties, values);
  if (schema.type === "string") {
    if (schema.enum) return Math.max(...schema.enum.map((one) => String(one).length));
    return schema.maxLength ?? (schema.format === "date-time" || schema.format === "duration" ? 32 : MAX_TEXT);
  }
  return 1;
}

function fieldNamed(schema: JsonSchema | undefined, name: string): JsonSchema | undefined {
  for (const [key, property] of Object.entries(schema?.properties ?? {}))
    if (escapeField(key) === name) return property;
  return valuesOf(schema);
}

function nodesIn(value: unknown): ASTNode[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  return typeof value === "object" && value !== null && "op" in value ? [value as ASTNode] : [];
}
