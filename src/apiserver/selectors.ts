import { type ApiObject, badRequest, isLabelValue, isQualifiedName, type KindInfo } from "#kinds";

/** True for objects that a selector takes. */
export type Matcher = (object: ApiObject) => boolean;

interface Requirement {
  readonly key: string;
  readonly operator: "in" | "notin" | "exists" | "!" | "gt" | "lt";
  readonly values: readonly string[];
}

/**
 * A label selector in its string form: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
 * @throws StatusError 400
 * @see https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
 */
export function labelMatcher(text: string | null): Matcher | undefined {
  if (!text?.trim()) return undefined;
  const requirements = splitTop(text).map((part) => parseRequirement(part, text));
  return (object) => requirements.every((requirement) => meets(requirement, object.metadata.labels ?? {}));
}

function parseRequirement(part: string, whole: string): Requirement {
  const fail = (why: string) => badRequest(`unable to parse requirement: ${why}`);
  const text = part.trim();
  if (text === "") throw fail(`found '', expected: !, identifier, or 'end of string'`);
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(text);
  if (set)
    return checked(
      { key: set[1]!, operator: set[2] as "in" | "notin", values: set[3]!.split(",").map((v) => v.trim()) },
      fail,
    );
  const equal = /^([^=!<>\s]+)\s*(==|=|!=|<|>)\s*(.*)$/.exec(text);
  if (equal) {
    const value = equal[3]!.trim();
    if (equal[2] === "<" || equal[2] === ">") {
      if (!/^-?\d+$/.test(value))
        throw fail(
          `values[0][${equal[1]}]: Invalid value: "${value}": for 'Gt', 'Lt' operators, the value must be an integer`,
        );
      return checked({ key: equal[1]!, operator: equal[2] === ">" ? "gt" : "lt", values: [value] }, fail);
    }
    return checked({ key: equal[1]!, operator: equal[2] === "!=" ? "notin" : "in", values: [value] }, fail);
  }
  const absent = /^!\s*(\S+)$/.exec(text);
  if (absent) return checked({ key: absent[1]!, operator: "!", values: [] }, fail);
  if (/\s/.test(text)) throw fail(`couldn't parse the selector string "${whole}"`);
  return checked({ key: text, operator: "exists", values: [] }, fail);
}

function checked(requirement: Requirement, fail: (why: string) => Error): Requirement {
  const [error] = isQualifiedName(requirement.key);
  if (error) throw fail(`<nil>: Invalid value: "${requirement.key}": ${error}`);
  for (const [i, value] of requirement.values.entries()) {
    const [why] = isLabelValue(value);
    if (why) throw fail(`values[${i}][${requirement.key}]: Invalid value: "${value}": ${why}`);
  }
  return requirement;
}

function meets({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "in":
      return value !== undefined && values.includes(value);
    case "notin":
      return value === undefined || !values.includes(value);
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    case "gt":
      return value !== undefined && /^-?\d+$/.test(value) && BigInt(value) > BigInt(values[0]!);
    case "lt":
      return value !== undefined && /^-?\d+$/.test(value) && BigInt(value) < BigInt(values[0]!);
  }
}

/** Splits at commas that stand in no parentheses. */
function splitTop(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "(") depth++;
    else if (text[i] === ")") depth--;
    else if (text[i] === "," && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...parts, text.slice(start)];
}

/** A field selector: `metadata.name=a,spec.nodeName!=b`. @throws StatusError 400 for fields that the kind does not offer */
export function fieldMatcher(
  text: string | null,
  kind: KindInfo,
): { matches: Matcher; name?: string; namespace?: string } | undefined {
  if (!text?.trim()) return undefined;
  const terms = text
    .split(/(?<!\\),/)
    .filter((part) => part.trim() !== "")
    .map((part) => parseTerm(part, text, kind));
  const equal = (field: string) => terms.find((term) => term.field === field && !term.negated)?.value;
  const name = equal("metadata.name");
  const namespace = equal("metadata.namespace");
  return {
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    matches(object) {
      const own = kind.selectableFields?.(object);
      return terms.every(({ field, value, negated }) => (fieldOf(object, field, own) === value) !== negated);
    },
  };
}

function parseTerm(part: string, whole: string, kind: KindInfo) {
  const match = /^([^=!]+)(!=|==|=)(.*)$/.exec(part.trim());
  if (!match) throw badRequest(`invalid field selector: "${whole}"; can't understand "${part}"`);
  const field = match[1]!.trim();
  const value = match[3]!.replace(/\\([\\,=])/g, "$1");
  if (!supports(kind, field)) throw badRequest(`field label not supported: ${field}`);
  return { field, value, negated: match[2] === "!=" };
}

function supports(kind: KindInfo, field: string): boolean {
  if (field === "metadata.name" || (field === "metadata.namespace" && kind.namespaced)) return true;
  // an empty object shows which fields the kind offers
  const sample = {
    apiVersion: "",
    kind: kind.kind,
    metadata: { name: "" },
    spec: {},
    status: {},
    involvedObject: {},
    regarding: {},
  } as ApiObject;
  return kind.selectableFields !== undefined && Object.hasOwn(kind.selectableFields(sample), field);
}

function fieldOf(object: ApiObject, field: string, own: Record<string, string> | undefined): string {
  if (field === "metadata.name") return object.metadata.name;
  if (field === "metadata.namespace") return object.metadata.namespace ?? "";
  return own?.[field] ?? "";
}
