import { type CelProgram, CelCompileError, compileCel, createCelEnvironment, visitNodes } from "../../cel/mod.ts";
import type { JsonSchema, ValidationRule } from "../schema/json-schema.ts";
import { type CelType, declareType } from "./types.ts";

/** A rule that can run, or why it can't. */
export interface CompiledRule {
  readonly rule: ValidationRule;
  readonly program: CelProgram | undefined;
  /** What is wrong with the rule. */
  readonly error: string | undefined;
  readonly messageProgram: CelProgram | undefined;
  readonly messageError: string | undefined;
  readonly usesOldSelf: boolean;
}

/** The rules of one schema (not of those in it). */
export interface CompiledRules {
  readonly rules: readonly CompiledRule[];
  readonly type: CelType;
}

const compiled = new WeakMap<JsonSchema, CompiledRules>();

/** Compiled once for a schema; undefined without rules. `root` has the fields of an object beside its own. */
export function rulesOf(schema: JsonSchema, root: boolean): CompiledRules | undefined {
  const rules = schema["x-kubernetes-validations"];
  if (!rules?.length) return undefined;
  let known = compiled.get(schema);
  if (!known) {
    known = compileRules(schema, rules, root);
    compiled.set(schema, known);
  }
  return known;
}

function compileRules(schema: JsonSchema, rules: readonly ValidationRule[], root: boolean): CompiledRules {
  const types = createCelEnvironment();
  const type = declareType(types, schema, "object.self", root);
  const plain = types.clone().registerVariable("self", type.name).registerVariable("oldSelf", type.name);
  const optional = types
    .clone()
    .registerVariable("self", type.name)
    .registerVariable("oldSelf", `optional<${type.name}>`);
  const compileOne = (rule: ValidationRule): CompiledRule => {
    const env = rule.optionalOldSelf ? optional : plain;
    const [program, error] = attempt(() => {
      const made = compileCel(env, rule.rule.trim());
      if (made.type !== "bool" && made.type !== "dyn")
        throw new CelCompileError("cel expression must evaluate to a bool");
      return made;
    });
    const [messageProgram, messageError] = rule.messageExpression
      ? attempt(() => {
          const made = compileCel(env, rule.messageExpression!.trim());
          if (made.type !== "string" && made.type !== "dyn")
            throw new CelCompileError("messageExpression must evaluate to a string");
          return made;
        })
      : [undefined, undefined];
    return {
      rule,
      program,
      error,
      messageProgram,
      messageError: messageError?.replace(/^compilation failed: /, "messageExpression compilation failed: "),
      usesOldSelf: program !== undefined && mentions(program, "oldSelf"),
    };
  };
  return { rules: rules.map(compileOne), type };
}

function attempt(make: () => CelProgram): [CelProgram, undefined] | [undefined, string] {
  try {
    return [make(), undefined];
  } catch (error) {
    if (error instanceof CelCompileError) return [undefined, error.message];
    throw error;
  }
}

function mentions(program: CelProgram, name: string): boolean {
  let found = false;
  visitNodes(program.ast, (node) => {
    found ||= node.op === "id" && node.args === name;
  });
  return found;
}
