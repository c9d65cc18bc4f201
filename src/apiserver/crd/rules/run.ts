import { Optional } from "@marcbachmann/cel-js";
import { deepEqual } from "#base";
import { type FieldError, fieldError } from "#kinds";
import { type CelBudget, CelBudgetError, CelEvaluationError } from "../../cel/mod.ts";
import { correlateField, correlateItems } from "../schema/correlate.ts";
import {
  child,
  isEmbedded,
  isFields,
  itemsOf,
  type JsonSchema,
  propertyOf,
  type ValidationRule,
  valuesOf,
} from "../schema/json-schema.ts";
import { type CompiledRule, type CompiledRules, rulesOf } from "./compile.ts";

/** What running all rules of an object gives. */
export interface RuleFindings {
  readonly errors: FieldError[];
  /** Violations in parts that haven't changed: told as warnings (ratcheting). */
  readonly warnings: string[];
}

interface Run {
  readonly budget: CelBudget;
  readonly findings: RuleFindings;
  /** An update: unchanged parts only warn. */
  readonly ratchet: boolean;
}

/** Where a value stands and what it was. */
interface Place {
  readonly path: string;
  /** Undefined: there was none, or it isn't known which it was. */
  readonly old: unknown;
  /** Whether the value, or where it isn't known what it was, what holds it, is as before. */
  readonly unchanged: boolean;
}

const withRules = new WeakMap<JsonSchema, boolean>();

function hasRules(schema: JsonSchema | undefined): boolean {
  if (!schema) return false;
  let known = withRules.get(schema);
  if (known === undefined) {
    known =
      (schema["x-kubernetes-validations"]?.length ?? 0) > 0 ||
      Object.values(schema.properties ?? {}).some(hasRules) ||
      hasRules(itemsOf(schema)) ||
      hasRules(valuesOf(schema));
    withRules.set(schema, known);
  }
  return known;
}

/** Runs the `x-kubernetes-validations` of an object. `old` is absent for a create. */
export function runRules(
  object: unknown,
  schema: JsonSchema,
  old: unknown,
  budget: CelBudget,
  path = "",
): RuleFindings {
  const findings: RuleFindings = { errors: [], warnings: [] };
  const run: Run = { budget, findings, ratchet: old !== undefined };
  try {
    walk(run, object, schema, { path, old, unchanged: old !== undefined && deepEqual(object, old) }, path === "");
  } catch (error) {
    if (!(error instanceof OutOfBudget)) throw error;
  }
  return findings;
}

/** No further rule runs. */
class OutOfBudget extends Error {}

function walk(run: Run, value: unknown, schema: JsonSchema | undefined, place: Place, root = false): void {
  if (!schema || value === null || value === undefined || !hasRules(schema)) return;
  const rules = rulesOf(schema, root || isEmbedded(schema));
  if (rules) runOwn(run, value, schema, rules, place);
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    const former = correlateItems(value, place.old, items ? schema : {});
    for (const [i, item] of value.entries())
      walk(run, item, items, next(item, `${place.path}[${i}]`, former[i], place));
  } else if (isFields(value)) {
    for (const [name, item] of Object.entries(value)) {
      const own = propertyOf(schema, name);
      const path = own ? child(place.path, name) : `${place.path}[${name}]`;
      walk(run, item, own ?? valuesOf(schema), next(item, path, correlateField(place.old, name, schema), place));
    }
  }
}

function next(value: unknown, path: string, old: unknown, parent: Place): Place {
  return { path, old, unchanged: old === undefined ? parent.unchanged : deepEqual(value, old) };
}

