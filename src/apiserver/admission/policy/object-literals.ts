/**
 * Mutations write objects as CEL messages: `Object.spec{replicas: 3}`, `JSONPatch{op: "add"}`. They become maps here, their field
 * names texts; everything else stays as it is.
 */
export function objectLiterals(source: string): string {
  let result = "";
  /** Open brackets: `m` a message, another character itself. */
  const open: string[] = [];
  for (let at = 0; at < source.length; ) {
    const rest = source.slice(at);
    const [token = ""] = TOKEN.exec(rest) ?? [rest[0]];
    at += token.length;
    if (MESSAGE.test(token)) {
      open.push("m");
      result += "{";
      continue;
    }
    if (OPENING.includes(token)) open.push(token);
    else if (CLOSING.includes(token)) open.pop();
    const isField =
      open.at(-1) === "m" && NAME.test(token) && /[{,]\s*$/.test(result) && /^\s*:/.test(source.slice(at));
    result += isField ? JSON.stringify(token) : token;
  }
  return result;
}

const NAME = /^[A-Za-z_]\w*$/;
const MESSAGE = /^(?:Object(?:\.\w+)*|JSONPatch)\s*\{$/;
const OPENING = ["{", "(", "["];
const CLOSING = ["}", ")", "]"];
/** A message's beginning, a text, or a word; anything else goes character by character. */
const TOKEN =
  /^(?:(?:Object(?:\.\w+)*|JSONPatch)\s*\{|[rRbB]{0,2}(?:"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|[A-Za-z_]\w*)/;
