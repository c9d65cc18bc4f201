/**
 * YAML as Go's yaml.v2 writes it, which is what `kubectl -o yaml` prints: keys sorted, lists not indented, long plain strings
 * folded at 80 columns, strings that could be taken for something else in quotes.
 */
export function toYaml(value: unknown): string {
  const out: Out = { text: "" };
  node(out, value, 0, "root");
  return out.text.endsWith("\n") ? out.text : `${out.text}\n`;
}

interface Out {
  text: string;
}

type Place = "root" | "value" | "item";

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function node(out: Out, value: unknown, indent: number, place: Place): void {
  if (Array.isArray(value)) list(out, value, indent, place);
  else if (isMap(value)) map(out, value, indent, place);
  else {
    if (place === "value") out.text += " ";
    out.text += scalar(value, indent, out);
    out.text += "\n";
  }
}

function map(out: Out, value: Record<string, unknown>, indent: number, place: Place): void {
  const keys = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort(compareKeys);
  if (keys.length === 0) {
    out.text += `${place === "value" ? " " : ""}{}\n`;
    return;
  }
  if (place === "value") out.text += "\n";
  keys.forEach((key, i) => {
    // the first key of a list's item stands behind its dash
    if (i > 0 || place !== "item") out.text += " ".repeat(indent);
    out.text += `${keyText(key)}:`;
    const inner = value[key];
    node(out, inner, Array.isArray(inner) ? indent : indent + 2, "value");
  });
}

function list(out: Out, value: readonly unknown[], indent: number, place: Place): void {
  if (value.length === 0) {
    out.text += `${place === "value" ? " " : ""}[]\n`;
    return;
  }
  if (place === "value") out.text += "\n";
  value.forEach((item, i) => {
    if (i > 0 || place !== "item") out.text += " ".repeat(indent);
    out.text += "- ";
    node(out, item, indent + 2, "item");
  });
}

const keyText = (key: string) => quoted(key, "key").text;

function scalar(value: unknown, indent: number, out: Out): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "number") return numberText(value);
  if (typeof value !== "string") return String(value);
  const { style, text } = quoted(value, "value");
  if (style === "literal") return literal(value, indent);
  const column = out.text.length - (out.text.lastIndexOf("\n") + 1);
  return folded(text, style, column, indent);
}

function numberText(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e21) return String(value);
  return String(value).replace(/e\+?(-?)(\d)$/, "e+0$2");
}

type Style = "plain" | "single" | "double" | "literal";

function quoted(text: string, place: "key" | "value"): { style: Style; text: string } {
  const allowed = analyze(text);
  let style: Style = text.includes("\n") ? "literal" : looksLikeOther(text) ? "double" : "plain";
  if (style === "plain" && (!allowed.plain || text === "")) style = "single";
  if (style === "single" && !allowed.single) style = "double";
  if (style === "literal" && (!allowed.block || place === "key")) style = "double";
  if (style === "single") return { style, text: `'${text.replaceAll("'", "''")}'` };
  if (style === "double") return { style, text: doubleQuoted(text) };
  return { style, text };
}

