import type { Environment } from "@marcbachmann/cel-js";
import { RE2JS } from "re2js";
import { functions } from "./register.ts";

const known = new Map<string, RE2JS>();

/** Compiled once; matching takes linear time. @throws Error for a text that is no RE2 expression */
export function regularExpression(source: string): RE2JS {
  let compiled = known.get(source);
  if (!compiled) {
    compiled = RE2JS.compile(source);
    if (known.size > 5_000) known.clear();
    known.set(source, compiled);
  }
  return compiled;
}

/** `matches` under a name of its own (the language's is not linear), `find`, `findAll`. */
export function registerRegularExpressions(env: Environment): void {
  const compile = (source: string) => {
    try {
      return regularExpression(source);
    } catch (error) {
      throw new Error(`Illegal regex: ${(error as Error).message}`, { cause: error });
    }
  };
  const findAll = (text: string, source: string, limit: number) => {
    const matcher = compile(source).matcher(text);
    const found: string[] = [];
    while ((limit < 0 || found.length < limit) && matcher.find()) found.push(matcher.group() ?? "");
    return found;
  };
  const matches = (text: string, source: string) => compile(source).matcher(text).find();
  functions(env, {
    "string.matchesLinear(string): bool": matches,
    "matches(string, string): bool": matches,
    "string.find(string): string": (text: string, source: string) => findAll(text, source, 1)[0] ?? "",
    "string.findAll(string): list<string>": (text: string, source: string) => findAll(text, source, -1),
    "string.findAll(string, int): list<string>": (text: string, source: string, limit: bigint) =>
      findAll(text, source, Number(limit)),
  });
}
