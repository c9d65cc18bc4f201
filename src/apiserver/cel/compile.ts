import { type ASTNode, type Environment, EvaluationError } from "@marcbachmann/cel-js";
import { type CelBudget, meter } from "./budget.ts";
import { compileErrorText } from "./errors.ts";

/** A checked expression. */
export interface CelProgram {
  /** Type of the result: `bool`, `string`, `list<int>`, `dyn`, … */
  readonly type: string;
  readonly source: string;
  readonly ast: ASTNode;
  /** @throws CelEvaluationError */
  evaluate(variables: Readonly<Record<string, unknown>>, budget: CelBudget): unknown;
}

/** The expression can't be read, or its types don't fit; the message is what users see. */
export class CelCompileError extends Error {
  override readonly name = "CelCompileError";
}

/** The expression failed on these values: `no such key: x`, `divide by zero`, … */
export class CelEvaluationError extends Error {
  override readonly name = "CelEvaluationError";
}

/** Reads and checks an expression in an environment. @throws CelCompileError */
export function compileCel(env: Environment, source: string): CelProgram {
  const isFunction = (name: string) => env.getDefinitions().functions.some((one) => one.name === name);
  let parsed: ReturnType<Environment["parse"]>;
  try {
    parsed = env.parse(source);
  } catch (error) {
    throw new CelCompileError(compileErrorText(source, error, isFunction), { cause: error });
  }
  linearMatches(parsed.ast);
  const checked = parsed.check();
  if (!checked.valid)
    throw new CelCompileError(compileErrorText(source, checked.error, isFunction), { cause: checked.error });
  const run = meter(parsed);
  return {
    type: checked.type ?? "dyn",
    source,
    ast: parsed.ast,
    evaluate(variables, budget) {
      try {
        return run(variables, budget);
      } catch (error) {
        throw evaluationError(error);
      }
    },
  };
}

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/^No such key: index out of bounds, index (-?\d+).*/, "index out of bounds: $1"],
  [/^No such key: /, "no such key: "],
  [/^division by zero$/, "division by zero"],
  [/^modulo by zero$/, "modulus by zero"],
  [/^no such overload: .*/, "no such overload"],
  [/^found no matching overload for .*/, "no such overload"],
  [/^Unknown variable: (.*)/, "no such attribute(s): $1"],
  [/^Optional value is not present$/, "optional.none() dereference"],
];

function evaluationError(error: unknown): Error {
  if (!(error instanceof Error)) return new CelEvaluationError(String(error));
  let text = error instanceof EvaluationError ? error.summary : error.message;
  for (const [pattern, words] of WORDS) text = text.replace(pattern, words);
  return error.name === "CelBudgetError" ? error : new CelEvaluationError(text, { cause: error });
}

/** Every `matches` of the expression becomes the one in linear time. */
function linearMatches(root: ASTNode): void {
  visitNodes(root, (node) => {
    const args = node.args as unknown[];
    if (node.op === "rcall" && args[0] === "matches") args[0] = "matchesLinear";
  });
}

/** Calls `visit` for a node and all below it, those that macros made too. */
export function visitNodes(root: ASTNode, visit: (node: ASTNode) => void): void {
  const seen = new Set<object>();
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    if (Array.isArray(value)) {
      for (const item of value) walk(item);
      return;
    }
    seen.add(value);
    if (isNode(value)) {
      visit(value);
      walk(value.args);
      const { macro } = (value as unknown as { meta: { macro?: object } }).meta;
      if (macro) walk(macro);
      return;
    }
    if (Object.getPrototypeOf(value) === Object.prototype) for (const item of Object.values(value)) walk(item);
  };
  walk(root);
}

function isNode(value: object): value is ASTNode {
  return "op" in value && "args" in value && "meta" in value;
}
