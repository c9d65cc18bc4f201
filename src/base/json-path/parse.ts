/** A template of text and `{…}` parts, as https://kubernetes.io/docs/reference/kubectl/jsonpath/ describes it. */
export type Template = readonly TemplatePart[];

export type TemplatePart =
  | { readonly type: "text"; readonly text: string }
  /** Results of one `{…}`, each printed, with spaces between. */
  | { readonly type: "path"; readonly path: Path }
  | { readonly type: "range"; readonly path: Path; readonly body: Template };

export type Path = readonly Step[];

export type Step =
  | { readonly type: "root" }
  | { readonly type: "current" }
  | { readonly type: "field"; readonly name: string }
  | { readonly type: "wildcard" }
  | { readonly type: "descend" }
  /** `[from:to:step]`; an index is a slice of one. */
  | {
      readonly type: "slice";
      readonly from: number | undefined;
      readonly to: number | undefined;
      readonly step: number;
      readonly single: boolean;
    }
  | { readonly type: "union"; readonly paths: readonly Path[] }
  | { readonly type: "filter"; readonly left: Operand; readonly operator: string; readonly right: Operand | undefined };

export type Operand = { readonly path: Path } | { readonly literal: string | number | boolean };

/** What is wrong with a template, in the words of kubectl. */
export class JsonPathError extends Error {
  override name = "JsonPathError";
}

/** @throws JsonPathError */
export function parseTemplate(text: string): Template {
  const parser = new Parser(text);
  const parts = parser.template(false);
  return parts;
}

/** `.spec.x`, `{.spec.x}`, `spec.x`, `$.spec.x`: one path, with or without its braces and its first dot. @throws JsonPathError */
export function parseRelaxedPath(text: string): Template {
  if (text.trim() === "")
    throw new JsonPathError(
      `unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'`,
    );
  const match = /^\{\s*\.?([^{}]+)\s*\}$|^\.?([^{}]+)$/.exec(text);
  if (!match)
    throw new JsonPathError(
      "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'",
    );
  const inner = match[1] ?? match[2] ?? "";
  return parseTemplate(`{${inner.startsWith("[") || inner.startsWith("$") ? inner : `.${inner}`}}`);
}

class Parser {
  readonly #text: string;
  #at = 0;
  constructor(text: string) {
    this.#text = text;
  }

