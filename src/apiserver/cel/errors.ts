interface Located {
  readonly code?: string;
  readonly summary?: string;
  readonly message: string;
  readonly range?: { readonly start: number; readonly end: number };
}

const OPERATORS: Readonly<Record<string, string>> = { in: "@in" };

/**
 * A compilation error in the form of cel-go: position, what is wrong, the line with a mark under it. `isFunction` tells names
 * that are known, though not with such arguments.
 */
export function compileErrorText(source: string, error: unknown, isFunction: (name: string) => boolean): string {
  const { code = "", summary, message, range } = error as Located;
  const [text, offset] = describe(source, code, summary ?? message.split("\n")[0]!, {
    start: range?.start ?? 0,
    end: range?.end ?? 0,
    isFunction,
  });
  const before = source.slice(0, offset).split("\n");
  const line = source.split("\n")[before.length - 1] ?? "";
  const column = [...before.at(-1)!].length;
  return `compilation failed: ERROR: <input>:${before.length}:${column + 1}: ${text}\n | ${line}\n | ${".".repeat(column)}^`;
}

interface Place {
  readonly start: number;
  readonly end: number;
  readonly isFunction: (name: string) => boolean;
}

function describe(source: string, code: string, summary: string, { start, end, isFunction }: Place): [string, number] {
  switch (code) {
    case "unknown_variable":
      return [`undeclared reference to '${summary.replace("Unknown variable: ", "")}' (in container '')`, start];
    case "no_such_key":
      return [`undefined field '${summary.replace("No such key: ", "")}'`, source.lastIndexOf(".", start)];
    case "no_such_overload":
      return overload(source, summary, start, end);
    case "no_matching_overload": {
      const [, receiver, name, args] = /'(?:(.*)\.)?([^.(]+)\((.*)\)'$/.exec(summary) ?? [];
      const at = source.indexOf("(", source.indexOf(name ?? "", start));
      if (name && !isFunction(name))
        return [`undeclared reference to '${name}' (in container '')`, Math.max(at, start)];
      return [
        `found no matching overload for '${name}' applied to '${receiver ? `${receiver}.` : ""}(${args})'`,
        Math.max(at, start),
      ];
    }
    case "cannot_index_type":
      return [`type '${/'(.*)'/.exec(summary)?.[1]}' does not support field selection`, source.lastIndexOf(".", start)];
    case "invalid_logical_operand":
    case "invalid_condition_type":
      return [`expected type 'bool' but found '${/got '(.*)'/.exec(summary)?.[1]}'`, start];
    case "unexpected_token":
    case "expected_token":
      return [`Syntax error: ${summary.replace("EOF", "'<EOF>'")}`, start];
    default:
      return [summary, start];
  }
}

/** Binary operators are named `_+_` and marked where they stand. */
function overload(source: string, summary: string, start: number, end: number): [string, number] {
  const binary = /^no such overload: (.*) (==|!=|<=|>=|<|>|\+|-|\*|\/|%|in) (.*)$/.exec(summary);
  if (binary) {
    const [, left, operator, right] = binary as unknown as [string, string, string, string];
    const at = source.slice(start, end).indexOf(operator);
    return [
      `found no matching overload for '${OPERATORS[operator] ?? `_${operator}_`}' applied to '(${left}, ${right})'`,
      at < 0 ? start : start + at,
    ];
  }
  const [, operator, type] = /^no such overload: ([!-])(.*)$/.exec(summary) ?? [];
  return [`found no matching overload for '${operator}_' applied to '(${type})'`, start];
}