function runOwn(run: Run, value: unknown, schema: JsonSchema, { rules, type }: CompiledRules, place: Place): void {
  const self = type.convert(value);
  const oldSelf = place.old === undefined || place.old === null ? undefined : type.convert(place.old);
  for (const compiled of rules) {
    const { rule, program } = compiled;
    const at = named(place.path);
    const typeName = schema.type ?? "";
    if (!program) {
      run.findings.errors.push(fieldError.invalid(at, typeName, `rule compile error: ${compiled.error}`));
      continue;
    }
    if (compiled.usesOldSelf && oldSelf === undefined && !rule.optionalOldSelf) continue;
    const variables = { self, oldSelf: rule.optionalOldSelf ? optionalOf(oldSelf) : (oldSelf ?? self) };
    try {
      if (program.evaluate(variables, run.budget) === true) continue;
    } catch (error) {
      failRule(run, error, at, typeName, rule);
      continue;
    }
    const error = violation(run, compiled, variables, value, schema, place);
    if (run.ratchet && place.unchanged && !compiled.usesOldSelf)
      run.findings.warnings.push(`${error.field}: ${error.message}`);
    else run.findings.errors.push(error);
  }
}

const named = (path: string): string => path || "<nil>";
const optionalOf = (value: unknown): Optional => (value === undefined ? Optional.none() : Optional.of(value));

/** A rule that could not be evaluated is violated. @throws OutOfBudget */
function failRule(run: Run, error: unknown, at: string, typeName: string, rule: ValidationRule): void {
  const fail = (text: string) => run.findings.errors.push(fieldError.invalid(at, typeName, text));
  if (error instanceof CelBudgetError) {
    fail(
      error.total
        ? "validation failed due to running out of cost budget, no further validation rules will be run"
        : `'${error.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${nameOf(rule)}`,
    );
    throw new OutOfBudget();
  }
  if (!(error instanceof CelEvaluationError)) throw error;
  if (error.message.startsWith("no such overload"))
    fail(
      `'${error.message}': call arguments did not match a supported operator, function or macro signature for rule: ${nameOf(rule)}`,
    );
  else fail(`${error.message} evaluating rule: ${nameOf(rule)}`);
}

const nameOf = ({ message, rule }: ValidationRule): string => message?.trim() || rule.trim();

function violation(
  run: Run,
  compiled: CompiledRule,
  variables: Readonly<Record<string, unknown>>,
  value: unknown,
  schema: JsonSchema,
  { path }: Place,
): FieldError {
  const { rule } = compiled;
  const at = named(rule.fieldPath ? fieldPath(path, rule.fieldPath) : path);
  const text = messageOf(run, compiled, variables) ?? (rule.message?.trim() || `failed rule: ${rule.rule.trim()}`);
  switch (rule.reason) {
    case "FieldValueForbidden":
      return fieldError.forbidden(at, text);
    case "FieldValueRequired":
      return fieldError.required(at, text);
    case "FieldValueDuplicate":
      return { ...fieldError.duplicate(at, value), ...(omits(schema) ? { message: "Duplicate value" } : {}) };
    default: {
      // objects and lists are not repeated in the message
      const error = fieldError.invalid(at, value, text);
      return omits(schema) ? { ...error, message: `Invalid value: ${text}` } : error;
    }
  }
}

const omits = (schema: JsonSchema): boolean => schema.type === "object" || schema.type === "array";

/** `.spec.a['b.c']` behind a path; names with dots are written as keys. */
function fieldPath(path: string, suffix: string): string {
  const rest = suffix.trim().replace(/\['((?:[^'\\]|\\.)*)'\]/g, (_, name: string) => {
    const plain = name.replace(/\\(.)/g, "$1");
    return /^[A-Za-z_]\w*$/.test(plain) ? `.${plain}` : `[${plain}]`;
  });
  return path ? path + rest : rest.replace(/^\./, "");
}

/** The text that a messageExpression gives; undefined where it gives none that can be shown. */
function messageOf(
  run: Run,
  { messageProgram }: CompiledRule,
  variables: Readonly<Record<string, unknown>>,
): string | undefined {
  if (!messageProgram) return undefined;
  try {
    const text = messageProgram.evaluate(variables, run.budget);
    if (typeof text !== "string" || text.trim() === "" || /[\r\n]/.test(text.trim()) || text.length > 5 * 1024)
      return undefined;
    return text.trim();
  } catch (error) {
    if (error instanceof CelEvaluationError || error instanceof CelBudgetError) return undefined;
    throw error;
  }
}
