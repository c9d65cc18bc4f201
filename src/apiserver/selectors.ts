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
  const requirements = parseSelector(text);
  return (object) => requirements.every((requirement) => meets(requirement, object.metadata.labels ?? {}));
}

type Token = { readonly kind: "word" | "symbol" | "end"; readonly text: string };

const SYMBOLS = /^(!=|==|[=!<>(),])/;
const WORD = /^[^\s!=<>(),]+/;
const OPERATORS = "in, notin, =, ==, !=, gt, lt";

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let rest = text.trimStart();
  while (rest !== "") {
    const symbol = SYMBOLS.exec(rest)?.[0];
    const token = symbol ?? WORD.exec(rest)![0];
    tokens.push({ kind: symbol === undefined ? "word" : "symbol", text: token });
    rest = rest.slice(token.length).trimStart();
  }
  return tokens;
}

const END: Token = { kind: "end", text: "" };

/** One requirement after the other, divided by commas, in the original's grammar and words. */
function parseSelector(text: string): Requirement[] {
  const tokens = tokensOf(text);
  let at = 0;
  const look = () => tokens[at] ?? END;
  const take = () => tokens[at++] ?? END;
  const fail = (why: string) => badRequest(why);
  const requirements: Requirement[] = [];
  for (;;) {
    const { kind, text: next } = look();
    if (kind === "end") return requirements;
    if (kind !== "word" && next !== "!") throw fail(`found '${next}', expected: !, identifier, or 'end of string'`);
    requirements.push(parseRequirement(take, look));
    const after = take();
    if (after.kind === "end") return requirements;
    if (after.text !== ",") throw fail(`found '${after.text}', expected: ',' or 'end of string'`);
    const following = look();
    if (following.kind !== "word" && following.text !== "!")
      throw fail(`found '${following.text}', expected: identifier after ','`);
  }
}

function parseRequirement(take: () => Token, look: () => Token): Requirement {
  const fail = (why: string) => badRequest(`unable to parse requirement: ${why}`);
  const negated = look().text === "!" && take() !== undefined;
  const name = take();
  if (name.kind !== "word") throw fail(`found '${name.text}', expected: identifier`);
  const key = name.text;
  if (negated) return checked({ key, operator: "!", values: [] }, fail);
  const next = look();
  if (next.kind === "end" || next.text === ",") return checked({ key, operator: "exists", values: [] }, fail);
  const operator = take().text;
  switch (operator) {
    case "in":
    case "notin":
      return checked({ key, operator, values: parseValues(take, look, fail) }, fail);
    case "=":
    case "==":
      return checked({ key, operator: "in", values: [parseValue(take, look, fail)] }, fail);
    case "!=":
      return checked({ key, operator: "notin", values: [parseValue(take, look, fail)] }, fail);
    case "<":
    case ">":
      return checked({ key, operator: operator === ">" ? "gt" : "lt", values: [parseValue(take, look, fail)] }, fail);
    default:
      throw fail(`found '${operator}', expected: ${OPERATORS}`);
  }
}

/** One value; nothing before a comma or the end is the empty one. */
function parseValue(take: () => Token, look: () => Token, fail: (why: string) => Error): string {
  const next = look();
  if (next.kind === "end" || next.text === ",") return "";
  const value = take();
  if (value.kind !== "word") throw fail(`found '${value.text}', expected: identifier`);
  return value.text;
}

/** `(a, b, )`: a value that is not there is the empty one. */
function parseValues(take: () => Token, look: () => Token, fail: (why: string) => Error): string[] {
  const open = take();
  if (open.text !== "(") throw fail(`found '${open.text}' expected: '('`);
  const values: string[] = [];
  for (;;) {
    const next = take();
    if (next.kind === "word") {
      values.push(next.text);
      const after = take();
      if (after.text === ")") return values;
      if (after.text !== ",") throw fail(`found '${after.text}', expected: ',' or ')'`);
      if (look().text === ")" || look().text === ",") values.push("");
    } else if (next.text === ",") values.push("");
    else if (next.text === ")") return values.length > 0 ? values : [""];
    else throw fail(`found '${next.text}', expected: ',', ')' or identifier`);
  }
}

function checked(requirement: Requirement, fail: (why: string) => Error): Requirement {
  const { key, operator, values } = requirement;
  const [error] = isQualifiedName(key);
  if (error) throw fail(`<nil>: Invalid value: "${key}": ${error}`);
  for (const [i, value] of values.entries()) {
    if ((operator === "gt" || operator === "lt") && !/^[+-]?\d+$/.test(value))
      throw fail(`values[${i}]: Invalid value: "${value}": for 'Gt', 'Lt' operators, the value must be an integer`);
    const [why] = isLabelValue(value);
    if (why) throw fail(`values[${i}][${key}]: Invalid value: "${value}": ${why}`);
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
  const match = /^([^=!]*)(!=|==|=)(.*)$/.exec(part);
  if (!match) throw badRequest(`invalid selector: '${whole}'; can't understand '${part}'`);
  const [, field = "", operator, text = ""] = match;
  const value = text.replace(/\\([\\,=])/g, "$1");
  if (field !== "" || value !== "") checkField(kind, field);
  return { field, value, negated: operator === "!=" };
}

function checkField(kind: KindInfo, field: string): void {
  if (supports(kind, field)) return;
  throw badRequest(
    kind.selectableFields
      ? `field label not supported: ${field}`
      : `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`,
  );
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
  if (field === "") return "";
  if (field === "metadata.name") return object.metadata.name;
  if (field === "metadata.namespace") return object.metadata.namespace ?? "";
  return own?.[field] ?? "";
}
