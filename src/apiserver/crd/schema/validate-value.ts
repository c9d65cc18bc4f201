import { deepEqual } from "#base";
import { type FieldError, fieldError } from "#kinds";
import { regularExpression } from "../../cel/libraries/regular-expressions.ts";
import { correlateField, correlateItems } from "./correlate.ts";
import { isKnownFormat, matchesFormat } from "./formats.ts";
import { type Fields, isFields, isIntOrString, itemsOf, type JsonSchema, propertyOf, valuesOf } from "./json-schema.ts";

/**
 * Validates a value against a schema, in the words of kube-openapi. With `old`, what hasn't changed is not validated again
 * (ratcheting, KEP-4008). `path` is where the value stands, "" for the object itself.
 */
export function validateValue(value: unknown, schema: JsonSchema, path = "", old?: unknown): FieldError[] {
  const result = check(value, schema, path, old);
  return result.errors;
}

interface Result {
  errors: FieldError[];
  /** Checks that were made: of alternatives that all fail, the one with most checks is told. */
  checks: number;
}

function check(value: unknown, schema: JsonSchema, path: string, old: unknown): Result {
  if (old !== undefined && deepEqual(value, old)) return { errors: [], checks: 0 };
  const result: Result = { errors: [], checks: 1 };
  if (value === null) {
    if (typesOf(schema).length > 0 && !schema.nullable) result.errors.push(wrongType(path, typesOf(schema), "null"));
    if (schema.nullable || result.errors.length > 0) return result;
  }
  const typeError = checkType(value, schema, path);
  if (typeError) result.errors.push(typeError);
  merge(result, checkAlternatives(value, schema, path, old));
  if (schema.enum && !schema.enum.some((one) => deepEqual(one, value))) {
    const supported = schema.enum.map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
    result.errors.push(fieldError.notSupported(named(path), value, supported));
  }
  if (typeof value === "string") result.errors.push(...checkString(value, schema, path));
  else if (typeof value === "number") result.errors.push(...checkNumber(value, schema, path));
  else if (Array.isArray(value)) merge(result, checkList(value, schema, path, old));
  else if (isFields(value)) merge(result, checkObject(value, schema, path, old));
  return result;
}

function merge(into: Result, from: Result): void {
  into.errors.push(...from.errors);
  into.checks += from.checks;
}

/** The path as it stands in causes; the object itself has none. */
const named = (path: string): string => path.replace(/^\./, "") || "<nil>";
const inBody = (path: string, words: string): string => `${path} in body ${words}`;

function typesOf(schema: JsonSchema): readonly string[] {
  if (isIntOrString(schema)) return ["integer", "string"];
  return schema.type ? [schema.type] : [];
}

function wrongType(path: string, types: readonly string[], found: string): FieldError {
  return fieldError.typeInvalid(
    named(path),
    found,
    inBody(path, `must be of type ${types.join(",")}: ${JSON.stringify(found)}`),
  );
}

function checkType(value: unknown, schema: JsonSchema, path: string): FieldError | undefined {
  const types = typesOf(schema);
  const found = jsonType(value);
  if (types.length === 0 || types.includes(found)) return undefined;
  if (found === "integer" && types.includes("number")) return undefined;
  return wrongType(path, types, found);
}

function jsonType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function checkString(value: string, schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const length = [...value].length;
  if (schema.maxLength !== undefined && length > schema.maxLength)
    errors.push(fieldError.tooLong(named(path), schema.maxLength));
  if (schema.minLength !== undefined && length < schema.minLength)
    errors.push(
      fieldError.invalid(named(path), value, inBody(path, `should be at least ${schema.minLength} chars long`)),
    );
  if (schema.pattern && !regularExpression(schema.pattern).matcher(value).find())
    errors.push(fieldError.invalid(named(path), value, inBody(path, `should match '${schema.pattern}'`)));
  const { format, type } = schema;
  if (format && isKnownFormat(type, format) && !matchesFormat(format, value))
    errors.push(
      fieldError.typeInvalid(named(path), value, inBody(path, `must be of type ${format}: ${JSON.stringify(value)}`)),
    );
  return errors;
}

