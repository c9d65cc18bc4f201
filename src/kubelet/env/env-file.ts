/**
 * The value of `key` in an environment file: lines `NAME='value'`, where the value is literal, may span lines and may be
 * followed by a comment. Blank lines and lines that begin with `#` are skipped. Undefined when the key is not there; a
 * blank between `=` and the value makes it empty.
 *
 * Source: KEP-3721, https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-via-file/
 *
 * @throws Error that names the offending line
 */
export function readEnvFile(text: string, key: string): string | undefined {
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = trimBlanks((lines[at] ?? "").replace(/\r$/, ""));
    if (line === "" || line.startsWith("#")) continue;
    const { name, rest } = splitAssignment(line, at + 1);
    if (/^[ \t]/.test(rest) || rest === "") {
      if (rest === "") throw malformed(at + 1, "value must be enclosed in single quotes");
      if (name === key) return "";
      continue;
    }
    if (!rest.startsWith("'")) throw malformed(at + 1, "value must be enclosed in single quotes");
    const first = at;
    let quoted = rest.slice(1);
    while (!quoted.includes("'")) {
      at++;
      if (at >= lines.length) throw malformed(first + 1, "unclosed single quote");
      quoted += `\n${(lines[at] ?? "").replace(/\r$/, "")}`;
    }
    const end = quoted.indexOf("'");
    const after = trimBlanks(quoted.slice(end + 1));
    if (after !== "" && !after.startsWith("#")) throw malformed(at + 1, "unexpected content after closing quote");
    if (name === key) return quoted.slice(0, end);
  }
  return undefined;
}

function splitAssignment(line: string, number: number): { name: string; rest: string } {
  const equals = line.indexOf("=");
  if (equals < 0) throw malformed(number, "missing '='");
  const name = line.slice(0, equals);
  if (name.trim() === "") throw malformed(number, "empty variable name");
  if (/[ \t]$/.test(name)) throw malformed(number, "whitespace before '=' is not allowed");
  return { name, rest: line.slice(equals + 1) };
}

const trimBlanks = (text: string) => text.replace(/^[ \t]+/, "");
const malformed = (line: number, why: string) =>
  new Error(`invalid environment variable format at line ${line}: ${why}`);
