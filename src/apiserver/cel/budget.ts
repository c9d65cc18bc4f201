import type { ASTNode, ParseResult } from "@marcbachmann/cel-js";
import { visitNodes } from "./compile.ts";

/** Cost units of one expression, as Kubernetes limits them. */
export const COST_PER_CALL = 1_000_000;
/** Cost units of all expressions over one object. */
export const COST_PER_OBJECT = 10_000_000;

/** What expressions may still cost. One for all rules of an object. */
export interface CelBudget {
  remaining: number;
}

export function createCelBudget(limit: number = COST_PER_OBJECT): CelBudget {
  return { remaining: limit };
}

/** An expression took more than it may. */
export class CelBudgetError extends Error {
  override readonly name = "CelBudgetError";
  /** True: the object's budget is used up; false: this one expression is too costly. */
  readonly total: boolean;
  constructor(total: boolean) {
    super(
      total ? "validation failed due to running out of cost budget" : "operation cancelled: actual cost limit exceeded",
    );
    this.total = total;
  }
}

interface Meter {
  spent: number;
  limit: number;
}

/** A checked expression that counts its steps and stops when it has none left. */
export function meter(
  parsed: ParseResult,
): (variables: Readonly<Record<string, unknown>>, budget: CelBudget) => unknown {
  const state: Meter = { spent: 0, limit: 0 };
  visitNodes(parsed.ast, (node) => count(node, state));
  return (variables, budget) => {
    state.spent = 0;
    state.limit = Math.min(COST_PER_CALL, budget.remaining);
    try {
      return parsed(variables);
    } catch (error) {
      // `||`, `&&` and `exists` swallow errors of a side: the count tells
      if (state.spent > state.limit) throw new CelBudgetError(budget.remaining < COST_PER_CALL);
      throw error;
    } finally {
      budget.remaining -= state.spent;
    }
  };
}

interface Evaluated {
  evaluate(evaluator: unknown, node: unknown, context: unknown): unknown;
  meta: { evaluate: Evaluated["evaluate"]; alternate?: Evaluated; macro?: Evaluated };
}

/** The node's step costs one; operations on texts a tenth of a character. */
function count(node: ASTNode, state: Meter): void {
  if (node.op === "value") return;
  const own = node as unknown as Evaluated;
  const { meta } = own;
  const target = meta.alternate ?? meta.macro;
  const inner = target ? target.evaluate : meta.evaluate;
  const self = target ?? own;
  const costly = node.op === "rcall" || node.op === "call" || node.op === "+" || node.op === "==";
  own.evaluate = (evaluator, _node, context) => {
    if (++state.spent > state.limit) throw new CelBudgetError(false);
    const result = inner.call(self, evaluator, self, context);
    if (costly && typeof result === "string") state.spent += Math.floor(result.length / 10);
    return result;
  };
}