/** What libyaml's emitter allows for a text. */
function analyze(text: string): { plain: boolean; single: boolean; block: boolean } {
  const special = /[^\n\x20-\x7e\u0085\u00a0-\ud7ff\ud800-\udfff\ue000-\ufefe\uff00-\ufffd]/.test(text);
  const spaceBreak = / \n/.test(text);
  const breakSpace = /\n /.test(text);
  const edges = /^[ \n]|[ \n]$/.test(text);
  const indicators =
    /^(---|\.\.\.)/.test(text) ||
    /^[#,[\]{}&*!|>'"%@`]/.test(text) ||
    /^[?:-](\s|$)/.test(text) ||
    /:(\s|$)/.test(text) ||
    / #/.test(text);
  const none = special || spaceBreak;
  return {
    plain: !none && !breakSpace && !edges && !text.includes("\n") && !indicators,
    single: !none && !breakSpace,
    block: !none && !/ $/.test(text),
  };
}

const OTHER = [
  /^(|~|null|Null|NULL)$/,
  /^(y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/,
  /^[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[0-9][0-9_]*)$/,
  /^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$/,
  /^[-+]?(\.inf|\.Inf|\.INF)$|^(\.nan|\.NaN|\.NAN)$/,
  /^<<$/,
  // sexagesimal numbers and times
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/,
  /^\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{1,2}:\d{1,2}(\.\d*)?([Zz]|\s?[-+]\d{1,2}(:\d{2})?)?)?$/,
];

const looksLikeOther = (text: string) => OTHER.some((pattern) => pattern.test(text));

const NAMED: Readonly<Record<string, string>> = {
  "\0": "\\0",
  "\x07": "\\a",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\v": "\\v",
  "\f": "\\f",
  "\r": "\\r",
  "\x1b": "\\e",
  '"': '\\"',
  "\\": "\\\\",
  "\u0085": "\\N",
  "\u2028": "\\L",
  "\u2029": "\\P",
};

function doubleQuoted(text: string): string {
  let quotedText = "";
  for (const c of text) {
    const code = c.codePointAt(0)!;
    if (NAMED[c]) quotedText += NAMED[c];
    else if (code < 0x20 || code === 0x7f || (code > 0x7f && code < 0xa0)) quotedText += `\\x${hex(code, 2)}`;
    else if (code === 0xfeff || (code >= 0xd800 && code <= 0xdfff)) quotedText += `\\u${hex(code, 4)}`;
    else if (code > 0xffff) quotedText += `\\U${hex(code, 8)}`;
    else quotedText += c;
  }
  return `"${quotedText}"`;
}

const hex = (code: number, width: number) => code.toString(16).toUpperCase().padStart(width, "0");

const WIDTH = 80;

/** A space behind the 80th column becomes a line break; in double quotes a backslash keeps a second space. */
function folded(text: string, style: Style, from: number, indent: number): string {
  let column = from;
  let out = "";
  let spaces = false;
  const last = text.length - 1;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (
      c === " " &&
      !spaces &&
      column > WIDTH &&
      i > 1 &&
      i < last - (style === "plain" ? -1 : 0) &&
      (style === "double" || text[i + 1] !== " ")
    ) {
      out += `\n${" ".repeat(indent)}`;
      column = indent;
      if (style === "double" && text[i + 1] === " ") {
        out += "\\";
        column++;
      }
      spaces = true;
      continue;
    }
    out += c;
    column++;
    spaces = c === " ";
  }
  return out;
}

function literal(text: string, indent: number): string {
  const hint = /^[ \n]/.test(text) ? "2" : "";
  const chomp = !text.endsWith("\n") ? "-" : text === "\n" || text.endsWith("\n\n") ? "+" : "";
  const body = text.endsWith("\n") ? text.slice(0, -1) : text;
  const lines = body.split("\n").map((line) => (line === "" ? "" : `${" ".repeat(indent)}${line}`));
  return `|${hint}${chomp}\n${lines.join("\n")}`;
}

const isLetter = (c: string) => /\p{L}/u.test(c);
const isDigit = (c: string | undefined) => c !== undefined && /\p{Nd}/u.test(c);

/** Natural order: other characters before letters, runs of digits by their value. */
export function compareKeys(x: string, y: string): number {
  const a = [...x];
  const b = [...y];
  for (let i = 0; i < a.length && i < b.length; i++) {
    if (a[i] === b[i]) continue;
    const aLetter = isLetter(a[i]!);
    const bLetter = isLetter(b[i]!);
    if (aLetter && bLetter) return a[i]! < b[i]! ? -1 : 1;
    if (aLetter || bLetter) return bLetter ? -1 : 1;
    return compareDigits(a, b, i);
  }
  return a.length - b.length;
}

function compareDigits(a: readonly string[], b: readonly string[], i: number): number {
  let start = 0;
  if (a[i] === "0" || b[i] === "0") for (let j = i - 1; j >= 0 && isDigit(a[j]); j--) if (a[j] !== "0") start = 1;
  const number = (from: readonly string[]): [value: number, end: number] => {
    let value = start;
    let end = i;
    while (isDigit(from[end])) value = value * 10 + Number(from[end++]);
    return [value, end];
  };
  const [an, ai] = number(a);
  const [bn, bi] = number(b);
  if (an !== bn) return an - bn;
  if (ai !== bi) return ai - bi;
  return a[i]! < b[i]! ? -1 : 1;
}