  template(inRange: boolean): TemplatePart[] {
    const parts: TemplatePart[] = [];
    while (this.#at < this.#text.length) {
      const open = this.#text.indexOf("{", this.#at);
      const end = open < 0 ? this.#text.length : open;
      if (end > this.#at) parts.push({ type: "text", text: this.#text.slice(this.#at, end) });
      this.#at = end;
      if (open < 0) break;
      this.#at++;
      if (this.#action(parts, inRange)) return parts;
    }
    if (inRange) throw new JsonPathError("unclosed action");
    return parts;
  }

  /** One `{…}`; true at `{end}`. */
  #action(parts: TemplatePart[], inRange: boolean): boolean {
    for (;;) {
      this.#space();
      const rest = this.#text.slice(this.#at);
      if (rest === "") throw new JsonPathError("unclosed action");
      if (rest.startsWith("}")) {
        this.#at++;
        return false;
      }
      if (/^end\s*\}/.test(rest)) {
        if (!inRange) throw new JsonPathError("not in range, nothing to end");
        this.#at += rest.indexOf("}") + 1;
        return true;
      }
      const quoted = /^(["'])((?:\\.|(?!\1).)*)\1/s.exec(rest);
      if (quoted) {
        this.#at += quoted[0].length;
        parts.push({ type: "text", text: unquote(quoted[2]!) });
        continue;
      }
      if (/^range\s/.test(rest)) {
        this.#at += 5;
        this.#space();
        const path = this.#path("}");
        this.#space();
        if (this.#text[this.#at] !== "}") throw new JsonPathError("unclosed action");
        this.#at++;
        parts.push({ type: "range", path, body: this.template(true) });
        return false;
      }
      const number = /^-?\d+(\.\d+)?(?=[\s}])/.exec(rest);
      if (number) {
        this.#at += number[0].length;
        parts.push({ type: "text", text: number[0] });
        continue;
      }
      parts.push({ type: "path", path: this.#path("}") });
    }
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  /** Steps up to white space or one of `ends`. */
  #path(ends: string): Step[] {
    const steps: Step[] = [];
    for (;;) {
      const c = this.#text[this.#at];
      if (c === undefined || ends.includes(c) || /\s/.test(c)) return steps;
      this.#at++;
      switch (c) {
        case "$":
          steps.push({ type: "root" });
          break;
        case "@":
          steps.push({ type: "current" });
          break;
        case "[":
          steps.push(this.#bracket());
          break;
        case "*":
          steps.push({ type: "wildcard" });
          break;
        case ".":
          if (this.#text[this.#at] === ".") {
            this.#at++;
            steps.push({ type: "descend" });
          }
          this.#field(steps);
          break;
        default: {
          this.#at--;
          const before = this.#at;
          this.#field(steps);
          if (this.#at === before) throw new JsonPathError(`unrecognized character in action: U+${hex(c)} '${c}'`);
        }
      }
    }
  }

  #field(steps: Step[]): void {
    if (this.#text[this.#at] === "*") return;
    let name = "";
    for (;;) {
      const c = this.#text[this.#at];
      if (c === "\\") {
        name += this.#text[this.#at + 1] ?? "";
        this.#at += 2;
        continue;
      }
      if (c === undefined || /[\s.[\]{}(),|$@=!<>]/.test(c)) break;
      name += c;
      this.#at++;
    }
    if (name !== "") steps.push({ type: "field", name });
  }

  #bracket(): Step {
    if (/^\s*\?\(/.test(this.#text.slice(this.#at))) return this.#filter();
    const from = this.#at;
    const inner = this.#until("]");
    const parts = splitOutside(inner, ",");
    if (parts.length > 1) return { type: "union", paths: parts.map((part) => subPath(part)) };
    return bracketStep(inner.trim(), this.#text.slice(from - 1, this.#at));
  }

  /** Text up to the closing character, quotes and nesting respected. */
  #until(close: string): string {
    let depth = 0;
    let quote = "";
    for (let i = this.#at; i < this.#text.length; i++) {
      const c = this.#text[i]!;
      if (quote) {
        if (c === "\\") i++;
        else if (c === quote) quote = "";
      } else if (c === '"' || c === "'") quote = c;
      else if (c === close && depth === 0) {
        const inner = this.#text.slice(this.#at, i);
        this.#at = i + 1;
        return inner;
      } else if (c === "[" || c === "(") depth++;
      else if (c === "]" || c === ")") depth--;
    }
    throw new JsonPathError(close === "]" ? "unterminated array" : "unterminated filter");
  }

  #filter(): Step {
    this.#at = this.#text.indexOf("(", this.#at) + 1;
    const inner = this.#until(")");
    this.#space();
    if (this.#text[this.#at] !== "]") throw new JsonPathError("unclosed array expect ]");
    this.#at++;
    const match = /^((?:"(?:\\.|[^"])*"|'(?:\\.|[^'])*'|[^"'<>=!])*?)\s*(==|!=|<=|>=|<|>)\s*(.+)$/s.exec(inner.trim());
    if (!match) return { type: "filter", left: operand(inner), operator: "exists", right: undefined };
    return { type: "filter", left: operand(match[1]!), operator: match[2]!, right: operand(match[3]!) };
  }
}

function subPath(text: string): Path {
  const trimmed = text.trim();
  if (/^['"]/.test(trimmed) || /^-?\d+$/.test(trimmed)) return [bracketStep(trimmed, `[${trimmed}]`)];
  const [part] = parseTemplate(`{${trimmed}}`);
  return part?.type === "path" ? part.path : [];
}

function bracketStep(inner: string, whole: string): Step {
  if (inner === "*") return { type: "wildcard" };
  const quoted = /^(["'])(.*)\1$/s.exec(inner);
  // what stands in quotes is a path again: a dot in a key needs its backslash here too
  if (quoted) return { type: "union", paths: [subPath(`.${quoted[2]!}`)] };
  const slice = /^(-?\d*)(?::(-?\d*))?(?::(-?\d*))?$/.exec(inner);
  if (!slice) throw new JsonPathError(`invalid array index ${inner}`);
  const number = (text: string | undefined) => (text ? Number(text) : undefined);
  const single = !inner.includes(":");
  const from = number(slice[1]);
  if (single && from === undefined) throw new JsonPathError(`invalid array index ${whole}`);
  const step = number(slice[3]) ?? 1;
  return { type: "slice", from, to: single ? undefined : number(slice[2]), step, single };
}

function operand(text: string): Operand {
  const trimmed = text.trim();
  const quoted = /^(["'])(.*)\1$/s.exec(trimmed);
  if (quoted) return { literal: unquote(quoted[2]!) };
  if (/^-?\d+(\.\d+)?$/.test(trimmed)) return { literal: Number(trimmed) };
  if (trimmed === "true" || trimmed === "false") return { literal: trimmed === "true" };
  const [part] = parseTemplate(`{${trimmed}}`);
  return { path: part?.type === "path" ? part.path : [] };
}

function splitOutside(text: string, separator: string): string[] {
  return text.match(new RegExp(`(?:"(?:\\\\.|[^"])*"|'(?:\\\\.|[^'])*'|[^${separator}])+`, "gs")) ?? [];
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };
const unquote = (text: string) => text.replace(/\\(.)/gs, (_, c: string) => ESCAPES[c] ?? c);
const hex = (c: string) => c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
