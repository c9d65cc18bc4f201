import { type Environment, Optional } from "@marcbachmann/cel-js";
import { functions } from "./register.ts";

// The library's macro interface is untyped: a node, a checker and an evaluator are what it hands over.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** `optMap`, `optFlatMap`, `ofNonZeroValue`, and comprehensions over two variables. */
export function registerMacros(env: Environment): void {
  for (const flat of [false, true])
    env.registerFunction(`optional.${flat ? "optFlatMap" : "optMap"}(ast, ast): dyn`, optionalMap(flat) as Any);
  functions(env, {
    "OptionalNamespace.ofNonZeroValue(A): optional<A>": (_: unknown, value: unknown) =>
      isZero(value) ? Optional.none() : Optional.of(value),
  });
  for (const [name, fold] of Object.entries(TWO_VARIABLES)) {
    env.registerFunction(`list.${name}(ast, ast, ast): dyn`, twoVariables(fold, false) as Any);
    if (fold.filters) env.registerFunction(`list.${name}(ast, ast, ast, ast): dyn`, twoVariables(fold, true) as Any);
  }
}

function isZero(value: unknown): boolean {
  if (value === null || value === "" || value === false || value === 0 || value === 0n) return true;
  if (Array.isArray(value)) return value.length === 0;
  if (value instanceof Map) return value.size === 0;
  return typeof value === "object" && value.constructor === Object && Object.keys(value).length === 0;
}

function nameOf(node: Any): string {
  if (node.op !== "id") throw new Error("argument is not an identifier");
  return node.args as string;
}

function optionalMap(flat: boolean) {
  return ({ args, receiver }: Any) => {
    const variable = nameOf(args[0]);
    let scope: Any;
    return {
      receiver,
      arguments: args,
      typeCheck(checker: Any, _macro: Any, context: Any) {
        const type = checker.check(receiver, context);
        scope = context.forkWithVariable(variable, type.kind === "optional" ? type.valueType : checker.dynType);
        const result = checker.check(args[1], scope);
        return flat ? result : checker.registry.getOptionalType(result);
      },
      evaluate(evaluator: Any, _macro: Any, context: Any) {
        const value = evaluator.run(receiver, context) as Optional;
        if (!value.hasValue()) return Optional.none();
        const result = evaluator.run(args[1], scope.reuse(context).setIterValue(value.value(), evaluator));
        return flat ? result : Optional.of(result);
      },
    };
  };
}

interface Fold {
  readonly filters: boolean;
  readonly type: "bool" | "list" | "map";
  run(entries: readonly (readonly [unknown, unknown])[], step: (key: unknown, value: unknown) => unknown): unknown;
}

const TWO_VARIABLES: Readonly<Record<string, Fold>> = {
  all: { filters: false, type: "bool", run: (entries, step) => entries.every(([k, v]) => step(k, v) === true) },
  exists: { filters: false, type: "bool", run: (entries, step) => entries.some(([k, v]) => step(k, v) === true) },
  existsOne: {
    filters: false,
    type: "bool",
    run: (entries, step) => entries.filter(([k, v]) => step(k, v) === true).length === 1,
  },
  transformList: { filters: true, type: "list", run: (entries, step) => entries.map(([k, v]) => step(k, v)) },
  transformMap: {
    filters: true,
    type: "map",
    run: (entries, step) => new Map(entries.map(([k, v]) => [k, step(k, v)])),
  },
};

function twoVariables(fold: Fold, filtered: boolean) {
  return ({ args, receiver }: Any) => {
    const [first, second] = [nameOf(args[0]), nameOf(args[1])];
    const step = args[filtered ? 3 : 2];
    let outer: Any;
    let inner: Any;
    return {
      receiver,
      arguments: args,
      typeCheck(checker: Any, _macro: Any, context: Any) {
        const type = checker.check(receiver, context);
        const key = type.kind === "list" ? checker.intType : (type.keyType ?? checker.dynType);
        outer = context.forkWithVariable(first, key);
        inner = outer.forkWithVariable(second, type.valueType ?? checker.dynType);
        if (filtered) checker.check(args[2], inner);
        const result = checker.check(step, inner);
        if (fold.type === "bool") return checker.boolType;
        return fold.type === "list" ? checker.registry.getListType(result) : checker.registry.getMapType(key, result);
      },
      evaluate(evaluator: Any, _macro: Any, context: Any) {
        const inside = (key: unknown, value: unknown) =>
          inner.reuse(outer.reuse(context).setIterValue(key, evaluator)).setIterValue(value, evaluator);
        let entries = entriesOf(evaluator.run(receiver, context));
        if (filtered) entries = entries.filter(([k, v]) => evaluator.run(args[2], inside(k, v)) === true);
        return fold.run(entries, (key, value) => evaluator.run(step, inside(key, value)));
      },
    };
  };
}

function entriesOf(value: unknown): (readonly [unknown, unknown])[] {
  if (Array.isArray(value)) return value.map((item, i) => [BigInt(i), item] as const);
  return value instanceof Map ? [...value] : Object.entries(value as object);
}
