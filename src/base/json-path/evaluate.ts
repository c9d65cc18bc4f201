import {
  JsonPathError,
  type Operand,
  type Path,
  parseRelaxedPath,
  parseTemplate,
  type Step,
  type Template,
} from "./parse.ts";

/** A template that is ready to be applied to objects. */
export interface JsonPath {
  /** The printed text. @throws JsonPathError where a field is missing and that is not allowed */
  print(object: unknown): string;
  /** The results of each `{…}`, in order. */
  find(object: unknown): readonly (readonly unknown[])[];
}

export interface JsonPathOptions {
  /** A missing field gives nothing (true: `kubectl get -o jsonpath`) or is an error. Default true. */
  readonly allowMissing?: boolean;
  /** The template is a single path that may lack its braces and its first dot. Default false. */
  readonly relaxed?: boolean;
}

/** @throws JsonPathError in the words of kubectl */
export function createJsonPath(text: string, options: JsonPathOptions = {}): JsonPath {
  const template = options.relaxed ? parseRelaxedPath(text) : parseTemplate(text);
  const allowMissing = options.allowMissing ?? true;
  return {
    print: (object) => printTemplate(template, { root: object, current: object, allowMissing }),
    find: (object) =>
      template.flatMap((part) =>
        part.type === "path" ? [follow(part.path, { root: object, current: object, allowMissing })] : [],
      ),
  };
}

interface Scope {
  readonly root: unknown;
  readonly current: unknown;
  readonly allowMissing: boolean;
}

function printTemplate(template: Template, scope: Scope): string {
  let text = "";
  for (const part of template) {
    if (part.type === "text") text += part.text;
    else if (part.type === "path") text += follow(part.path, scope).map(printValue).join(" ");
    else for (const current of follow(part.path, scope)) text += printTemplate(part.body, { ...scope, current });
  }
  return text;
}

/** Scalars as they are, maps and lists as JSON with sorted keys. */
export function printValue(value: unknown): string {
  if (value === null || value === undefined) return value === null ? "<nil>" : "";
  return typeof value === "object" ? JSON.stringify(sorted(value)) : String(value);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

function follow(path: Path, scope: Scope): unknown[] {
  let values: unknown[] = [scope.current];
  for (const step of path) {
    values =
      step.type === "union"
        ? step.paths.flatMap((one) => values.flatMap((current) => follow(one, { ...scope, current })))
        : values.flatMap((value) => take(step, value, scope));
  }
  return values;
}

function take(step: Exclude<Step, { type: "union" }>, value: unknown, scope: Scope): unknown[] {
  switch (step.type) {
    case "root":
      return [scope.root];
    case "current":
      return [value];
    case "field":
      return fieldOf(value, step.name, scope);
    case "wildcard":
      return typeof value === "object" && value !== null ? Object.values(value) : [];
    case "descend":
      return descendants(value);
    case "slice":
      return sliceOf(value, step, scope);
    case "filter": {
      const items = Array.isArray(value) ? value : [value];
      return items.filter((item) => holds(step, { ...scope, current: item }));
    }
  }
}

function fieldOf(value: unknown, name: string, { allowMissing }: Scope): unknown[] {
  // a path behind `..` meets lists and scalars on its way
  if (value !== null && typeof value === "object" && !Array.isArray(value) && Object.hasOwn(value, name))
    return [(value as Record<string, unknown>)[name]];
  if (!allowMissing) throw new JsonPathError(`${name} is not found`);
  return [];
}

function descendants(value: unknown): unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return [value, ...Object.values(value).flatMap(descendants)];
}

function sliceOf(value: unknown, step: Extract<Step, { type: "slice" }>, { allowMissing }: Scope): unknown[] {
  if (!Array.isArray(value)) {
    if (value === undefined || value === null || allowMissing) return [];
    throw new JsonPathError(`${typeof value} is not array or slice`);
  }
  const { length } = value;
  const from = step.from ?? 0;
  const start = from < 0 ? from + length : from;
  if (step.single) {
    if (start >= 0 && start < length) return [value[start]];
    if (allowMissing && length === 0) return [];
    throw new JsonPathError(`array index out of bounds: index ${from}, length ${length}`);
  }
  const to = step.to ?? length;
  const end = Math.min(to < 0 ? to + length : to, length);
  const items: unknown[] = [];
  for (let i = start; i < end; i += Math.max(1, step.step)) items.push(value[i]);
  return items;
}

function holds({ left, operator, right }: Extract<Step, { type: "filter" }>, scope: Scope): boolean {
  const values = (operand: Operand) =>
    "literal" in operand ? [operand.literal] : follow(operand.path, { ...scope, allowMissing: true });
  const [a, ...more] = values(left);
  if (operator === "exists") return a !== undefined;
  if (a === undefined || !right) return false;
  if (more.length > 0) throw new JsonPathError("can only compare one element at a time");
  const [b] = values(right);
  if (b === undefined) return false;
  switch (operator) {
    case "==":
      return a === b || String(a) === String(b);
    case "!=":
      return String(a) !== String(b);
    case "<":
      return (a as number) < (b as number);
    case "<=":
      return (a as number) <= (b as number);
    case ">":
      return (a as number) > (b as number);
    default:
      return (a as number) >= (b as number);
  }
}
