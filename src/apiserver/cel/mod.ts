/**
 * CEL as Kubernetes speaks it: one environment with all libraries, expressions compiled against declared variables, evaluated
 * within a budget. `createCelEnvironment({ object: "dyn" })` → `compileCel(env, source)` → `program.evaluate({ object: toCel(…) },
 * createCelBudget())`.
 */
export { type CelBudget, CelBudgetError, COST_PER_CALL, COST_PER_OBJECT, createCelBudget } from "./budget.ts";
export { CelCompileError, CelEvaluationError, type CelProgram, compileCel, visitNodes } from "./compile.ts";
export { createCelEnvironment } from "./environment.ts";
export { compareCel, equalCel, formatCel, fromCel, ObjectValue, toCel } from "./values.ts";