function checkNumber(value: number, schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const fail = (words: string) => errors.push(fieldError.invalid(named(path), value, inBody(path, words)));
  const { maximum, minimum, multipleOf } = schema;
  if (multipleOf !== undefined && multipleOf > 0 && !isMultiple(value, multipleOf))
    fail(`should be a multiple of ${multipleOf}`);
  if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum))
    fail(`should be less than ${schema.exclusiveMaximum ? "" : "or equal to "}${maximum}`);
  if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum))
    fail(`should be greater than ${schema.exclusiveMinimum ? "" : "or equal to "}${minimum}`);
  const { format } = schema;
  if (format === "int32" && Number.isInteger(value) && Math.abs(value + 0.5) > 2 ** 31)
    errors.push(
      fieldError.invalid(named(path), value, "Checked value must be of type integer with format int32 in body"),
    );
  return errors;
}

function isMultiple(value: number, factor: number): boolean {
  const times = value / factor;
  return Math.abs(times - Math.round(times)) < 1e-9;
}

function checkList(list: readonly unknown[], schema: JsonSchema, path: string, old: unknown): Result {
  const result: Result = { errors: [], checks: 1 };
  const items = itemsOf(schema);
  const former = old === undefined ? [] : correlateItems(list, old, schema);
  if (items) for (const [i, item] of list.entries()) merge(result, check(item, items, `${path}[${i}]`, former[i]));
  if (schema.minItems !== undefined && list.length < schema.minItems)
    result.errors.push(
      fieldError.invalid(named(path), list.length, inBody(path, `should have at least ${schema.minItems} items`)),
    );
  if (schema.maxItems !== undefined && list.length > schema.maxItems)
    result.errors.push(fieldError.tooMany(named(path), list.length, schema.maxItems));
  return result;
}

function checkObject(object: Fields, schema: JsonSchema, path: string, old: unknown): Result {
  const result: Result = { errors: [], checks: 1 };
  const count = Object.keys(object).length;
  if (schema.minProperties !== undefined && count < schema.minProperties)
    result.errors.push(
      fieldError.invalid(named(path), count, inBody(path, `should have at least ${schema.minProperties} properties`)),
    );
  if (schema.maxProperties !== undefined && count > schema.maxProperties)
    result.errors.push(fieldError.tooMany(named(path), count, schema.maxProperties));
  const values = valuesOf(schema);
  for (const [name, value] of Object.entries(object)) {
    const own = propertyOf(schema, name);
    const at = own && !path ? name : `${path}.${name}`;
    if (!own && schema.additionalProperties === false)
      result.errors.push(fieldError.invalid(named(path), name, `${path}.${name} in body is a forbidden property`));
    else if (own ?? values) merge(result, check(value, (own ?? values)!, at, correlateField(old, name, schema)));
  }
  for (const name of schema.required ?? []) {
    if (object[name] === undefined) result.errors.push(fieldError.required(named(`${path}.${name}`)));
  }
  return result;
}

/** `anyOf`, `oneOf`, `allOf`, `not`. */
function checkAlternatives(value: unknown, schema: JsonSchema, path: string, old: unknown): Result {
  const result: Result = { errors: [], checks: 1 };
  const compose = (words: string) =>
    result.errors.push(fieldError.invalid("<nil>", "", `${JSON.stringify(path)} must ${words}`));
  const run = (one: JsonSchema) => check(value, one, path, old);
  if (schema.anyOf?.length) {
    const results = schema.anyOf.map(run);
    if (!results.some(isValid)) {
      compose("validate at least one schema (anyOf)");
      merge(result, best(results));
    }
  }
  if (schema.oneOf?.length) {
    const results = schema.oneOf.map(run);
    const valid = results.filter(isValid).length;
    if (valid !== 1) {
      compose(
        `validate one and only one schema (oneOf). ${valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`}`,
      );
      if (valid === 0) merge(result, best(results));
    }
  }
  if (schema.allOf?.length) {
    const results = schema.allOf.map(run);
    const valid = results.filter(isValid).length;
    for (const one of results) merge(result, one);
    if (valid !== results.length) compose(`validate all the schemas (allOf)${valid === 0 ? ". None validated" : ""}`);
  }
  if (schema.not && isValid(run(schema.not))) compose("not validate the schema (not)");
  return result;
}

const isValid = ({ errors }: Result): boolean => errors.length === 0;

function best(results: readonly Result[]): Result {
  return results.reduce((a, b) => (b.checks > a.checks ? b : a));
}
