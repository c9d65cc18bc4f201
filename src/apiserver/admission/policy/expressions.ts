import type { Environment } from "@marcbachmann/cel-js";
import type { DeepReadonly } from "#base";
import type { Variable } from "#kinds";
import { type CelBudget, createCelBudget, toCel } from "../../cel/mod.ts";
import { admissionEnvironment, compileTyped, lazily } from "../cel/environment.ts";
import { type Compiled, compiled, expressionError } from "../cel/conditions.ts";

/** Cost units of all expressions of one policy over one object. */
const POLICY_BUDGET = 10_000_000;

export interface PolicyExpressions {
  readonly env: Environment;
  /** Env of match conditions, which see no variables. */
  readonly conditionsEnv: Environment;
  /** Values of one evaluation: those of the call, the parameters, and variables that are computed when they are read. */
  scope(call: Readonly<Record<string, unknown>>, param: unknown): Scope;
}

export interface Scope {
  readonly values: Readonly<Record<string, unknown>>;
  readonly budget: CelBudget;
}

interface Declared {
  readonly variables?: readonly DeepReadonly<Variable>[] | undefined;
  readonly paramKind?: unknown;
}

export function policyExpressions({ variables = [], paramKind }: Declared): PolicyExpressions {
  const params = paramKind !== undefined;
  const names: string[] = [];
  const programs: [name: string, program: Compiled][] = [];
  for (const { name, expression } of variables) {
    // a variable sees those before it
    const env = variablesEnvironment(params, names);
    programs.push([name, compiled(() => compileTyped(env, expression, []))]);
    names.push(name);
  }
  return {
    env: variablesEnvironment(params, names),
    conditionsEnv: admissionEnvironment({ params }),
    scope(call, param) {
      const budget = createCelBudget(POLICY_BUDGET);
      const values: Record<string, unknown> = Object.defineProperties({}, Object.getOwnPropertyDescriptors(call));
      const computed: Record<string, unknown> = {};
      for (const [name, program] of programs) lazily(computed, name, () => evaluate(program, { values, budget }));
      values.variables = computed;
      if (params) lazily(values, "params", () => toCel(param ?? null));
      return { values, budget };
    },
  };
}

export function variablesEnvironment(
  params: boolean,
  names: readonly string[],
  objectType?: (env: Environment) => string,
): Environment {
  const env = admissionEnvironment({ params, ...(objectType ? { objectType } : {}) });
  if (names.length === 0) return env;
  const schema = Object.fromEntries(names.map((name) => [name, "dyn"]));
  env.registerVariable({ name: "variables", schema } as never);
  return env;
}

/** @throws Error when the program failed to compile, or fails on these values */
export function evaluate(program: Compiled, { values, budget }: Scope): unknown {
  if ("error" in program) throw new Error(`compilation error: ${program.error}`);
  return program.evaluate(values, budget);
}

/** Like `evaluate`; the error names the expression. */
export function evaluateNamed(program: Compiled, scope: Scope): unknown {
  try {
    return evaluate(program, scope);
  } catch (error) {
    if ("error" in program) throw error;
    throw new Error(expressionError(program.source, error), { cause: error });
  }
}
