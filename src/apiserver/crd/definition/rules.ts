import { type FieldError, fieldError } from "#kinds";
import { rulesOf } from "../rules/compile.ts";
import { isEmbedded, itemsOf, type JsonSchema, type ValidationRule, valuesOf } from "../schema/json-schema.ts";
import { schemaAt } from "./field-path.ts";
import { maxOf } from "./sizes.ts";
import { checkCost, createCostSum, type CostSum, sumErrors } from "./cost.ts";

const REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

interface Walk {
  readonly errors: FieldError[];
  readonly sum: CostSum;
  /** The schema was accepted before: what a single rule costs is not looked at. */
  readonly known: boolean;
}

interface Where {
  readonly root: boolean;
  /** The nearest part whose items can't be told from one revision to the next. */
  readonly uncorrelated: string | undefined;
  /** How often the rule may run on one object. */
  readonly times: number;
}

/** The `x-kubernetes-validations` of a schema: form, compilation, use of `oldSelf`, cost. */
export function validateRules(schema: JsonSchema, path: string, known: boolean): FieldError[] {
  const walk: Walk = { errors: [], sum: createCostSum(), known };
  visit(schema, path, { root: true, uncorrelated: undefined, times: 1 }, walk);
  return [...walk.errors, ...sumErrors(walk.sum, path)];
}

function visit(schema: JsonSchema, path: string, where: Where, walk: Walk): void {
  const at = `${path}.x-kubernetes-validations`;
  const form = (schema["x-kubernetes-validations"] ?? []).flatMap((rule, i) => checkForm(rule, schema, `${at}[${i}]`));
  walk.errors.push(...form);
  if (form.length === 0) checkCompiled(schema, at, where, walk);
  const inner = { ...where, root: false };
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const uncorrelated = where.uncorrelated ?? (schema["x-kubernetes-map-type"] === "atomic" ? path : undefined);
    visit(property, `${path}.properties[${name}]`, { ...inner, uncorrelated }, walk);
  }
  const values = valuesOf(schema);
  if (values)
    visit(
      values,
      `${path}.additionalProperties`,
      { ...inner, times: where.times * maxOf(schema.maxProperties, values) },
      walk,
    );
  const items = itemsOf(schema);
  if (items) {
    const uncorrelated = where.uncorrelated ?? (schema["x-kubernetes-list-type"] === "map" ? undefined : path);
    visit(items, `${path}.items`, { ...inner, uncorrelated, times: where.times * maxOf(schema.maxItems, items) }, walk);
  }
}

function checkForm(rule: ValidationRule, schema: JsonSchema, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const source = rule.rule.trim();
  const message = rule.message?.trim() ?? "";
  const lines = /[\r\n]/;
  if (!source) errors.push(fieldError.required(`${at}.rule`, "rule is not specified"));
  else if (rule.message && !message)
    errors.push(fieldError.invalid(`${at}.message`, rule.message, "must be non-empty if specified"));
  else if (lines.test(message))
    errors.push(fieldError.invalid(`${at}.message`, rule.message, "must not contain line breaks"));
  else if (lines.test(source) && !message)
    errors.push(fieldError.required(`${at}.message`, "message must be specified if rule contains line breaks"));
  if (rule.messageExpression && !rule.messageExpression.trim())
    errors.push(fieldError.required(`${at}.messageExpression`, "messageExpression must be non-empty if specified"));
  if (rule.reason !== undefined && !REASONS.includes(rule.reason))
    errors.push(fieldError.notSupported(`${at}.reason`, rule.reason, REASONS));
  const { fieldPath } = rule;
  if (!fieldPath) return errors;
  if (!fieldPath.trim())
    errors.push(fieldError.invalid(`${at}.fieldPath`, fieldPath, "must be non-empty if specified"));
  if (lines.test(fieldPath))
    errors.push(fieldError.invalid(`${at}.fieldPath`, fieldPath, "must not contain line breaks"));
  if ("error" in schemaAt(fieldPath.trim(), schema))
    errors.push(fieldError.invalid(`${at}.fieldPath`, fieldPath, "must be a valid path"));
  return errors;
}

/** A rule as the original prints it: the fields of its internal type. */
function shown(rule: ValidationRule): object {
  return {
    Rule: rule.rule,
    Message: rule.message ?? "",
    MessageExpression: rule.messageExpression ?? "",
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? "",
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  };
}

function checkCompiled(schema: JsonSchema, at: string, where: Where, walk: Walk): void {
  const compiled = rulesOf(schema, where.root || isEmbedded(schema));
  for (const [i, one] of (compiled?.rules ?? []).entries()) {
    const place = `${at}[${i}]`;
    if (one.program) checkCost(one.program, schema, { path: `${place}.rule`, name: "rule", ...where }, walk);
    if (one.error) walk.errors.push(fieldError.invalid(`${place}.rule`, shown(one.rule), one.error));
    if (one.messageError)
      walk.errors.push(fieldError.invalid(`${place}.messageExpression`, shown(one.rule), one.messageError));
    else if (one.messageProgram)
      checkCost(
        one.messageProgram,
        schema,
        { path: `${place}.messageExpression`, name: "messageExpression", ...where },
        walk,
      );
    if (one.usesOldSelf && where.uncorrelated)
      walk.errors.push(
        fieldError.invalid(
          `${place}.rule`,
          one.rule.rule,
          `oldSelf cannot be used on the uncorrelatable portion of the schema within ${where.uncorrelated}`,
        ),
      );
    if (!one.usesOldSelf && one.program && one.rule.optionalOldSelf !== undefined)
      walk.errors.push(
        fieldError.invalid(
          `${place}.optionalOldSelf`,
          one.rule.optionalOldSelf,
          "may not be set if oldSelf is not used in rule",
        ),
      );
  }
}
