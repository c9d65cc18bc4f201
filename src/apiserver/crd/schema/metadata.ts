import {
  type ApiObject,
  checkFields,
  type FieldError,
  fieldError,
  isDNS1035Label,
  nameIsPathSegment,
  normalizeObject,
  validateObjectMeta,
} from "#kinds";
import { child, type Fields, fieldOf, isEmbedded, isFields, itemsOf, type JsonSchema } from "./json-schema.ts";

/** A kind of nothing but metadata, to check metadata with. */
const META_HOLDER = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

export interface Coerced {
  /** Fields of metadata that there are not, as `metadata.foo`. */
  readonly unknown: string[];
  /** The first value of a wrong type. */
  readonly error: FieldError | undefined;
}

/** Checks the types of `apiVersion`, `kind` and `metadata` of an object and of what it embeds; removes unknown fields of metadata. */
export function coerceMetadata(object: Fields, schema: JsonSchema): Coerced {
  const unknown: string[] = [];
  try {
    coerce(object, schema, "", true, unknown);
    return { unknown, error: undefined };
  } catch (error) {
    if (error instanceof WrongType) return { unknown, error: error.fieldError };
    throw error;
  }
}

class WrongType extends Error {
  readonly fieldError: FieldError;
  constructor(fieldError: FieldError) {
    super(fieldError.message);
    this.fieldError = fieldError;
  }
}

function coerce(value: unknown, schema: JsonSchema | undefined, path: string, root: boolean, unknown: string[]): void {
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    if (items) for (const [i, item] of value.entries()) coerce(item, items, `${path}[${i}]`, false, unknown);
    return;
  }
  if (!isFields(value) || !schema) return;
  if (root || isEmbedded(schema)) coerceOne(value, path, unknown);
  for (const [name, item] of Object.entries(value)) {
    const own = fieldOf(schema, name);
    if (own) coerce(item, own, child(path, name), false, unknown);
  }
}

function coerceOne(object: Fields, path: string, unknown: string[]): void {
  for (const name of ["apiVersion", "kind"]) {
    if (object[name] !== undefined && typeof object[name] !== "string")
      throw new WrongType(fieldError.invalid(child(path, name), object[name], "must be a string"));
  }
  const { metadata } = object;
  if (metadata === undefined) return;
  const at = child(path, "metadata");
  if (!isFields(metadata))
    throw new WrongType(
      fieldError.invalid(
        at,
        metadata,
        `json: cannot unmarshal ${jsonKind(metadata)} into Go value of type v1.ObjectMeta`,
      ),
    );
  const check = checkFields(metadata, META_HOLDER);
  if (check.typeErrors[0] !== undefined) throw new WrongType(fieldError.invalid(at, metadata, check.typeErrors[0]));
  for (const text of check.unknown) {
    const name = JSON.parse(text.replace(/^unknown field /, "")) as string;
    unknown.push(`${at}.${name}`);
    removeAt(metadata, name);
  }
  normalizeObject({ metadata } as unknown as ApiObject, META_HOLDER);
  if (metadata.creationTimestamp === null) delete metadata.creationTimestamp;
}

/** Removes what a path like `ownerReferences[0].foo` leads to. */
function removeAt(object: Fields, path: string): void {
  const steps = path.split(/[.[\]]+/).filter(Boolean);
  let at: unknown = object;
  for (const step of steps.slice(0, -1)) at = (at as Fields | undefined)?.[step];
  if (isFields(at)) delete at[steps.at(-1)!];
}

function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value === "boolean" ? "bool" : typeof value;
}

/** What is wrong with the metadata of objects that are embedded (the root has been checked as every object is). */
export function validateEmbedded(value: unknown, schema: JsonSchema | undefined, path = ""): FieldError[] {
  if (!schema) return [];
  if (Array.isArray(value)) return value.flatMap((item, i) => validateEmbedded(item, itemsOf(schema), `${path}[${i}]`));
  if (!isFields(value)) return [];
  return [
    ...(isEmbedded(schema) ? validateOne(value, path) : []),
    ...Object.entries(value).flatMap(([name, item]) =>
      validateEmbedded(item, fieldOf(schema, name), child(path, name)),
    ),
  ];
}

function validateOne(object: Fields, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const name of ["apiVersion", "kind"]) {
    const at = child(path, name);
    const value = object[name];
    if (value === undefined) errors.push(fieldError.required(at));
    else if (typeof value !== "string") errors.push(fieldError.invalid(at, value, "must be a string"));
    else if (value === "") errors.push(fieldError.invalid(at, value, "must not be empty"));
    else if (name === "apiVersion" && value.split("/").length > 2)
      errors.push(fieldError.invalid(at, value, `unexpected GroupVersion string: ${value}`));
    else if (name === "kind") {
      const texts = isDNS1035Label(value.toLowerCase());
      if (texts.length > 0)
        errors.push(
          fieldError.invalid(at, value, `may have mixed case, but should otherwise match: ${texts.join(",")}`),
        );
    }
  }
  if (isFields(object.metadata)) {
    const metadata = { name: "fakename", ...object.metadata } as unknown as ApiObject["metadata"];
    errors.push(
      ...validateObjectMeta(metadata, Boolean(metadata.namespace), nameIsPathSegment, child(path, "metadata")),
    );
  }
  return errors;
}
